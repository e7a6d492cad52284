import { BaseDecisionModel } from "@langchain/core/decisions";
import { createAgent, tool } from "langchain";
import { ClassificationError, autoModeMiddleware, ConfigurationError } from "langchain-auto-mode";
import { FakeDecisionModel, fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { rejection } from "../kit/agent.js";
import { del, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const noul = { type: "noul", instructions: "Is it risky?" } as const;
const choice = {
  type: "choice",
  instructions: "Which kind?",
  criteria: { secrets: "A", other: "B", none: "C" },
} as const;

/** A request as the guard makes it. */
const request = (...calls: { name: string; args?: object }[]) => ({
  state: {
    tool_calls: Object.fromEntries(calls.map((call, index) => [`call_${index + 1}`, { args: {}, ...call }])),
    transcript: [{ from: "user", text: "go" }],
  },
  questions: Object.fromEntries(calls.map((_, index) => [`call_${index + 1}`, noul])),
});
const risksOf = async (model: FakeDecisionModel, ...calls: { name: string; args?: object }[]) => {
  const { nouls } = await model.invoke(request(...calls) as never);
  return Object.values(nouls as Record<string, { noul: number }>).map(({ noul: risk }) => risk);
};

describe("a scripted decision model", () => {
  test("is a decision model, named for records", () => {
    expect(fakeDecisionModel()).toBeInstanceOf(BaseDecisionModel);
    expect(fakeDecisionModel()).toBeInstanceOf(FakeDecisionModel);
    expect([fakeDecisionModel().model, fakeDecisionModel({ model: "m" }).model]).toEqual(["fake", "m"]);
    expect(FakeDecisionModel.lc_name()).toBe("FakeDecisionModel");
  });

  test("answers one request after another, in the order of the script", async () => {
    const model = fakeDecisionModel()
      .respond(0.1)
      .respondWith(({ name }) => (name === "a" ? 0.2 : 0.3))
      .respond(0.4);
    expect(await risksOf(model, { name: "a" })).toEqual([0.1]);
    expect(await risksOf(model, { name: "a" }, { name: "b" })).toEqual([0.2, 0.3]);
    expect(await risksOf(model, { name: "a" }, { name: "b" })).toEqual([0.4, 0.4]);
  });

  test("an unplanned request fails, so that a test sees it", async () => {
    const model = fakeDecisionModel().respond(0);
    await risksOf(model, { name: "a" });
    expect(await rejection(risksOf(model, { name: "a" }))).toMatchObject({
      message: /no answer is scripted/ as never,
    });
  });

  test("a fixed answer is for what comes after the script", async () => {
    const model = fakeDecisionModel().respond(0.9).always(0.1);
    expect([
      await risksOf(model, { name: "a" }),
      await risksOf(model, { name: "a" }),
      await risksOf(model, { name: "a" }),
    ]).toEqual([[0.9], [0.1], [0.1]]);
    const failing = fakeDecisionModel().respond(0).alwaysFail("refused");
    await risksOf(failing, { name: "a" });
    for (const _ of [1, 2])
      expect(await rejection(risksOf(failing, { name: "a" }))).toMatchObject({ reason: "refused" });
  });

  test("a tool has its own risk, whatever the script says", async () => {
    const model = fakeDecisionModel()
      .forTool("delete_file", 0.9)
      .forTool("send_mail", ({ args }) => (args.to === "me" ? 0 : 0.8))
      .always(0.1);
    expect(
      await risksOf(
        model,
        { name: "delete_file" },
        { name: "send_mail", args: { to: "you" } },
        { name: "other" },
      ),
    ).toEqual([0.9, 0.8, 0.1]);
  });

  test("fails with a reason, or with an error of its own", async () => {
    const error = new Error("503");
    const model = fakeDecisionModel().fail("timeout").fail(error);
    expect(await rejection(risksOf(model, { name: "a" }))).toMatchObject({
      name: "ClassificationError",
      reason: "timeout",
    });
    expect(await rejection(risksOf(model, { name: "a" }))).toBe(error);
    const always = fakeDecisionModel().alwaysFail(error);
    expect(await rejection(risksOf(always, { name: "a" }))).toBe(error);
  });

  test("a call may be left out: the others keep their answers", async () => {
    const model = fakeDecisionModel().respondWith(({ name }) => (name === "a" ? 0.1 : undefined));
    const error = ClassificationError.find(await rejection(risksOf(model, { name: "a" }, { name: "b" })));
    expect(error?.reason).toBe("error");
    expect(Object.keys(error?.answers ?? {})).toEqual(["call_1"]);
  });

  test("gives words and kinds, where they are asked for", async () => {
    const model = fakeDecisionModel().always(({ name }) =>
      name === "a" ? { risk: 0.9, explanation: "Why.", kind: "other" } : { risk: 0.9 },
    );
    const asked = request({ name: "a" }, { name: "c" });
    const { answers } = await model.invoke({
      ...asked,
      questions: { ...asked.questions, kind_1: choice, kind_2: choice },
    } as never);
    expect(answers).toMatchObject({
      call_1: { noul: 0.9, explanation: "Why." },
      call_2: { noul: 0.9 },
      kind_1: { choice: "other", confidence: 1 },
      kind_2: { choice: "none" },
    });
    expect(answers["call_2" as never]).not.toHaveProperty("explanation");
  });

  test("takes its time, reports its tokens, and stops when it is asked to", async () => {
    const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    const model = fakeDecisionModel({ delayMs: 5, usage }).always(0);
    expect(await model.invoke(request({ name: "a" }) as never)).toMatchObject({ usage_metadata: usage });
    const controller = new AbortController();
    const asked = model.invoke(request({ name: "a" }) as never, { signal: controller.signal });
    const reason = new Error("stop");
    controller.abort(reason);
    expect(await rejection(asked)).toBe(reason);
    expect(
      await rejection(model.invoke(request({ name: "a" }) as never, { signal: controller.signal })),
    ).toBe(reason);
  });

  test("records requests as copies, with what they were about", async () => {
    const model = fakeDecisionModel().always(({ args }) => {
      args.path = "changed";
      return 0;
    });
    const given = request({ name: "a", args: { path: "/a" } });
    await model.invoke({ ...given, state: { ...given.state, environment: { cwd: "/" } } } as never);
    given.state.transcript.length = 0;
    expect(model.callCount).toBe(1);
    expect(model.requests[0]).toMatchObject({
      transcript: [{ from: "user", text: "go" }],
      environment: { cwd: "/" },
      questions: { call_1: noul },
      signal: undefined,
    });
    expect(given.state.tool_calls.call_1).toEqual({ name: "a", args: { path: "/a" } });
    expect(model.judged).toHaveLength(1);
  });

  test("a request of another shape is recorded as one about no calls", async () => {
    const model = fakeDecisionModel().always(0.3);
    const { nouls } = await model.invoke({ state: { text: "x" }, questions: { any: noul } });
    expect(nouls.any.noul).toBe(0.3);
    expect(model.requests[0]).toMatchObject({ calls: [], transcript: [] });
    expect(model.requests[0]).not.toHaveProperty("environment");
  });

  test("serves as the classifier of an agent under test", async () => {
    const classifier = fakeDecisionModel().forTool("delete_file", 0.9);
    const deleteFile = tool(() => "ok", {
      name: "delete_file",
      description: "d",
      schema: z.object({ path: z.string() }),
    });
    const agent = createAgent({
      model: scripted(del("/a"), "end"),
      tools: [deleteFile],
      middleware: [autoModeMiddleware({ tools: ["delete_file"], classifier })],
    });
    await agent.invoke({ messages: [{ role: "user", content: "go" }] });
    expect(classifier.judged).toEqual([
      { key: "call_1", name: "delete_file", args: { path: "/a" }, description: "d" },
    ]);
  });
});

const any = (value: unknown) => value as never;

describe("a slip in a fake's script is an error where it is written", () => {
  test.each<[string, string, () => unknown]>([
    ["a risk above one", "respond", () => fakeDecisionModel().respond(2)],
    ["a risk that is no number", "respond", () => fakeDecisionModel().respond(any("SECRET"))],
    ["NaN", "respond", () => fakeDecisionModel().respond(NaN)],
    ["a number for a function", "respondWith", () => fakeDecisionModel().respondWith(any(0.5))],
    ["a misspelt reason", "fail", () => fakeDecisionModel().fail(any("SECRET timeot"))],
    ["no reason", "alwaysFail", () => fakeDecisionModel().alwaysFail(any(undefined))],
    ["a negative risk", "always", () => fakeDecisionModel().always(-1)],
    ["a tool without a name", "forTool.name", () => fakeDecisionModel().forTool("", 0)],
    ["no risk of a tool", "forTool.risk", () => fakeDecisionModel().forTool("a", any(undefined))],
    ["an unknown option", "delay", () => fakeDecisionModel(any({ delay: "SECRET" }))],
    ["an empty name", "model", () => fakeDecisionModel({ model: "" })],
    ["a negative delay", "delayMs", () => fakeDecisionModel({ delayMs: -1 })],
    ["options that are a name", "options", () => fakeDecisionModel(any("SECRET"))],
  ])("%s", (_, option, build) => {
    let caught: unknown;
    try {
      build();
    } catch (error) {
      caught = error;
    }
    expect(ConfigurationError.find(caught)?.option).toBe(option);
    expect((caught as Error).message).not.toContain("SECRET");
  });

  test("the message says what is expected", () => {
    expect(() => fakeDecisionModel().respond(2)).toThrow(
      'Option "respond" is a number that does not fit; expected a number from 0 to 1',
    );
    expect(() => fakeDecisionModel().fail(any("timeot"))).toThrow(/expected an error, or one of "timeout", /);
  });

  test("bounds, and whatever a function gives, are taken", () => {
    expect(() =>
      fakeDecisionModel({ delayMs: 0, model: "judge" })
        .respond(0)
        .respond(1)
        .respondWith(() => 2)
        .fail(new Error("down")),
    ).not.toThrow();
  });
});

test("in an agent, a request beyond the script says so as the cause of what is thrown", async () => {
  const agent = createAgent({
    model: scripted(del("/a"), "end"),
    tools: toolBox().all,
    middleware: [autoModeMiddleware({ tools: ["delete_file"], classifier: fakeDecisionModel() })],
  });
  const error = await rejection(agent.invoke({ messages: [{ role: "user", content: "go" }] }));
  expect(ClassificationError.find(error)?.cause).toMatchObject({
    message: expect.stringContaining("no answer is scripted"),
  });
});

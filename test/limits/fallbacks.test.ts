import { ChatAnthropic } from "@langchain/anthropic";
import { RunnableLambda } from "@langchain/core/runnables";
import { fakeModel } from "@langchain/core/testing";
import {
  ConfigurationError,
  askHuman,
  autoModeMiddleware,
  deferToTrustedModel,
  haltRun,
  throwOnLimit,
} from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { toolBox } from "../kit/tools.js";

function failure(build: () => unknown): ConfigurationError {
  try {
    build();
  } catch (error) {
    return ConfigurationError.find(error) as ConfigurationError;
  }
  throw new Error("accepted");
}
const any = (value: unknown) => value as never;

describe("fallbacks are plain data", () => {
  test("each says what it is, and what it was given", () => {
    const model = fakeModel();
    expect(haltRun()).toEqual({ kind: "halt" });
    expect(haltRun({ message: "Stopped." })).toEqual({ kind: "halt", message: "Stopped." });
    expect(askHuman()).toEqual({ kind: "ask", allowedDecisions: ["approve", "edit", "reject"] });
    expect(askHuman({ allowedDecisions: ["reject"], description: "Look." })).toEqual({
      kind: "ask",
      allowedDecisions: ["reject"],
      description: "Look.",
    });
    expect(deferToTrustedModel({ model })).toEqual({ kind: "defer", model });
    expect(deferToTrustedModel({ model: "anthropic:m" })).toEqual({ kind: "defer", model: "anthropic:m" });
    expect(throwOnLimit()).toEqual({ kind: "throw" });
  });

  test("an option that is given as undefined is as if it were not given", () => {
    expect(haltRun({ message: any(undefined) })).toEqual(haltRun());
    expect(askHuman({ allowedDecisions: any(undefined), description: any(undefined) })).toEqual(askHuman());
  });

  test("a decision that is named twice is offered once", () => {
    expect(askHuman({ allowedDecisions: ["reject", "approve", "reject"] }).allowedDecisions).toEqual([
      "reject",
      "approve",
    ]);
  });

  test("the list of decisions is the fallback's own: changing the given one changes nothing", () => {
    const allowedDecisions: ("approve" | "reject")[] = ["reject"];
    const fallback = askHuman({ allowedDecisions });
    allowedDecisions.push("approve");
    expect(fallback.allowedDecisions).toEqual(["reject"]);
  });
});

describe("a wrong option is refused where it is given", () => {
  const secret = "s3cret";
  test.each<[string, string, () => unknown]>([
    ["haltRun.message", "a number", () => haltRun({ message: any(3) })],
    ["haltRun.message", "an empty text", () => haltRun({ message: "" })],
    ["haltRun.message", "blanks", () => haltRun({ message: "  " })],
    ["haltRun.text", "an unknown option", () => haltRun(any({ text: secret }))],
    ["haltRun", "null", () => haltRun(any(null))],
    ["haltRun", "a text", () => haltRun(any(secret))],
    ["haltRun", "a list", () => haltRun(any([]))],
    ["askHuman.allowedDecisions", "no decision", () => askHuman({ allowedDecisions: [] })],
    ["askHuman.allowedDecisions", "a text", () => askHuman({ allowedDecisions: any("approve") })],
    ["askHuman.allowedDecisions", "another decision", () => askHuman({ allowedDecisions: any([secret]) })],
    ["askHuman.description", "a function", () => askHuman({ description: any(() => secret) })],
    ["askHuman.message", "an option of another fallback", () => askHuman(any({ message: secret }))],
    ["deferToTrustedModel", "nothing", () => deferToTrustedModel(any(undefined))],
    ["deferToTrustedModel.model", "no model", () => deferToTrustedModel(any({}))],
    ["deferToTrustedModel.model", "a number", () => deferToTrustedModel({ model: any(3) })],
    ["deferToTrustedModel.model", "null", () => deferToTrustedModel({ model: any(null) })],
    ["deferToTrustedModel.model", "an empty name", () => deferToTrustedModel({ model: "" })],
    ["deferToTrustedModel.model", "what cannot be asked", () => deferToTrustedModel({ model: any({}) })],
    [
      "deferToTrustedModel.temperature",
      "an unknown option",
      () => deferToTrustedModel(any({ model: "anthropic:m", temperature: 0 })),
    ],
    ["throwOnLimit.message", "an option of another fallback", () => throwOnLimit(any({ message: secret }))],
    ["throwOnLimit", "a text", () => throwOnLimit(any(secret))],
  ])("%s: %s", (option, _title, build) => {
    const error = failure(build);
    expect(error.option).toBe(option);
    expect(error.message).not.toContain(secret);
  });
});

test("the message names the type of the value with its article, and what is expected", () => {
  expect(failure(() => haltRun(any("x"))).message).toBe(
    'Option "haltRun" is a string; expected an object of options',
  );
  expect(failure(() => haltRun({ message: any(3) })).message).toBe(
    'Option "haltRun.message" is a number; expected a text that is not empty',
  );
  expect(failure(() => guard("halt")).message).toMatch(/^Option "whenLimitReached" is a string; expected /);
});

describe("a trusted model with tools of its own is refused", () => {
  const { readFile } = toolBox();
  const anthropic = new ChatAnthropic({ model: "m", apiKey: "none" });
  test.each<[string, unknown]>([
    ["bound by a provider", anthropic.bindTools([readFile])],
    ["configured", fakeModel().withConfig(any({ tools: [readFile] }))],
    ["bound, then configured otherwise", anthropic.bindTools([readFile]).withConfig({ tags: ["x"] })],
    ["bound, with retries around it", anthropic.bindTools([readFile]).withRetry()],
  ])("%s", (_title, model) => {
    const error = failure(() => deferToTrustedModel({ model: any(model) }));
    expect(error.option).toBe("deferToTrustedModel.model");
    expect(error.message).toMatch(/bound tools/);
  });

  test("one that was bound to none is accepted", () => {
    expect(() => deferToTrustedModel({ model: any(fakeModel().bindTools([])) })).not.toThrow();
    expect(() => deferToTrustedModel({ model: anthropic })).not.toThrow();
  });
});

describe("whenLimitReached", () => {
  test("takes what the four functions make", () => {
    for (const fallback of [
      haltRun(),
      askHuman(),
      deferToTrustedModel({ model: fakeModel() }),
      throwOnLimit(),
    ])
      expect(() => guard(fallback)).not.toThrow();
  });

  test("may be written by hand, as plain data", () => {
    expect(() => guard({ kind: "halt", message: "Stopped." })).not.toThrow();
    expect(() => guard({ kind: "ask" })).not.toThrow();
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["a text", "halt"],
    ["the function itself", haltRun],
    ["an object of another kind", { kind: "retry" }],
    ["an object without a kind", { message: "Stopped." }],
    ["a Runnable", RunnableLambda.from((text: string) => text)],
    ["a halt whose message is none", { kind: "halt", message: 3 }],
    ["an ask that allows no decision", { kind: "ask", allowedDecisions: [] }],
    ["a trusted model that is none", { kind: "defer" }],
    ["a throw with an option", { kind: "throw", message: "Stopped." }],
  ])("%s is refused, and told what makes one", (_title, value) => {
    const error = failure(() => guard(value));
    expect(error.option).toMatch(/^(whenLimitReached|haltRun|askHuman|deferToTrustedModel|throwOnLimit)/);
  });
});

function guard(whenLimitReached: unknown) {
  return autoModeMiddleware({
    tools: ["delete_file"],
    classifier: fakeDecisionModel(),
    whenLimitReached: any(whenLimitReached),
  });
}

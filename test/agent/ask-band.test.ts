import { MemorySaver } from "@langchain/langgraph";
import {
  type AutoModeOptions,
  AutoModeLimitError,
  ConfigurationError,
  deferToTrustedModel,
  haltRun,
  throwOnLimit,
} from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, answerTo, play, rejection, stage, textOf } from "../kit/agent.js";
import { approve, badlyAnswered, edit, questionOf, reject, stageAsking, thread } from "../kit/asking.js";
import { replacingArgs } from "../kit/middlewares.js";
import { del, read, scripted } from "../kit/model.js";

/** The risk is the name of the path: `/0.4/build`. */
const byRisk = () =>
  fakeDecisionModel().always(({ args }) => Number((args.path as string).split("/")[1] ?? 0));

const BAND: Partial<AutoModeOptions> = { askAt: 0.3, limits: {}, whenLimitReached: haltRun() };

describe.each(VERSIONS)("three outcomes by risk, %s", (version) => {
  const stageBand = (
    turns: Parameters<typeof stageAsking>[0]["turns"],
    options: Partial<AutoModeOptions> = {},
  ) => stageAsking({ version, turns, classifier: byRisk(), options: { ...BAND, ...options } });

  test("below askAt a call runs, from askAt on a person decides, from the threshold on it is blocked", async () => {
    const calls = [del("/0.29/a", "a"), del("/0.3/b", "b"), del("/0.49/c", "c"), del("/0.5/d", "d")];
    const { start, decide, box, records, model } = stageBand([calls, "end"]);
    const waiting = await start();
    expect(questionOf(waiting).actionRequests.map(({ args }) => args.path)).toEqual(["/0.3/b", "/0.49/c"]);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/0.29/a" }]);
    const { messages } = await decide(approve, reject("not that one"));
    expect(box.ranWith("delete_file")).toEqual([{ path: "/0.29/a" }, { path: "/0.3/b" }]);
    expect(answerTo(messages, "c").text).toContain("not that one");
    expect(answerTo(messages, "d").status).toBe("error");
    expect(badlyAnswered(model)).toEqual([]);
    expect(records.map(({ outcome, risk, by }) => [outcome, risk, by])).toEqual([
      ["allowed", 0.29, "classifier"],
      ["waiting", 0.3, "classifier"],
      ["waiting", 0.49, "classifier"],
      ["blocked", 0.5, "classifier"],
      ["rejected", 0.49, "human"],
      ["approved", undefined, "human"],
    ]);
  });

  test("a band of one tool has its own bounds", async () => {
    const { start, box } = stageBand([[del("/0.2/a", "a"), read("/0.2/b", "b")], "end"], {
      askAt: undefined as never,
      tools: [{ tool: "delete_file", askAt: 0.1, threshold: 0.25 }, "read_file"],
    });
    expect(questionOf(await start()).actionRequests.map(({ args }) => args.path)).toEqual(["/0.2/a"]);
    expect(box.ranWith("read_file")).toEqual([{ path: "/0.2/b" }]);
  });

  test("an edited call runs as edited, and only that", async () => {
    const { start, decide, box } = stageBand([del("/0.4/a"), "end"]);
    await start();
    await decide(edit("delete_file", { path: "/0.4/other" }));
    expect(box.ranWith("delete_file")).toEqual([{ path: "/0.4/other" }]);
  });

  test("the question says what happened, the risk and what the classifier said, as one quoted line", async () => {
    const classifier = fakeDecisionModel().always(() => ({
      risk: 0.4,
      explanation: `Deletes a build.\nApprove this: "yes"! ${"x".repeat(600)}`,
    }));
    const { start } = stageAsking({ version, turns: [del("/a")], classifier, options: BAND });
    const description = questionOf(await start()).actionRequests[0]?.description ?? "";
    const [first, risk, second, ...more] = description.split("\n");
    expect(first).toContain("delete_file needs your approval");
    expect(risk).toBe("Risk: 0.4 (blocked from 0.5 on).");
    expect(second).toMatch(/^The classifier says: "Deletes a build\. Approve this: \\"yes\\"! x+/);
    expect(JSON.parse(second!.slice("The classifier says: ".length)).length).toBeLessThanOrEqual(500);
    expect(more).toEqual([]);
  });

  test("precheck may ask: no request, and the question says that a rule asks", async () => {
    const classifier = byRisk();
    const { start, decide, box, records } = stageAsking({
      version,
      turns: [del("/0.9/a"), "end"],
      classifier,
      options: { limits: {}, whenLimitReached: haltRun(), precheck: () => "ask" },
    });
    const question = questionOf(await start());
    expect(question.actionRequests[0]?.description).toContain("a fixed rule of the operator asks for it");
    await decide(approve);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/0.9/a" }]);
    expect(classifier.callCount).toBe(0);
    expect(records.map(({ outcome, by }) => [outcome, by])).toEqual([
      ["waiting", "precheck"],
      ["approved", "human"],
    ]);
  });

  test("a call in the band that was changed on its way cannot wait: it is blocked, and its answer says that it needs approval", async () => {
    const { messages, box, records } = await play({
      version,
      turns: [del("/0/a", "a"), "end"],
      classifier: byRisk(),
      checkpointer: new MemorySaver(),
      config: thread(),
      options: BAND,
      inside: [replacingArgs({ path: "/0.4/changed" })],
    });
    expect(box.ran).toEqual([]);
    expect(answerTo(messages, "a").text).toContain("needs a person's approval");
    expect(records.at(-1)).toMatchObject({ outcome: "blocked", reason: "needs approval", risk: 0.4 });
  });

  test("all-or-none: a call that waits holds the others back", async () => {
    const { start, decide, box, model } = stageBand([[del("/0.4/a", "a"), del("/0/b", "b")], "end"], {
      siblings: "all-or-none",
    });
    const waiting = await start();
    expect(answerTo(waiting.messages, "b").text).toContain("held back");
    await decide(approve);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/0.4/a" }]);
    expect(badlyAnswered(model)).toEqual([]);
  });

  test("observing records waiting and lets the call run", async () => {
    const { box, records } = await play({
      version,
      turns: [del("/0.4/a"), "end"],
      classifier: byRisk(),
      options: { ...BAND, mode: "observe" },
    });
    expect(box.ran).toHaveLength(1);
    expect(records.map(({ outcome, executed }) => [outcome, executed])).toEqual([["waiting", "as judged"]]);
  });

  test("without a checkpointer the first ask is an error that names it", async () => {
    const scene = stage({ version, turns: [del("/0.4/a")], classifier: byRisk(), options: BAND });
    expect(ConfigurationError.find(await rejection(scene.invoke()))?.option).toBe("checkpointer");
  });

  test("next to a failed check that ends the run nobody is asked: the call is blocked", async () => {
    const classifier = fakeDecisionModel().always(({ args }) => (args.path === "/down" ? undefined : 0.4));
    const { start, state } = stageAsking({
      version,
      turns: [[del("/band"), del("/down")], "end"],
      classifier,
      options: BAND,
    });
    await rejection(start());
    expect(await state()).toMatchObject({ totalBlocks: 1, waiting: [] });
  });

  test.each([
    ["halts", () => haltRun(), (end: string) => expect(end).toContain("Auto mode stopped this run")],
    [
      "defers to the trusted model",
      () => deferToTrustedModel({ model: scripted("trusted end") }),
      (end: string) => expect(end).toBe("trusted end"),
    ],
  ])("a rejection in the band counts as a block; at the limit the run %s", async (_, fallback, assertEnd) => {
    const { start, decide } = stageBand([del("/0.4/a"), "not reached"], {
      limits: { consecutiveBlocks: 1 },
      whenLimitReached: fallback(),
    });
    await start();
    const { messages } = await decide(reject());
    assertEnd(textOf(messages.at(-1)));
  });

  test("a rejection in the band that reaches a limit throws where that is configured", async () => {
    const { start, decide } = stageBand([del("/0.4/a"), "not reached"], {
      limits: { consecutiveBlocks: 1 },
      whenLimitReached: throwOnLimit(),
    });
    await start();
    expect(AutoModeLimitError.isInstance(await rejection(decide(reject())))).toBe(true);
  });

  test("a trusted model's call in the band cannot wait: it is blocked and the run halts", async () => {
    const trusted = scripted(del("/0.4/b", "b"), "not reached");
    const { start, box } = stageBand([del("/0.9/a"), "not reached"], {
      limits: { consecutiveBlocks: 1 },
      whenLimitReached: deferToTrustedModel({ model: trusted }),
    });
    const { messages } = await start();
    expect(box.ran).toEqual([]);
    expect(answerTo(messages, "b").text).toContain("needs a person's approval");
    expect(textOf(messages.at(-1))).toContain("Auto mode stopped this run");
  });
});

describe("the options of the band", () => {
  test.each([
    ["above the threshold", { askAt: 0.6 }, "askAt"],
    [
      "above an own threshold",
      { tools: [{ tool: "delete_file", askAt: 0.3, threshold: 0.2 }] },
      "tools[0].askAt",
    ],
    ["no number", { askAt: "0.3" }, "askAt"],
    ["below 0", { askAt: -0.1 }, "askAt"],
  ])("%s is refused at construction", (_, options, named) => {
    const build = () => stage({ turns: [], options: options as Partial<AutoModeOptions> });
    expect(build).toThrow(ConfigurationError);
    expect(build).toThrow(`"${named}"`);
  });
});

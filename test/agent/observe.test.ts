import { MemorySaver } from "@langchain/langgraph";
import { askHuman, autoModeState, haltRun, throwOnLimit } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, answerTo, play, stage, textOf } from "../kit/agent.js";
import { replacingArgs } from "../kit/middlewares.js";
import { del, proposes } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const CONFIG = { configurable: { thread_id: "t" } };
const observe = { mode: "observe" } as const;

const byRiskInPath = () =>
  fakeDecisionModel().always(({ args }) => ({
    risk: Number((args.path as string).slice(1)),
    kind: "destructive",
  }));

describe.each(VERSIONS)("observing, %s", (version) => {
  test.each([
    ["halting", haltRun(), "blocked"],
    ["throwing", throwOnLimit(), "blocked"],
    ["asking", askHuman(), "waiting"],
  ])(
    "everything runs; no limit is reached, nothing counts, nobody is asked: %s",
    async (_what, fallback, outcome) => {
      const scene = stage({
        version,
        turns: [del("/1"), del("/2"), [del("/3"), del("/4")], "end"],
        classifier: 0.9,
        options: { ...observe, limits: { consecutiveBlocks: 1, totalBlocks: 1 }, whenLimitReached: fallback },
        checkpointer: new MemorySaver(),
        config: CONFIG,
      });
      const messages = await scene.invoke();
      expect(scene.box.ran).toHaveLength(4);
      expect(textOf(messages.at(-1))).toBe("end");
      expect(scene.records.map((record) => [record.outcome, record.mode])).toEqual(
        Array.from({ length: 4 }, () => [outcome, "observe"]),
      );
      const state = autoModeState(await scene.agent.graph.getState(CONFIG));
      expect(state).toMatchObject({ totalBlocks: 0, limit: undefined, waiting: [] });
    },
  );

  test.each(["throw", "continue", "ask"] as const)(
    "an outage stops nothing and throws nothing (%s)",
    async (onUnavailable) => {
      const { box, records, messages } = await play({
        version,
        turns: [del("/1"), "end"],
        classifier: fakeDecisionModel().fail("timeout"),
        options: { ...observe, onUnavailable },
      });
      expect(box.ran).toHaveLength(1);
      expect(records).toMatchObject([{ outcome: onUnavailable === "ask" ? "waiting" : "unavailable" }]);
      expect(textOf(messages.at(-1))).toBe("end");
    },
  );

  test("a rule that blocks, and one that fails, stop nothing", async () => {
    const { box, records } = await play({
      version,
      turns: [[del("/1"), del("/2")], "end"],
      options: {
        ...observe,
        precheck: ({ args }) => {
          if (args.path === "/1") return "block";
          throw new Error("no rule");
        },
      },
    });
    expect(box.ran).toHaveLength(2);
    expect(records.map(({ outcome, by }) => [outcome, by])).toEqual([
      ["blocked", "precheck"],
      ["unavailable", "precheck"],
    ]);
  });

  test("malformed calls go their way, and are recorded", async () => {
    const { box, records } = await play({
      version,
      turns: [
        () =>
          proposes([
            { name: "delete_file", args: { path: "/1" } },
            { name: "delete_file", args: "text", id: "b" },
          ]),
        "end",
      ],
      options: observe,
    });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/1" } }]);
    expect(records.map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ["malformed", "no_id"],
      ["malformed", "bad_arguments"],
    ]);
  });

  test("the tool waits for the judgment, and runs once", async () => {
    const order: string[] = [];
    const box = toolBox();
    const classifier = fakeDecisionModel().respondWith(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`judged ${box.ran.length}`);
      return 0.9;
    });
    await play({ version, box, turns: [del("/1"), "end"], classifier, options: observe });
    expect([order, box.ran.length]).toEqual([["judged 0"], 1]);
  });

  test("a call that was changed on its way runs as changed, and both judgments are recorded", async () => {
    const { box, records } = await play({
      version,
      turns: [del("/1", "a"), "end"],
      classifier: 0.9,
      options: observe,
      inside: [replacingArgs({ path: "/changed" })],
    });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/changed" } }]);
    expect(records.map(({ outcome, executed }) => [outcome, executed])).toEqual([
      ["blocked", "judged again"],
    ]);
  });

  test("the records are those of enforcement, but for mode, ids, times and counts in a row", async () => {
    const scene = {
      version,
      turns: [[del("/0.2", "1"), del("/0.9", "2")], [del("/0.7", "3")], "end"],
      options: { explain: true, onUnavailable: "continue" as const },
    };
    const enforced = await play({ ...scene, classifier: byRiskInPath() });
    const observed = await play({
      ...scene,
      classifier: byRiskInPath(),
      options: { ...scene.options, ...observe },
    });
    const comparable = ({ records }: typeof enforced) =>
      records
        .map(({ toolCallId, toolName, argsDigest, outcome, by, risk, threshold, reason }) => ({
          toolCallId,
          toolName,
          argsDigest,
          outcome,
          by,
          risk,
          threshold,
          reason,
        }))
        .toSorted((a, b) => a.toolCallId.localeCompare(b.toolCallId));
    expect(comparable(observed)).toEqual(comparable(enforced));
    expect(observed.box.ran).toHaveLength(3);
    expect(enforced.box.ran).toHaveLength(1);
    expect(answerTo(observed.messages, "2").status).toBe("success");
  });
});

import { AIMessage } from "@langchain/core/messages";
import { autoModeState, haltRun } from "langchain-auto-mode";
import { describe, expect, test } from "vitest";
import { INITIAL, type ThreadState } from "../../src/limits/state.js";
import { VERSIONS } from "../kit/agent.js";
import { approve, stageAsking } from "../kit/asking.js";
import { del } from "../kit/model.js";

const NOTHING = {
  consecutiveBlocks: 0,
  totalBlocks: 0,
  consecutiveUnavailable: 0,
  limit: undefined,
  waiting: [],
};

describe.each(VERSIONS)("the state that a user may read, %s", (version) => {
  test("before anything was judged it is zero", async () => {
    const { state } = stageAsking({ version, turns: [] });
    expect(await state()).toEqual(NOTHING);
  });

  test("holds the counts and the limit that this turn has reached", async () => {
    const { start, state } = stageAsking({
      version,
      turns: [[del("/x"), del("/x")], "(the halt)", "next"],
      options: { limits: { consecutiveBlocks: 2 }, whenLimitReached: haltRun() },
    });
    await start();
    expect(await state()).toEqual({
      ...NOTHING,
      consecutiveBlocks: 2,
      totalBlocks: 2,
      limit: "consecutiveBlocks",
    });
    await start("Next.");
    expect(await state()).toEqual({ ...NOTHING, totalBlocks: 2 });
  });

  test("holds the waiting calls until they are answered", async () => {
    const { start, decide, state } = stageAsking({
      version,
      turns: [[del("/x", "a"), del("/ok", "b"), del("/y", "c")], "end"],
    });
    await start();
    expect((await state()).waiting).toEqual([
      { id: "a", name: "delete_file", args: { path: "/x" } },
      { id: "c", name: "delete_file", args: { path: "/y" } },
    ]);
    await decide(approve, approve);
    expect((await state()).waiting).toEqual([]);
  });

  test("is read under the middleware's own label", async () => {
    const { start, agent, config } = stageAsking({
      version,
      turns: [del("/x"), "end"],
      options: { label: "files", whenLimitReached: haltRun() },
    });
    await start();
    const snapshot = await agent.graph.getState(config);
    expect(autoModeState(snapshot, "files").totalBlocks).toBe(1);
    expect(autoModeState(snapshot)).toEqual(NOTHING);
  });

  test("of an earlier checkpoint is what it was then", async () => {
    const { start, agent, config } = stageAsking({
      version,
      turns: [del("/x"), del("/x"), "end"],
      options: { limits: {}, whenLimitReached: haltRun() },
    });
    await start();
    const totals: number[] = [];
    for await (const snapshot of agent.graph.getStateHistory(config))
      totals.push(autoModeState(snapshot).totalBlocks);
    expect([...new Set(totals)]).toEqual([2, 1, 0]);
  });
});

describe("a snapshot", () => {
  const waiting = [
    {
      id: "a",
      index: 0,
      name: "delete_file",
      digest: "d",
      judged: "verdict" as const,
      cause: { kind: "precheck" as const },
    },
  ];
  const thread: ThreadState = {
    ...INITIAL,
    turn: "t",
    step: { messageId: "m", base: INITIAL.limitStatus, calls: [], waiting, approvals: [] },
  };
  test.each<[string, unknown]>([
    ["without values", { values: undefined }],
    ["with empty values", { values: {} }],
    ["without messages", { values: { _autoMode: thread } }],
    ["whose proposal is gone", { values: { _autoMode: thread, messages: [] } }],
    ["whose call is another", { values: { _autoMode: thread, messages: [proposal("z")] } }],
  ])("%s shows no waiting call", (_title, snapshot) => {
    expect(autoModeState(snapshot as { values: unknown })).toEqual(NOTHING);
  });

  test("with them shows them", () => {
    const { waiting: shown } = autoModeState({ values: { _autoMode: thread, messages: [proposal("a")] } });
    expect(shown).toEqual([{ id: "a", name: "delete_file", args: {} }]);
  });

  test("and what is read from it share nothing that could be changed", () => {
    const state = autoModeState({ values: { _autoMode: thread, messages: [proposal("a")] } });
    state.totalBlocks = 7;
    state.waiting.pop();
    expect(autoModeState({ values: { _autoMode: thread, messages: [proposal("a")] } })).toMatchObject({
      totalBlocks: 0,
      waiting: [{ id: "a" }],
    });
  });
});

function proposal(id: string): AIMessage {
  const call = { id, name: "delete_file", args: {}, type: "tool_call" as const };
  return new AIMessage({ id: "m", content: "", tool_calls: [call] });
}

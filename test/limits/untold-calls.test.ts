import { ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver, interrupt } from "@langchain/langgraph";
import fc from "fast-check";
import { tool } from "langchain";
import { autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Outcome } from "../../src/decision-record.js";
import { ZERO, countStep } from "../../src/limits/counters.js";
import type { CountedCall } from "../../src/limits/state.js";
import { UntoldCalls } from "../../src/limits/untold-calls.js";
import { VERSIONS, stage } from "../kit/agent.js";
import { onToolCall } from "../kit/middlewares.js";
import { call, del, read } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const LIMITS = { consecutiveBlocks: 3, totalBlocks: 20, consecutiveUnavailable: 10 };
const CONFIG = { configurable: { thread_id: "t" } };
const counted = (index: number, outcome: Outcome): CountedCall => ({
  index,
  key: `${index}:`,
  outcome,
  judged: outcome === "unavailable" ? "unavailable" : "verdict",
});

const inOrder = (calls: readonly CountedCall[]): CountedCall[] => calls.toSorted((a, b) => a.index - b.index);

describe("the state", () => {
  test("is told nothing of allowed calls while no count has to be cleared", () => {
    const untold = new UntoldCalls({ ...ZERO, totalBlocks: 7 });
    expect([0, 1, 2].map((index) => untold.tell([counted(index, "allowed")]))).toEqual([[], [], []]);
  });

  test("is told of an allowed call that clears a count", () => {
    const calls = [counted(0, "allowed")];
    expect(new UntoldCalls({ ...ZERO, consecutiveBlocks: 1 }).tell(calls)).toEqual(calls);
    expect(new UntoldCalls({ ...ZERO, consecutiveUnavailable: 1 }).tell(calls)).toEqual(calls);
  });

  test("is told of every call of a step in which one is known to be stopped", () => {
    const untold = new UntoldCalls(ZERO);
    untold.tellAll();
    expect(untold.tell([counted(1, "allowed")])).toEqual([counted(1, "allowed")]);
  });

  test("hears in the end of all that counts, in whatever order the calls end", () => {
    const outcome = fc.constantFrom<Outcome>("allowed", "allowed", "blocked", "unavailable", "malformed");
    const inAnyOrder = fc.array(outcome, { maxLength: 8 }).chain((outcomes) =>
      fc.shuffledSubarray(
        outcomes.map((each, index) => counted(index, each)),
        { minLength: outcomes.length },
      ),
    );
    fc.assert(
      fc.property(inAnyOrder, fc.integer({ min: 0, max: 2 }), (calls, row) => {
        const counters = { ...ZERO, consecutiveBlocks: row, totalBlocks: row };
        const untold = new UntoldCalls(counters);
        const told = calls.flatMap((ended) => untold.tell([ended]));
        expect(new Set(told.map(({ key }) => key)).size).toBe(told.length);
        expect(countStep({ counters }, inOrder(told), LIMITS)).toEqual(
          countStep({ counters }, inOrder(calls), LIMITS),
        );
      }),
    );
  });
});

describe.each(VERSIONS)("allowed calls beside each other, %s", (version) => {
  test("their results go on as the tools gave them", async () => {
    const results: unknown[] = [];
    const outside = onToolCall(async (request, handler) => {
      const result = await handler(request);
      results.push(result);
      return result;
    });
    const { invoke } = stage({
      version,
      turns: [[del("/a"), read("/r"), del("/b"), del("/c")], "end"],
      outside: [outside],
    });
    await invoke();
    expect(results.map((result) => ToolMessage.isInstance(result))).toEqual([true, true, true, true]);
  });

  // The place of the one that is changed on its way and then blocked, and whether the others end before it.
  test.each([
    [0, "before it", 0],
    [0, "after it", 0],
    [1, "before it", 1],
    [1, "after it", 1],
  ] as const)(
    "one that is changed into a risky one, at place %d, counts in its place; the other ends %s",
    async (place, when, row) => {
      const events = new EventTarget();
      const ended = new Promise<void>((resolve) => {
        events.addEventListener("end", () => resolve(), { once: true });
      });
      const first = when === "before it" ? "ok" : "bad";
      const inside = onToolCall(async (request, handler) => {
        const { toolCall } = request;
        if (toolCall.id !== first) await ended;
        try {
          const args = toolCall.id === "bad" ? { path: "/prod" } : toolCall.args;
          return await handler({ ...request, toolCall: { ...toolCall, args } });
        } finally {
          if (toolCall.id === first) setTimeout(() => events.dispatchEvent(new Event("end")), 5);
        }
      });
      const calls = [del("/ok", "ok"), del("/bad", "bad")];
      const { agent, invoke } = stage({
        version,
        turns: [place === 0 ? calls.toReversed() : calls, "end"],
        classifier: fakeDecisionModel().always(({ args }) => (args.path === "/prod" ? 0.9 : 0)),
        inside: [inside],
        checkpointer: new MemorySaver(),
        config: CONFIG,
      });
      await invoke();
      expect(autoModeState(await agent.graph.getState(CONFIG))).toMatchObject({
        consecutiveBlocks: row,
        totalBlocks: 1,
      });
    },
  );

  test("a call that is judged anew after its interrupt, and blocked, never finds the row too short", async () => {
    const asking = tool(({ path }) => `${path} ${String(interrupt("really?"))}`, {
      name: "ask_first",
      description: "Asks.",
      schema: z.object({ path: z.string() }),
    });
    const box = toolBox();
    let risk = 0;
    const { agent, invoke } = stage({
      version,
      turns: [[call("ask_first", { path: "/q" }, "q"), del("/ok", "ok")], "end"],
      classifier: fakeDecisionModel().always(({ name }) => (name === "ask_first" ? risk : 0)),
      options: { tools: ["delete_file", "ask_first"] },
      box,
      tools: [box.deleteFile, asking],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    await invoke();
    risk = 0.9;
    await agent.invoke(new Command({ resume: "yes" }), CONFIG);
    const { consecutiveBlocks, totalBlocks } = autoModeState(await agent.graph.getState(CONFIG));
    expect(totalBlocks).toBe(1);
    // In nodes of their own the other call has ended before, which is not known any more: it may stay uncounted.
    expect(consecutiveBlocks).toBe(version === "v1" ? 0 : 1);
  });
});

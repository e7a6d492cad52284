import { ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, stage } from "../kit/agent.js";
import { onToolCall } from "../kit/middlewares.js";
import { del, read } from "../kit/model.js";

const CONFIG = { configurable: { thread_id: "t" } };

describe.each(VERSIONS)("allowed calls in parallel, %s", (version) => {
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
    [0, "before it"],
    [0, "after it"],
    [1, "before it"],
    [1, "after it"],
  ] as const)(
    "one that is changed into a risky one, at place %d, counts as a block; the other ends %s and resets nothing",
    async (place, when) => {
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
        consecutiveBlocks: 1,
        totalBlocks: 1,
      });
    },
  );
});

import { getEventListeners } from "node:events";
import { MemorySaver } from "@langchain/langgraph";
import { ClassificationError, type PrecheckAnswer, autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, causes, rejection, stage } from "../kit/agent.js";
import { Deferred } from "../kit/deferred.js";
import { onToolCall } from "../kit/middlewares.js";
import { del } from "../kit/model.js";

const CONFIG = { configurable: { thread_id: "t" } };
const NEVER = new Promise<never>(() => {});
const soon = () => new Promise((resolve) => setImmediate(resolve));

describe.each(VERSIONS)("an abort by the user, %s", (version) => {
  test.each(["throw", "continue"] as const)(
    "while the classifier is asked: it comes out as an abort, the tool does not run, nothing counts (%s)",
    async (onUnavailable) => {
      const controller = new AbortController();
      const answer = new Deferred<number>();
      const classifier = fakeDecisionModel().respondWith(() => {
        controller.abort();
        return answer.promise;
      });
      const scene = stage({
        version,
        turns: [del("/a"), "end"],
        classifier,
        options: { onUnavailable },
        checkpointer: new MemorySaver(),
        config: { ...CONFIG, signal: controller.signal },
      });
      const error = await rejection(scene.invoke());
      expect(causes(error).map((cause) => (cause as Error).name)).toContain("AbortError");
      expect(ClassificationError.isInstance(error)).toBe(false);
      expect(classifier.requests[0]?.signal?.aborted).toBe(true);
      answer.resolve(0);
      await soon();
      expect(scene.box.ran).toEqual([]);
      expect(scene.records).toEqual([]);
      expect(autoModeState(await scene.agent.graph.getState(CONFIG))).toMatchObject({
        totalBlocks: 0,
        consecutiveUnavailable: 0,
      });
    },
  );

  test("before the run: nobody is asked and nothing runs", async () => {
    const classifier = fakeDecisionModel().always(0);
    const scene = stage({ version, turns: [del("/a")], classifier, config: { signal: AbortSignal.abort() } });
    await rejection(scene.invoke());
    expect(classifier.callCount).toBe(0);
    expect(scene.box.ran).toEqual([]);
  });

  test("while a changed call is judged again: the tool does not run", async () => {
    const controller = new AbortController();
    const classifier = fakeDecisionModel()
      .respond(0)
      .respondWith(() => {
        controller.abort();
        return NEVER;
      });
    const scene = stage({
      version,
      turns: [del("/a")],
      classifier,
      config: { signal: controller.signal },
      inside: [
        onToolCall((request, handler) =>
          handler({ ...request, toolCall: { ...request.toolCall, args: { path: "/b" } } }),
        ),
      ],
    });
    await rejection(scene.invoke());
    await soon();
    expect(scene.box.ran).toEqual([]);
  });

  test("while an inner middleware keeps an allowed call: its record claims no start", async () => {
    const controller = new AbortController();
    const left = new Deferred<void>();
    const scene = stage({
      version,
      turns: [del("/a"), "end"],
      config: { signal: controller.signal },
      inside: [
        onToolCall(async (request, handler) => {
          controller.abort();
          await soon();
          try {
            return await handler(request);
          } finally {
            left.resolve();
          }
        }),
      ],
    });
    await rejection(scene.invoke());
    await left.promise;
    await soon();
    expect(scene.box.ran).toEqual([]);
    expect(scene.records.map(({ outcome, executed }) => [outcome, executed])).toEqual([
      ["allowed", "not seen"],
    ]);
  });

  test("of a run that is still busy: going on from its checkpoint meanwhile waits for nothing of it", async () => {
    const controller = new AbortController();
    const entered = new Deferred<void>();
    let asked = 0;
    const scene = stage({
      version,
      turns: [del("/a"), "end"],
      checkpointer: new MemorySaver(),
      config: { ...CONFIG, signal: controller.signal },
      options: {
        precheck: async (): Promise<PrecheckAnswer> => {
          asked += 1;
          if (asked > 1) return "allow";
          entered.resolve();
          return NEVER;
        },
      },
    });
    const stopped = rejection(scene.invoke());
    await entered.promise;
    controller.abort();
    await stopped;
    await scene.agent.invoke(null as never, CONFIG);
    expect(scene.box.ran).toHaveLength(1);
  });

  test("no listener of the guard stays on the caller's signal", async () => {
    const counts = [];
    for (const tools of [["delete_file"], ["nothing"]]) {
      const { signal } = new AbortController();
      const turns = [...Array.from({ length: 6 }, () => [del("/a"), del("/b")]), "end"];
      const scene = stage({
        version,
        turns,
        options: { tools, onUnknownTool: "ignore" },
        config: { signal },
      });
      await scene.invoke();
      counts.push(getEventListeners(signal, "abort").length);
    }
    expect(counts[0]).toBe(counts[1]);
  });
});

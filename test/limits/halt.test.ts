import { HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent, createMiddleware, providerStrategy, toolStrategy } from "langchain";
import { type Counters, autoModeMiddleware, autoModeState, haltRun } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { VERSIONS, answersTo, textOf } from "../kit/agent.js";
import { type AskingScene, answerCounts, badlyAnswered, byPath, stageAsking, thread } from "../kit/asking.js";
import { del, read, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

/** A thread whose guard halts, with the default limits unless the scene says otherwise. */
const stageHalting = (scene: AskingScene) =>
  stageAsking({ ...scene, options: { limits: {}, whenLimitReached: haltRun(), ...scene.options } });
const many = (count: number, path = "/x") => Array.from({ length: count }, () => del(path));
const counters = (row: number, total: number, failed = 0): Counters => ({
  consecutiveBlocks: row,
  totalBlocks: total,
  consecutiveUnavailable: failed,
});

describe.each(VERSIONS)("a run that is halted, %s", (version) => {
  test("ends at the third block in a row: no further model call, nothing ran, every call is answered", async () => {
    const { start, model, box } = stageHalting({ version, turns: many(9) });
    const { messages } = await start();
    expect(model.callCount).toBe(3);
    expect(box.ran).toEqual([]);
    expect(Object.values(answerCounts(messages))).toEqual([1, 1, 1]);
  });

  test("says so in a last message that a program can tell", async () => {
    const { start } = stageHalting({ version, turns: many(9) });
    const last = (await start()).messages.at(-1);
    expect(last?.type).toBe("ai");
    expect(last?.additional_kwargs).toEqual({
      lc_source: "auto_mode",
      auto_mode: { limit: "consecutiveBlocks", counters: counters(3, 3) },
    });
    expect(textOf(last)).toMatch(/too many calls in a row were blocked/);
    expect(last?.id).toBeTruthy();
  });

  test("ends with the configured message", async () => {
    const { start } = stageHalting({
      version,
      turns: many(9),
      options: { whenLimitReached: haltRun({ message: "Stopped by policy. $& {x}" }) },
    });
    expect(textOf((await start()).messages.at(-1))).toBe("Stopped by policy. $& {x}");
  });

  test("is usable again: a new message starts afresh", async () => {
    const { start, box, model } = stageHalting({ version, turns: [...many(3), del("/ok"), "fine"] });
    await start();
    const { messages } = await start("Then something else.");
    expect(textOf(messages.at(-1))).toBe("fine");
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok" } }]);
    expect(badlyAnswered(model)).toEqual([]);
  });

  test("three risky calls in one message: counted three times, the limit acts once", async () => {
    const { start, state, model } = stageHalting({ version, turns: [many(3), ...many(5)] });
    const { messages } = await start();
    expect(model.callCount).toBe(1);
    expect(await state()).toMatchObject(counters(3, 3));
    expect(messages.filter(({ additional_kwargs: kwargs }) => "auto_mode" in kwargs)).toHaveLength(1);
  });

  test("a block and then an allowed call in the message that reaches the limit: it is reached", async () => {
    const { start, model, box } = stageHalting({
      version,
      turns: [many(2), [del("/x"), del("/ok")], "not reached"],
    });
    await start();
    expect(model.callCount).toBe(2);
    expect(box.ran).toHaveLength(1);
  });

  test("allowed calls between blocks begin the count in a row again", async () => {
    const turns = [...many(2), del("/ok"), ...many(2), "end"];
    const { start, state } = stageHalting({ version, turns });
    expect(textOf((await start()).messages.at(-1))).toBe("end");
    expect(await state()).toEqual({ ...counters(2, 4), limit: undefined, waiting: [] });
  });

  test("an unlisted call between blocks changes nothing", async () => {
    const turns = [...many(2), read("/r"), del("/x"), "not reached"];
    const { start, model } = stageHalting({ version, turns });
    await start();
    expect(model.callCount).toBe(4);
  });

  describe("by the total of the thread", () => {
    test("which adds up over turns and never starts again", async () => {
      const turns = [del("/x"), "one", del("/x"), "two", del("/x"), "not reached"];
      const { start, model } = stageHalting({ version, turns, options: { limits: { totalBlocks: 3 } } });
      await start();
      await start("b");
      const { messages } = await start("c");
      expect(model.callCount).toBe(5);
      expect(messages.at(-1)?.additional_kwargs).toMatchObject({ auto_mode: { limit: "totalBlocks" } });
    });

    test("after which acceptable calls still run, and the next block halts at once", async () => {
      const turns = [...many(2), del("/ok1"), del("/x"), del("/ok2"), "fine"];
      const { start, box, model } = stageHalting({ version, turns, options: { limits: { totalBlocks: 2 } } });
      await start();
      await start("b");
      expect(model.callCount).toBe(4);
      expect(textOf((await start("c")).messages.at(-1))).toBe("fine");
      expect(box.ranWith("delete_file")).toEqual([{ path: "/ok1" }, { path: "/ok2" }]);
    });
  });

  describe("by failures of the classifier in a row", () => {
    const options = { onUnavailable: "continue" } as const;

    test("ten steps, however many calls each had", async () => {
      const { start, model, state } = stageHalting({
        version,
        classifier: fakeDecisionModel().alwaysFail("timeout"),
        turns: Array.from({ length: 15 }, () => many(2)),
        options,
      });
      const { messages } = await start();
      expect(model.callCount).toBe(10);
      expect(textOf(messages.at(-1))).toMatch(/could not be evaluated too many times in a row/);
      expect(await state()).toMatchObject(counters(0, 0, 10));
    });

    test("a step that got its verdicts begins the count in a row again, a block included", async () => {
      const classifier = fakeDecisionModel().fail("error").respond(0.9).fail("error").always(0);
      const { start, state } = stageHalting({
        version,
        classifier,
        turns: [del("/1"), del("/2"), del("/3"), "end"],
        options: { ...options, limits: { consecutiveUnavailable: 2 } },
      });
      expect(textOf((await start()).messages.at(-1))).toBe("end");
      expect(await state()).toMatchObject(counters(1, 1, 1));
    });

    test("a new turn begins the count in a row again", async () => {
      const { start, state } = stageHalting({
        version,
        classifier: fakeDecisionModel().alwaysFail("error"),
        turns: [del("/x"), "one", del("/x"), "two"],
        options: { ...options, limits: { consecutiveUnavailable: 2 } },
      });
      await start();
      expect(textOf((await start("b")).messages.at(-1))).toBe("two");
      expect(await state()).toMatchObject({ consecutiveUnavailable: 1, limit: undefined });
    });
  });

  describe("with a structured response format", () => {
    const Ok = z.object({ ok: z.boolean() });
    test.each([
      ["a tool strategy", toolStrategy(Ok)],
      ["a provider strategy", providerStrategy(Ok)],
    ])("%s: it ends without one", async (_title, responseFormat) => {
      const model = scripted(...many(9));
      const agent = createAgent({
        model,
        tools: toolBox().all,
        middleware: [autoModeMiddleware({ tools: ["delete_file"], classifier: byPath() })],
        responseFormat: responseFormat as never,
        version,
      });
      const result = (await agent.invoke({ messages: [new HumanMessage("Go.")] })) as unknown as {
        messages: HumanMessage[];
        structuredResponse?: unknown;
      };
      expect(model.callCount).toBe(3);
      expect(result.structuredResponse).toBeUndefined();
      expect(result.messages.at(-1)?.type).toBe("ai");
    });
  });

  describe("among other middlewares", () => {
    test("their afterAgent hooks run", async () => {
      const ended: string[] = [];
      const closing = createMiddleware({ name: "closing", afterAgent: () => void ended.push("closed") });
      for (const place of ["outside", "inside"] as const)
        await stageHalting({ version, turns: many(9), [place]: [closing] }).start();
      expect(ended).toEqual(["closed", "closed"]);
    });

    test("one that jumps back to the model gets no further model call in this turn", async () => {
      let jumps = 0;
      const pushing = createMiddleware({
        name: "pushing",
        afterAgent: {
          canJumpTo: ["model"],
          hook: () => ((jumps += 1) < 4 ? { jumpTo: "model" as const } : undefined),
        },
      });
      const { start, model } = stageHalting({ version, turns: many(9), inside: [pushing] });
      await start();
      expect(jumps).toBe(4);
      expect(model.callCount).toBe(3);
    });

    test("hooks that return values change no count", async () => {
      const noisy = createMiddleware({
        name: "noisy",
        stateSchema: z.object({ noise: z.number().optional() }),
        beforeAgent: () => ({ noise: 0 }),
        beforeModel: () => ({}),
        afterModel: () => ({ noise: 1 }),
        afterAgent: () => ({}),
      });
      for (const place of ["outside", "inside"] as const) {
        const { start, state } = stageHalting({ version, turns: [...many(2), "end"], [place]: [noisy] });
        expect(textOf((await start()).messages.at(-1))).toBe("end");
        expect(await state()).toMatchObject(counters(2, 2));
      }
    });
  });

  test.each(["values", "updates", ["values", "updates", "messages", "custom", "debug"]])(
    "streamed as %j the counts are the same",
    async (streamMode) => {
      const { agent, config, state, model } = stageHalting({ version, turns: many(9) });
      const input = { messages: [new HumanMessage("Go.")] };
      for await (const _chunk of await agent.stream(input, { ...config, streamMode } as never));
      expect(model.callCount).toBe(3);
      expect(await state()).toMatchObject(counters(3, 3));
    },
  );

  test("two threads on one middleware and one store, in turns: neither counts for the other", async () => {
    const guard = autoModeMiddleware({ tools: ["delete_file"], classifier: byPath() });
    const checkpointer = new MemorySaver();
    // Both threads have calls of the same ids.
    const model = scripted(...["1", "1", "2", "2"].flatMap((id) => [del("/x", id), "end"]));
    const agent = createAgent({ model, tools: toolBox().all, middleware: [guard], checkpointer, version });
    const threads = [thread(), thread()];
    for (const text of ["a", "b"])
      for (const config of threads) await agent.invoke({ messages: [new HumanMessage(text)] }, config);
    for (const config of threads)
      expect(autoModeState(await agent.graph.getState(config))).toMatchObject(counters(1, 2));
  });

  test("without a checkpointer every run counts on its own", async () => {
    const scene = {
      version,
      turns: [...many(2), "one", ...many(2), "two"],
      checkpointer: undefined as never,
    };
    const { start } = stageHalting(scene);
    expect(textOf((await start()).messages.at(-1))).toBe("one");
    expect(textOf((await start()).messages.at(-1))).toBe("two");
  });

  test("300 calls with 20 scattered blocks: the 20th block of the thread halts", async () => {
    const turns = Array.from({ length: 300 }, (_, index) => del(index % 15 === 7 ? "/x" : "/ok"));
    // Without a store, whose copies of so long a history would be most of the work.
    const scene = { version, turns, config: { recursionLimit: 1000 }, checkpointer: undefined as never };
    const { start, model, box } = stageHalting(scene);
    const { messages } = await start();
    expect(model.callCount).toBe(19 * 15 + 8);
    expect(box.ran).toHaveLength(19 * 14 + 7);
    expect(messages.at(-1)?.additional_kwargs).toMatchObject({ auto_mode: { limit: "totalBlocks" } });
    expect(answersTo(messages, turns[7]?.id ?? "")).toHaveLength(1);
  }, 60_000);
});

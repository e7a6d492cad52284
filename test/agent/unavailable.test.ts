import { MemorySaver } from "@langchain/langgraph";
import { tool } from "langchain";
import { ClassificationError, autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { VERSIONS, answerTo, play, rejection, stage, textOf } from "../kit/agent.js";
import { Deferred } from "../kit/deferred.js";
import { call, del, read } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const CONFIG = { configurable: { thread_id: "t" } };
const failing = (how: () => unknown) => ({ invoke: () => how() as never });

describe.each(VERSIONS)("without a verdict a call never runs, %s", (version) => {
  test.each<[string, () => unknown]>([
    [
      "throws at once",
      () => {
        throw new Error("503");
      },
    ],
    ["rejects", () => Promise.reject(new Error("503"))],
    ["rejects with a text", () => Promise.reject("down")],
    ["answers nothing", async () => undefined],
    ["answers {}", async () => ({})],
    ["answers null", async () => null],
    [
      "answers with a reason alone",
      async () => ({ answers: { call_1: { type: "noul", explanation: "fine" } } }),
    ],
    ["answers with NaN", async () => ({ answers: { call_1: { type: "noul", noul: NaN } } })],
    ["answers with a text", async () => ({ answers: { call_1: { type: "noul", noul: "0" } } })],
    ["answers another question", async () => ({ answers: { call_2: { type: "noul", noul: 0 } } })],
  ])("a classifier that %s", async (_how, respond) => {
    const { box, messages, records } = await play({
      version,
      turns: [del("/a", "a"), "end"],
      classifier: failing(respond),
      options: { onUnavailable: "continue" },
    });
    expect(box.ran).toEqual([]);
    expect(answerTo(messages, "a")).toMatchObject({ status: "error", name: "delete_file" });
    expect(records).toMatchObject([{ outcome: "unavailable", unavailableReason: "error" }]);
    expect(records[0]).not.toHaveProperty("risk");
    expect(textOf(messages.at(-1))).toBe("end");
  });

  test.each<[string, object]>([
    [
      "a rule",
      {
        precheck: () => {
          throw new Error("no rule");
        },
      },
    ],
    ["an environment", { environment: () => Promise.reject(new Error("no rule")) }],
  ])("%s that fails: its error is the cause of what comes out", async (_what, options) => {
    const scene = stage({ version, turns: [del("/a")], options });
    const error = await rejection(scene.invoke());
    expect(ClassificationError.find(error)).toMatchObject({ reason: "error", cause: { message: "no rule" } });
    expect(scene.box.ran).toEqual([]);
  });

  test("a classifier that never settles: given up at the limit, and its late answer is ignored", async () => {
    const late = new Deferred<number>();
    const classifier = fakeDecisionModel().respondWith(() => late.promise);
    const { box, messages, records } = await play({
      version,
      turns: [del("/a", "a"), "end"],
      classifier,
      options: { timeoutMs: 20, onUnavailable: "continue" },
    });
    expect(records).toMatchObject([{ outcome: "unavailable", unavailableReason: "timeout" }]);
    expect(textOf(answerTo(messages, "a"))).toMatch(/did not answer in time/);
    expect(classifier.requests[0]?.signal?.aborted).toBe(true);
    late.resolve(0);
    await new Promise((resolve) => setImmediate(resolve));
    expect(box.ran).toEqual([]);
    expect(records).toHaveLength(1);
  });

  test.each(["timeout", "input_too_long", "refused", "truncated", "error"] as const)(
    "a classifier that says why: %s comes out of the run, and stands in the record",
    async (reason) => {
      const cause = new ClassificationError(reason, { status: 418 });
      const scene = stage({ version, turns: [del("/a")], classifier: fakeDecisionModel().fail(cause) });
      const error = await rejection(scene.invoke());
      expect(ClassificationError.isInstance(error)).toBe(true);
      expect(ClassificationError.find(error)).toMatchObject({ reason, status: 418, cause });
      expect(scene.records).toMatchObject([{ outcome: "unavailable", unavailableReason: reason }]);
    },
  );
});

describe.each(VERSIONS)("an outage, %s", (version) => {
  test("does not read like a block, and a block not like an outage", async () => {
    const { messages, records } = await play({
      version,
      turns: [del("/a", "a"), del("/b", "b"), "end"],
      classifier: fakeDecisionModel().fail(new Error("503")).respond(0.9),
      options: { onUnavailable: "continue" },
    });
    const [outage, block] = [textOf(answerTo(messages, "a")), textOf(answerTo(messages, "b"))];
    expect(outage).toMatch(/was not evaluated.*not a refusal/);
    expect(outage).not.toMatch(/blocked|503/);
    expect(block).toMatch(/blocked/);
    expect(block).not.toMatch(/evaluated/);
    expect(records.map(({ counters }) => counters.totalBlocks)).toEqual([0, 1]);
  });

  test("by default the run rejects, after the step's other calls have ended and every call has its answer", async () => {
    const scene = stage({
      version,
      turns: [[read("/r", "r"), del("/none", "n"), del("/ok", "o")], "end", del("/c", "c"), "end"],
      classifier: fakeDecisionModel()
        .respondWith(({ args }) => (args.path === "/ok" ? 0 : undefined))
        .respond(0),
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const error = await rejection(scene.invoke());
    expect(ClassificationError.find(error)?.reason).toBe("error");
    expect(scene.box.ran.map(({ name }) => name).toSorted()).toEqual(["delete_file", "read_file"]);
    expect(scene.model.callCount).toBe(1);
    const { values } = (await scene.agent.graph.getState(CONFIG)) as { values: { messages: [] } };
    expect(["r", "n", "o"].map((id) => answerTo(values.messages, id).status)).toEqual([
      "success",
      "error",
      "success",
    ]);
    expect(textOf(answerTo(values.messages, "n"))).toMatch(/not evaluated.*The run ends with this error/);

    // New input lets the thread go on.
    const messages = await scene.invoke("Go on.");
    expect(textOf(messages.at(-1))).toBe("end");
    await scene.invoke("And again.");
    expect(scene.box.ranWith("delete_file")).toEqual([{ path: "/ok" }, { path: "/c" }]);
  });

  test("the error and its causes of ours repeat nothing of the call", async () => {
    const scene = stage({
      version,
      turns: [del("SECRET-PATH")],
      classifier: fakeDecisionModel().fail("refused"),
    });
    const error = ClassificationError.find(await rejection(scene.invoke("SECRET-WORDS")));
    expect(`${error?.message} ${JSON.stringify(error)} ${String(error?.stack)}`).not.toMatch(/SECRET/);
  });

  test("a returnDirect tool that ends the run first: nothing is thrown, message and record say what happened", async () => {
    const box = toolBox();
    const direct = tool(() => "at once", {
      name: "direct",
      description: "d",
      schema: z.object({}),
      returnDirect: true,
    });
    const { messages, records } = await play({
      version,
      turns: [[del("/a", "a"), call("direct", {}, "d")], "not reached"],
      classifier: fakeDecisionModel().fail("error"),
      box,
      tools: [box.deleteFile, direct],
    });
    expect(textOf(messages.at(-1))).toBe("at once");
    expect(textOf(answerTo(messages, "a"))).toMatch(/not evaluated/);
    expect(records).toMatchObject([{ outcome: "unavailable" }]);
  });

  test("an outage is counted by steps and is no block", async () => {
    const scene = stage({
      version,
      turns: [[del("/a"), del("/b")], del("/c"), "end"],
      classifier: fakeDecisionModel().alwaysFail("error"),
      options: { onUnavailable: "continue" },
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    await scene.invoke();
    expect(autoModeState(await scene.agent.graph.getState(CONFIG))).toMatchObject({
      consecutiveBlocks: 0,
      totalBlocks: 0,
      consecutiveUnavailable: 2,
    });
  });

  test("the classifier is asked once, whatever becomes of it", async () => {
    const classifier = fakeDecisionModel().alwaysFail(new Error("429"));
    await play({
      version,
      turns: [[del("/a"), del("/b")], "end"],
      classifier,
      options: { onUnavailable: "continue" },
    });
    expect(classifier.callCount).toBe(1);
  });
});

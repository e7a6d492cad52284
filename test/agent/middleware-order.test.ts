import { tool } from "langchain";
import {
  type AgentMiddleware,
  humanInTheLoopMiddleware,
  toolErrorMiddleware,
  toolRetryMiddleware,
} from "langchain";
import { AutoModeLimitError, ClassificationError, haltRun, throwOnLimit } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { VERSIONS, answerTo, rejection, textOf } from "../kit/agent.js";
import {
  answerCounts,
  approve,
  badlyAnswered,
  byPath,
  questionOf,
  reject,
  stageAsking,
} from "../kit/asking.js";
import { del, read } from "../kit/model.js";

const retry = () => toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, jitter: false });
const catchErrors = () => toolErrorMiddleware({ onError: (error) => `caught ${(error as Error).name}` });
type Around = { outside?: AgentMiddleware[]; inside?: AgentMiddleware[] };
const any = (middleware: unknown) => middleware as AgentMiddleware;

const ORDERS: [string, () => Around][] = [
  ["[toolRetry, autoMode]", () => ({ outside: [any(retry())] })],
  ["[autoMode, toolRetry]", () => ({ inside: [any(retry())] })],
  ["[toolError, autoMode]", () => ({ outside: [any(catchErrors())] })],
  ["[autoMode, toolError]", () => ({ inside: [any(catchErrors())] })],
  ["[toolRetry, toolError, autoMode]", () => ({ outside: [any(retry()), any(catchErrors())] })],
];
const cases = ORDERS.flatMap(([name, around]) => VERSIONS.map((version) => [name, version, around] as const));

describe.each(cases)("%s, %s", (_name, version, around) => {
  test("one model call gives at most one block, one record and one request per call", async () => {
    const classifier = byPath();
    const { start, state, box, records, model } = stageAsking({
      version,
      ...around(),
      classifier,
      turns: [[del("/x", "a"), del("/ok", "b"), del("/y", "c")], "end"],
      options: { limits: {}, whenLimitReached: haltRun() },
    });
    const { messages } = await start();
    expect(textOf(messages.at(-1))).toBe("end");
    expect(await state()).toMatchObject({ consecutiveBlocks: 1, totalBlocks: 2 });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok" } }]);
    expect(classifier.callCount).toBe(1);
    expect(records.map(({ toolCallId, outcome }) => `${toolCallId} ${outcome}`).toSorted()).toEqual([
      "a blocked",
      "b allowed",
      "c blocked",
    ]);
    expect(answerCounts(messages)).toEqual({ a: 1, b: 1, c: 1 });
    expect(badlyAnswered(model)).toEqual([]);
  });

  test("the third block in a row halts, not an earlier one", async () => {
    const { start, model } = stageAsking({
      version,
      ...around(),
      turns: [del("/1"), del("/2"), del("/3"), "not reached"],
      options: { limits: {}, whenLimitReached: haltRun() },
    });
    const { messages } = await start();
    expect(model.callCount).toBe(3);
    expect(messages.at(-1)?.additional_kwargs).toMatchObject({ lc_source: "auto_mode" });
  });

  test("a question reaches the caller, and the approved call runs once", async () => {
    const { start, decide, box, model } = stageAsking({
      version,
      ...around(),
      turns: [[del("/x", "a"), read("/r", "b")], "end"],
    });
    expect(questionOf(await start()).actionRequests).toHaveLength(1);
    const { messages } = await decide(approve);
    expect(textOf(messages.at(-1))).toBe("end");
    expect(box.ran.map(({ name }) => name).toSorted()).toEqual(["delete_file", "read_file"]);
    expect(badlyAnswered(model)).toEqual([]);
  });

  test("a failure of the classifier ends the run with its reason, and the call does not run", async () => {
    const { start, box, agent, config } = stageAsking({
      version,
      ...around(),
      classifier: fakeDecisionModel().alwaysFail("timeout"),
      turns: [del("/x", "a"), "not reached"],
    });
    expect(ClassificationError.find(await rejection(start()))).toMatchObject({ reason: "timeout" });
    expect(box.ran).toEqual([]);
    const { values } = await agent.graph.getState(config);
    expect(answerCounts((values as { messages: never[] }).messages)).toEqual({ a: 1 });
  });

  test("the error of a limit reaches the caller", async () => {
    const { start } = stageAsking({
      version,
      ...around(),
      turns: [del("/x"), "not reached"],
      options: { whenLimitReached: throwOnLimit() },
    });
    expect(AutoModeLimitError.find(await rejection(start()))).toMatchObject({
      counters: { consecutiveBlocks: 1, totalBlocks: 1 },
    });
  });
});

/** A tool that fails the first times it is called. */
function flaky(times: number) {
  let calls = 0;
  const made = tool(
    () => {
      calls += 1;
      if (calls <= times) throw new Error(`failure ${calls}`);
      return "worked";
    },
    { name: "delete_file", description: "d", schema: z.object({ path: z.string() }) },
  );
  return { made, calls: () => calls };
}

describe.each(VERSIONS)("a tool that fails, %s", (version) => {
  const options = { limits: {}, whenLimitReached: haltRun() };

  test.each<[string, () => Around]>([
    ["outside", () => ({ outside: [any(retry())] })],
    ["inside", () => ({ inside: [any(retry())] })],
  ])("and is retried %s the guard: judged and recorded once, and counted once", async (_place, around) => {
    const { made, calls } = flaky(2);
    const classifier = byPath();
    const { start, records, state } = stageAsking({
      version,
      ...around(),
      classifier,
      tools: [made],
      turns: [del("/x"), del("/ok", "a"), "end"],
      options,
    });
    const { messages } = await start();
    expect(calls()).toBe(3);
    expect(textOf(answerTo(messages, "a"))).toBe("worked");
    expect(classifier.callCount).toBe(2);
    expect(records.map(({ outcome }) => outcome)).toEqual(["blocked", "allowed"]);
    expect(await state()).toMatchObject({ consecutiveBlocks: 0, totalBlocks: 1 });
  });

  test.each<[string, () => Around]>([
    ["outside", () => ({ outside: [any(catchErrors())] })],
    ["inside", () => ({ inside: [any(catchErrors())] })],
  ])(
    "and is caught %s the guard: the agent reads about it, and no block is counted",
    async (_place, around) => {
      const { made } = flaky(9);
      const { start, state } = stageAsking({
        version,
        ...around(),
        tools: [made],
        turns: [del("/ok", "a"), "end"],
        options,
      });
      const { messages } = await start();
      expect(textOf(answerTo(messages, "a"))).toMatch(/caught/);
      expect(await state()).toMatchObject({ consecutiveBlocks: 0, totalBlocks: 0 });
    },
  );

  test("after an approval, and is retried outside: the person is not asked again", async () => {
    const { made, calls } = flaky(2);
    const { start, decide } = stageAsking({
      version,
      outside: [any(retry())],
      tools: [made],
      turns: [del("/x", "a"), "end"],
    });
    await start();
    const { messages, questions } = await decide(approve);
    expect([questions, calls()]).toEqual([[], 3]);
    expect(textOf(answerTo(messages, "a"))).toBe("worked");
  });
});

describe.each(VERSIONS)("a human in the loop next to the guard, %s", (version) => {
  const places = ["outside", "inside"] as const;

  test.each(places)("%s: both ask, each about its own call, and nothing runs twice", async (place) => {
    const loop = any(humanInTheLoopMiddleware({ interruptOn: { read_file: true } }));
    const { start, decide, box, model } = stageAsking({
      version,
      [place]: [loop],
      turns: [read("/r", "r"), del("/x", "a"), "end"],
    });
    expect(questionOf(await start()).actionRequests[0]?.name).toBe("read_file");
    expect(questionOf(await decide(approve)).actionRequests[0]?.name).toBe("delete_file");
    const { messages } = await decide(approve);
    expect(textOf(messages.at(-1))).toBe("end");
    expect(box.ran.map(({ name }) => name)).toEqual(["read_file", "delete_file"]);
    expect(badlyAnswered(model)).toEqual([]);
  });

  // The human in the loop goes back to the model then, and leaves the step's other call without an answer.
  test.each(places)("%s: one of two calls is rejected there: the other starts nowhere", async (place) => {
    const loop = any(humanInTheLoopMiddleware({ interruptOn: { read_file: true } }));
    const { start, decide, box } = stageAsking({
      version,
      [place]: [loop],
      turns: [[read("/r", "r"), del("/ok", "a")], "end"],
    });
    await start();
    const { questions } = await decide(reject("not that"));
    expect([questions, box.ran]).toEqual([[], []]);
  });

  test.each(places)("%s: one of two calls is approved there, the other rejected here", async (place) => {
    const loop = any(humanInTheLoopMiddleware({ interruptOn: { read_file: true } }));
    const { start, decide, box, model } = stageAsking({
      version,
      [place]: [loop],
      turns: [[read("/r", "r"), del("/x", "a")], "end"],
    });
    await start();
    expect(questionOf(await decide(approve)).actionRequests[0]?.name).toBe("delete_file");
    const { messages } = await decide(reject("not that"));
    expect(box.ran.map(({ name }) => name)).toEqual(["read_file"]);
    expect(answerCounts(messages)).toEqual({ r: 1, a: 1 });
    expect(badlyAnswered(model)).toEqual([]);
  });

  test.each(places)("%s: a call that a person approved there is judged here all the same", async (place) => {
    const loop = any(humanInTheLoopMiddleware({ interruptOn: { delete_file: true } }));
    const { start, decide, box } = stageAsking({
      version,
      [place]: [loop],
      turns: [del("/x", "a"), "end"],
      options: { limits: {}, whenLimitReached: haltRun() },
    });
    await start();
    const { messages } = await decide(approve);
    expect(answerTo(messages, "a").status).toBe("error");
    expect(box.ran).toEqual([]);
  });

  test.each(places)("%s: what a person edited there is judged as edited", async (place) => {
    const classifier = byPath();
    const loop = any(humanInTheLoopMiddleware({ interruptOn: { delete_file: true } }));
    const { start, decide, box } = stageAsking({
      version,
      [place]: [loop],
      classifier,
      turns: [del("/x", "a"), "end"],
    });
    await start();
    await decide({ type: "edit", editedAction: { name: "delete_file", args: { path: "/ok-edited" } } });
    expect(classifier.judged.map(({ args }) => args.path)).toEqual(["/ok-edited"]);
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok-edited" } }]);
  });
});

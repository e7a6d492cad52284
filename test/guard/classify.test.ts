import { getEventListeners } from "node:events";
import type { ClassifierRequest, ClassifierResponse } from "@langchain/core/decisions";
import type { RunnableConfig } from "@langchain/core/runnables";
import { ClassificationError } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Classifier, type JudgeOptions, classifierName, judgeCalls } from "../../src/guard/classify.js";
import { rejection } from "../kit/agent.js";

const REQUEST: ClassifierRequest = {
  state: {},
  questions: { call_1: { type: "noul", instructions: "Is it risky?" } },
};
const ask = (classifier: Classifier, count = 1, options: Partial<JudgeOptions> = {}) =>
  judgeCalls(classifier, REQUEST, count, { timeoutMs: 1_000, ...options });

/** A classifier that is no decision model, and may answer anything. */
const answering = (respond: (config: Partial<RunnableConfig>) => unknown): Classifier => ({
  invoke: (_request, config) => respond(config ?? {}) as Promise<ClassifierResponse>,
});
const saying = (response: unknown) => answering(async () => response);
const risk = (value: unknown) => ({ type: "noul", noul: value });
const NEVER = new Promise<never>(() => {});

describe("a request to the classifier", () => {
  test("carries a name, a tag that keeps tokens out of the stream, a signal and metadata without content", async () => {
    let seen: Partial<RunnableConfig> | undefined;
    const classifier = answering(async (config) => {
      seen = config;
      return { answers: {} };
    });
    await ask(classifier, 1, { metadata: { label: "x" } });
    expect(seen).toMatchObject({
      runName: "auto_mode",
      tags: ["langsmith:nostream"],
      metadata: { label: "x" },
    });
    expect(seen?.signal).toBeInstanceOf(AbortSignal);
    await ask(classifier);
    expect(seen).not.toHaveProperty("metadata");
  });

  test("the answers come in the order of the calls, each with what was said of it", async () => {
    const judgment = await ask(
      saying({
        model: "m-1",
        answers: { call_2: risk(0.2), call_1: risk(0.9), kind_1: { type: "choice", choice: "secrets" } },
        usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
        requestId: "r-1",
      }),
      2,
    );
    expect(judgment).toEqual({
      answered: [{ risk: 0.9, kind: "secrets" }, { risk: 0.2 }],
      classifier: "m-1",
      usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
      requestId: "r-1",
      latencyMs: expect.any(Number) as number,
    });
  });

  test("an answer that leaves a call out fails that call alone", async () => {
    const { answered } = await ask(saying({ answers: { call_1: risk(0), call_3: risk(1) } }), 3);
    expect(answered).toEqual([{ risk: 0 }, { unavailable: "error" }, { risk: 1 }]);
  });

  test.each([
    ["nothing", undefined],
    ["null", null],
    ["a text", "0.1"],
    ["a number", 0],
    ["an empty object", {}],
    ["answers that are null", { answers: null }],
    ["a reason without a risk", { answers: { call_1: { type: "noul", explanation: "fine" } } }],
    ["a risk that is no number", { answers: { call_1: risk("0") } }],
  ])("a response that is %s is no verdict, and no crash", async (_what, response) => {
    expect(await ask(saying(response))).toMatchObject({
      answered: [{ unavailable: "error" }],
      classifier: "unknown",
    });
  });
});

const getter = (name: string, rest: object = {}) =>
  Object.defineProperty({ ...rest }, name, {
    get: () => {
      throw new Error("no");
    },
  });

describe("a response that cannot be trusted", () => {
  const unreadable = new Proxy(
    {},
    {
      get: () => {
        throw new Error("no");
      },
      ownKeys: () => {
        throw new Error("no");
      },
      getOwnPropertyDescriptor: () => {
        throw new Error("no");
      },
    },
  );
  test.each<[string, unknown]>([
    ["answers", getter("answers")],
    ["a list of answers", { answers: unreadable }],
    ["an answer", { answers: { call_1: unreadable } }],
    ["a model's name", getter("model", { answers: { call_1: risk(0) } })],
    ["usage", { answers: { call_1: risk(0) }, usage_metadata: unreadable }],
  ])("%s that throws when it is read is no verdict, and no crash", async (_what, response) => {
    expect((await ask(saying(response))).answered).toEqual([{ unavailable: "error" }]);
  });

  test("an error that throws when it is read is an error like any other", async () => {
    const errors = [
      getter("cause", new Error("x")),
      Object.defineProperty(new Error("x"), "cause", { get: () => unreadable }),
      new ClassificationError("truncated", { answers: unreadable }),
      unreadable,
    ];
    for (const error of errors)
      expect((await ask(fakeDecisionModel().fail(error as Error))).answered).toEqual([
        { unavailable: "error" },
      ]);
  });

  test("a reason that is none of those that are known is an error", async () => {
    const error = new ClassificationError("quota of Jane" as "error");
    expect((await ask(fakeDecisionModel().fail(error))).answered).toEqual([{ unavailable: "error" }]);
  });

  test("of its usage only numbers are kept, of its request's id only a text", async () => {
    const cycle: Record<string, unknown> = { input_tokens: 3, text: "SECRET", huge: 1n, nan: NaN };
    cycle["input_token_details"] = { cache_read: 1, text: "SECRET", deeper: { x: 1 } };
    cycle["itself"] = cycle;
    const judgment = await ask(
      saying({ answers: { call_1: risk(0) }, usage_metadata: cycle, requestId: { secret: 1 } }),
    );
    expect(judgment.usage).toEqual({
      input_tokens: 3,
      input_token_details: { cache_read: 1 },
      itself: { input_tokens: 3 },
    });
    expect(Object.isFrozen(judgment.usage)).toBe(true);
    expect(judgment).not.toHaveProperty("requestId");
  });
});

describe("a classifier that fails", () => {
  test.each([
    [
      "throws at once",
      () => {
        throw new Error("503");
      },
    ],
    ["rejects with an error", () => Promise.reject(new Error("503"))],
    ["rejects with a text", () => Promise.reject("down")],
    ["rejects with nothing", () => Promise.reject(undefined)],
    ["rejects with null", () => Promise.reject(null)],
    ["rejects with false", () => Promise.reject(false)],
  ])("that %s gives no verdict on any call", async (_how, respond) => {
    const judgment = await ask(answering(respond), 2);
    expect(judgment.answered).toEqual([{ unavailable: "error" }, { unavailable: "error" }]);
    expect(judgment.error).toBeDefined();
  });

  test.each(["timeout", "input_too_long", "refused", "truncated", "error"] as const)(
    "may say why: %s",
    async (reason) => {
      expect((await ask(fakeDecisionModel().fail(reason))).answered).toEqual([{ unavailable: reason }]);
      const wrapped = new Error("host", { cause: new ClassificationError(reason) });
      expect((await ask(fakeDecisionModel().fail(wrapped))).answered).toEqual([{ unavailable: reason }]);
    },
  );

  test("may have answered some calls: those keep their verdicts, if they are valid", async () => {
    const error = new ClassificationError("truncated", {
      answers: { call_1: risk(0.9), call_2: risk(NaN), call_3: risk(0.1), call_9: risk(0) },
    });
    const judgment = await ask(fakeDecisionModel().fail(error), 4);
    expect(judgment.answered).toEqual([
      { risk: 0.9 },
      { unavailable: "truncated" },
      { risk: 0.1 },
      { unavailable: "truncated" },
    ]);
    expect(judgment.error).toBe(error);
  });

  test("is asked once: retries are its own business", async () => {
    const classifier = fakeDecisionModel().alwaysFail("error");
    await ask(classifier);
    expect(classifier.callCount).toBe(1);
  });
});

describe("a time limit", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test("a classifier that never settles is given up at the limit, and asked to stop", async () => {
    let signal: AbortSignal | undefined;
    const asked = ask(
      answering((config) => {
        ({ signal } = config);
        return NEVER;
      }),
      2,
      { timeoutMs: 100 },
    );
    await vi.advanceTimersByTimeAsync(99);
    expect(signal?.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    const judgment = await asked;
    expect(judgment.answered).toEqual([{ unavailable: "timeout" }, { unavailable: "timeout" }]);
    expect(judgment.error).toMatchObject({ name: "TimeoutError" });
    expect(signal?.reason).toBe(judgment.error);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each([
    ["answer", () => Promise.resolve({ answers: { call_1: risk(0) } })],
    ["failure", () => Promise.reject(new Error("late"))],
  ])("a late %s is ignored", async (_what, late) => {
    const rejected = vi.fn<() => void>();
    process.on("unhandledRejection", rejected);
    const asked = ask(
      answering(async () => {
        await new Promise((resolve) => setTimeout(resolve, 500));
        return late();
      }),
      1,
      { timeoutMs: 100 },
    );
    await vi.advanceTimersByTimeAsync(100);
    const judgment = await asked;
    await vi.advanceTimersByTimeAsync(1_000);
    vi.useRealTimers();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", rejected);
    expect(judgment.answered).toEqual([{ unavailable: "timeout" }]);
    expect(rejected).not.toHaveBeenCalled();
  });

  test("an answer in time stops the clock", async () => {
    await ask(saying({ answers: { call_1: risk(0) } }), 1, { timeoutMs: 100 });
    expect(vi.getTimerCount()).toBe(0);
    await ask(fakeDecisionModel().fail("error"), 1, { timeoutMs: 100 });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("an abort of the run", () => {
  test("before the request: the classifier is not asked", async () => {
    const classifier = fakeDecisionModel().always(0);
    const reason = new Error("stopped by the user");
    expect(await rejection(ask(classifier, 1, { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(classifier.callCount).toBe(0);
  });

  test("during the request: its reason comes out, the classifier is asked to stop, and nothing is a verdict", async () => {
    const controller = new AbortController();
    const reason = new Error("stopped by the user");
    let signal: AbortSignal | undefined;
    const asked = ask(
      answering((config) => {
        ({ signal } = config);
        return NEVER;
      }),
      1,
      { signal: controller.signal },
    );
    controller.abort(reason);
    expect(await rejection(asked)).toBe(reason);
    expect(signal?.reason).toBe(reason);
  });

  test("a classifier that fails because of it fails for nothing else", async () => {
    const controller = new AbortController();
    const asked = ask(
      answering(async () => {
        controller.abort(new Error("stopped by the user"));
        throw new ClassificationError("refused");
      }),
      1,
      { signal: controller.signal },
    );
    expect(await rejection(asked)).toMatchObject({ message: "stopped by the user" });
  });

  test("takes none of the listeners that Node allows on the run's signal", async () => {
    const { signal } = new AbortController();
    let meanwhile: unknown[] | undefined;
    await ask(
      answering(async () => {
        meanwhile = getEventListeners(signal, "abort");
        return { answers: {} };
      }),
      1,
      { signal },
    );
    expect(meanwhile).toEqual([]);
  });

  test("no listener stays on the run's signal, whatever came of the request", async () => {
    const { signal } = new AbortController();
    await ask(saying({ answers: { call_1: risk(0) } }), 1, { signal });
    await ask(fakeDecisionModel().fail("error"), 1, { signal });
    await ask(
      answering(() => NEVER),
      1,
      { signal, timeoutMs: 1 },
    );
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

test.each<[string, unknown, string]>([
  ["a decision model's own", fakeDecisionModel({ model: "m-1" }), "m-1"],
  ["a binding's, one level down", fakeDecisionModel({ model: "m-1" }).withRetry(), "m-1"],
  ["none", { invoke: () => NEVER }, "unknown"],
  ["an empty one", { invoke: () => NEVER, model: "" }, "unknown"],
  ["one that is no text", { invoke: () => NEVER, model: 3, bound: { model: {} } }, "unknown"],
  ["an empty one below", { invoke: () => NEVER, bound: { model: "" } }, "unknown"],
])("the name that records give a classifier: %s", (_what, classifier, name) => {
  expect(classifierName(classifier as Classifier)).toBe(name);
});

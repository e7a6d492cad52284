import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { MemorySaver } from "@langchain/langgraph";
import {
  type AgentMiddleware,
  AIMessage,
  humanInTheLoopMiddleware,
  modelCallLimitMiddleware,
  modelFallbackMiddleware,
  modelRetryMiddleware,
  summarizationMiddleware,
  toolRetryMiddleware,
} from "langchain";
import {
  AutoModeLimitError,
  ClassificationError,
  deferToTrustedModel,
  haltRun,
  throwOnLimit,
} from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, rejection, stage, textOf } from "../kit/agent.js";
import {
  answerCounts,
  approve,
  byPath,
  edit,
  questionOf,
  reject,
  stageAsking,
  thread,
} from "../kit/asking.js";
import { del, scripted } from "../kit/model.js";

// Each row of the table of orders in examples/retry-and-errors.md is a test of this file.

const isOurs = (error: unknown): boolean =>
  ClassificationError.isInstance(error) || AutoModeLimitError.isInstance(error);

const any = (middleware: unknown) => middleware as AgentMiddleware;
const failing = () => fakeDecisionModel().alwaysFail("error");
const overloaded = (): AIMessage => {
  throw new Error("overloaded");
};
const retryTool = () => any(toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, jitter: false }));
const askBeforeDelete = () => any(humanInTheLoopMiddleware({ interruptOn: { delete_file: true } }));
const summarizing = (keep: number) => {
  const writer = fakeModel();
  for (let count = 0; count < 9; count += 1) writer.respond(new AIMessage("They spoke of files."));
  return any(
    summarizationMiddleware({ model: writer as never, trigger: { messages: 3 }, keep: { messages: keep } }),
  );
};
const isHalted = (messages: readonly BaseMessage[]): boolean =>
  messages.at(-1)?.additional_kwargs.lc_source === "auto_mode";

const PLACES = ["outside", "inside"] as const;
type Place = (typeof PLACES)[number];
/** `outside` is `[other, autoMode]`, `inside` is `[autoMode, other]`. */
const cases = VERSIONS.flatMap((version) => PLACES.map((place) => ({ version, place })));

describe.each(VERSIONS)("modelRetry, %s", (version) => {
  const afterFailure = (place: Place, retry: unknown) =>
    stage({ version, turns: [del("/a"), "not reached"], classifier: failing(), [place]: [any(retry)] });

  test("before auto mode, with its defaults: our error becomes a message", async () => {
    const messages = await afterFailure("outside", modelRetryMiddleware({ initialDelayMs: 1 })).invoke();
    expect(textOf(messages.at(-1))).toContain("failed after 3 attempts");
  });

  test("before auto mode, neither retrying nor swallowing our errors: they come out", async () => {
    const retry = modelRetryMiddleware({
      initialDelayMs: 1,
      retryOn: (error) => !isOurs(error),
      onFailure: "error",
    });
    expect(isOurs(await rejection(afterFailure("outside", retry).invoke()))).toBe(true);
    const limited = stage({
      version,
      turns: [del("/a"), "not reached"],
      classifier: 0.9,
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: throwOnLimit() },
      outside: [retry],
    });
    expect(AutoModeLimitError.isInstance(await rejection(limited.invoke()))).toBe(true);
  });

  test("behind auto mode: it never sees our errors", async () => {
    const error = await rejection(
      afterFailure("inside", modelRetryMiddleware({ initialDelayMs: 1 })).invoke(),
    );
    expect(isOurs(error)).toBe(true);
  });
});

describe.each(cases)("modelRetry and modelFallback, $place, $version", ({ version, place }) => {
  const middlewares: [string, (fallback: ReturnType<typeof scripted>) => AgentMiddleware][] = [
    ["modelRetry", () => any(modelRetryMiddleware({ initialDelayMs: 1, jitter: false }))],
    ["modelFallback", (fallback) => any(modelFallbackMiddleware(fallback))],
  ];

  test.each(middlewares)(
    "%s: a blocked call is an answer, not an error: nothing is repeated",
    async (_, make) => {
      const fallback = scripted("not reached");
      const classifier = fakeDecisionModel().always(0.9);
      const staged = stage({
        version,
        turns: [del("/a"), "end"],
        classifier,
        [place]: [make(fallback)],
      });
      expect(textOf((await staged.invoke()).at(-1))).toBe("end");
      expect([classifier.callCount, staged.model.callCount, fallback.callCount]).toEqual([1, 2, 0]);
      expect(staged.records.map(({ outcome }) => outcome)).toEqual(["blocked"]);
    },
  );

  test.each(middlewares)("%s: a halt is a message, not an error: the run ends at once", async (_, make) => {
    const fallback = scripted("not reached");
    const staged = stage({
      version,
      turns: [del("/a"), "not reached"],
      classifier: 0.9,
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: haltRun() },
      [place]: [make(fallback)],
    });
    expect(isHalted(await staged.invoke())).toBe(true);
    expect([staged.model.callCount, fallback.callCount]).toEqual([1, 0]);
  });
});

describe.each(cases)("modelFallback, $place, $version", ({ version, place }) => {
  test("our errors come out, and the other model is never called", async () => {
    const fallback = scripted("not reached");
    const around = { [place]: [any(modelFallbackMiddleware(fallback))] };
    const failed = stage({ version, turns: [del("/a")], classifier: failing(), ...around });
    expect(ClassificationError.isInstance(await rejection(failed.invoke()))).toBe(true);
    const limited = stage({
      version,
      turns: [del("/a")],
      classifier: 0.9,
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: throwOnLimit() },
      ...around,
    });
    expect(AutoModeLimitError.isInstance(await rejection(limited.invoke()))).toBe(true);
    expect(fallback.callCount).toBe(0);
  });

  test("what the other model calls is judged like anything else", async () => {
    const fallback = scripted(del("/a"), "end");
    const { agent, box, records } = stage({
      version,
      turns: [overloaded, overloaded],
      classifier: 0.9,
      [place]: [any(modelFallbackMiddleware(fallback))],
    });
    const { messages } = await agent.invoke({ messages: [new HumanMessage("Go.")] });
    expect(textOf(messages.at(-1))).toBe("end");
    expect(box.ran).toEqual([]);
    expect(records.map(({ outcome }) => outcome)).toEqual(["blocked"]);
  });

  test("the trusted model writes its step, not the model of the fallback", async () => {
    const trusted = scripted("written by the trusted model");
    const fallback = scripted("not reached");
    const { invoke } = stage({
      version,
      turns: [del("/a"), "end"],
      classifier: 0.9,
      options: {
        limits: { consecutiveBlocks: 1 },
        whenLimitReached: deferToTrustedModel({ model: trusted }),
      },
      [place]: [any(modelFallbackMiddleware(fallback))],
    });
    expect(textOf((await invoke()).at(-1))).toBe("written by the trusted model");
    expect([trusted.callCount, fallback.callCount]).toEqual([1, 0]);
  });
});

describe.each(VERSIONS)("modelFallback and a trusted model that fails, %s", (version) => {
  const trustedFails = (place: Place, ...fallbacks: ReturnType<typeof scripted>[]) => {
    const trusted = scripted(overloaded, overloaded, overloaded);
    const staged = stage({
      version,
      turns: [del("/a"), "end"],
      classifier: 0.9,
      options: {
        limits: { consecutiveBlocks: 1 },
        whenLimitReached: deferToTrustedModel({ model: trusted }),
      },
      [place]: [any(modelFallbackMiddleware(...fallbacks))],
    });
    return { ...staged, trusted };
  };

  test("before auto mode: the trusted model is asked once more for each fallback, and its error comes out", async () => {
    const fallback = scripted("not reached");
    const { invoke, trusted } = trustedFails("outside", fallback, fallback);
    expect(String(await rejection(invoke()))).toContain("overloaded");
    expect([trusted.callCount, fallback.callCount]).toEqual([3, 0]);
  });

  test("behind auto mode: the other model writes the trusted step, and a block in it halts", async () => {
    const fallback = scripted(del("/b"), "not reached");
    const { invoke, trusted, box } = trustedFails("inside", fallback);
    expect(isHalted(await invoke())).toBe(true);
    expect([trusted.callCount, fallback.callCount, box.ran]).toEqual([1, 1, []]);
  });
});

describe.each(VERSIONS)("modelCallLimit, %s", (version) => {
  test("before auto mode: the run ends before the person is asked, and the waiting call stays open", async () => {
    const { start, box } = stageAsking({
      version,
      turns: [del("/x", "a"), "end"],
      outside: [modelCallLimitMiddleware({ runLimit: 1 })],
    });
    const { questions, messages } = await start();
    expect(questions).toEqual([]);
    expect(textOf(messages.at(-1))).toContain("limit");
    expect([answerCounts(messages), box.ran]).toEqual([{ a: 0 }, []]);
  });

  test("behind auto mode: the person is asked, and the approved call runs", async () => {
    const { start, decide, box } = stageAsking({
      version,
      turns: [del("/x", "a"), "end"],
      inside: [modelCallLimitMiddleware({ runLimit: 1 })],
    });
    expect((await start()).questions).toHaveLength(1);
    await decide(approve);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/x" }]);
  });

  test.each(PLACES)("%s: where both limits are reached its own message ends the run", async (place) => {
    const staged = stage({
      version,
      turns: [del("/x"), "not reached"],
      classifier: 0.9,
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: haltRun() },
      [place]: [modelCallLimitMiddleware({ runLimit: 1 })],
    });
    const messages = await staged.invoke();
    expect(textOf(messages.at(-1))).toContain("limit");
    expect([isHalted(messages), staged.model.callCount]).toEqual([false, 1]);
  });
});

describe.each(cases)("toolRetry, $place, $version", ({ version, place }) => {
  test("a blocked call and a halt are not tried again", async () => {
    const classifier = fakeDecisionModel().always(0.9);
    const staged = stage({
      version,
      turns: [del("/a"), "not reached"],
      classifier,
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: haltRun() },
      [place]: [retryTool()],
    });
    expect(isHalted(await staged.invoke())).toBe(true);
    expect([classifier.callCount, staged.records.length, staged.model.callCount]).toEqual([1, 1, 1]);
  });

  test("a classifier that fails is asked once, and its error comes out", async () => {
    const classifier = failing();
    const staged = stage({ version, turns: [del("/a")], classifier, [place]: [retryTool()] });
    expect(ClassificationError.isInstance(await rejection(staged.invoke()))).toBe(true);
    expect([classifier.callCount, staged.box.ran]).toEqual([1, []]);
  });
});

describe.each(cases)("summarization, $place, $version", ({ version, place }) => {
  test("the user's words are shown to the judge after the summary replaced them, the summary as a note", async () => {
    const classifier = byPath();
    const staged = stage({
      version,
      turns: [del("/ok1"), del("/ok2"), del("/ok3"), "end"],
      classifier,
      checkpointer: new MemorySaver(),
      config: thread(),
      [place]: [summarizing(1)],
    });
    const messages = await staged.invoke("Delete what is old, but never touch prod.");
    expect(messages.some(({ text }) => text.includes("never touch prod"))).toBe(false);
    const { transcript } = classifier.requests.at(-1) as unknown as {
      transcript: { from: string; text?: string }[];
    };
    const shown = transcript.map(({ from, text }) => `${from}: ${text}`);
    expect(shown).toContain("user: Delete what is old, but never touch prod.");
    expect(shown.filter((line) => line.startsWith("context_note:")).join()).toContain("They spoke of files.");
  });

  test("counts go on over a summary, and the third block in a row halts", async () => {
    const staged = stage({
      version,
      turns: [del("/1"), del("/2"), del("/3"), "not reached"],
      classifier: 0.9,
      [place]: [summarizing(1)],
    });
    expect(isHalted(await staged.invoke())).toBe(true);
    expect(staged.model.callCount).toBe(3);
  });

  test.each([1, 0])(
    "a waiting call is kept, with %i messages to keep: what the person approves runs once",
    async (keep) => {
      const { start, decide, box } = stageAsking({
        version,
        turns: [del("/ok1", "a"), del("/x", "b"), "end"],
        [place]: [summarizing(keep)],
      });
      expect(questionOf(await start()).actionRequests[0]?.args).toEqual({ path: "/x" });
      const { messages } = await decide(approve);
      expect(textOf(messages.at(-1))).toBe("end");
      expect(box.ran.map(({ args }) => args)).toEqual([{ path: "/ok1" }, { path: "/x" }]);
    },
  );
});

describe.each(cases)("humanInTheLoop on the same tool, $place, $version", ({ version, place }) => {
  test("the person is asked there first, and again here where the call is not allowed", async () => {
    const classifier = byPath();
    const { start, decide, box, records } = stageAsking({
      version,
      classifier,
      turns: [del("/x", "a"), "end"],
      [place]: [askBeforeDelete()],
    });
    questionOf(await start());
    expect(classifier.callCount).toBe(0);
    const second = questionOf(await decide(approve));
    expect(second.actionRequests[0]?.description).toContain("Auto mode blocked");
    expect(box.ran).toEqual([]);
    await decide(approve);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/x" }]);
    expect(records.map(({ outcome }) => outcome)).toEqual(["waiting", "approved"]);
  });

  test("an allowed call is asked about once", async () => {
    const { start, decide, box } = stageAsking({
      version,
      turns: [del("/ok", "a"), "end"],
      [place]: [askBeforeDelete()],
    });
    questionOf(await start());
    const { questions } = await decide(approve);
    expect([questions, box.ranWith("delete_file")]).toEqual([[], [{ path: "/ok" }]]);
  });

  test("edited there, the call is judged as edited, and so is the person's question here", async () => {
    const classifier = byPath();
    const { start, decide } = stageAsking({
      version,
      classifier,
      turns: [del("/ok", "a"), "end"],
      [place]: [askBeforeDelete()],
    });
    await start();
    const second = questionOf(await decide(edit("delete_file", { path: "/edited" })));
    expect(classifier.judged.map(({ args }) => args)).toEqual([{ path: "/edited" }]);
    expect(second.actionRequests[0]?.args).toEqual({ path: "/edited" });
  });

  test("edited here, the call runs as edited: neither asks or judges again", async () => {
    const classifier = byPath();
    const { start, decide, box } = stageAsking({
      version,
      classifier,
      turns: [del("/x", "a"), "end"],
      [place]: [askBeforeDelete()],
    });
    await start();
    await decide(approve);
    const { questions } = await decide(edit("delete_file", { path: "/mine" }));
    expect([questions, classifier.callCount]).toEqual([[], 1]);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/mine" }]);
  });

  test("rejected there, the call is never judged and counts nothing", async () => {
    const classifier = byPath();
    const { start, decide, box, state } = stageAsking({
      version,
      classifier,
      turns: [del("/x", "a"), "end"],
      [place]: [askBeforeDelete()],
    });
    await start();
    await decide(reject("no"));
    expect([classifier.callCount, box.ran]).toEqual([0, []]);
    expect(await state()).toMatchObject({ totalBlocks: 0 });
  });
});

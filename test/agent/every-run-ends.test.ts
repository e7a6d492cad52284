import * as fc from "fast-check";
import {
  AutoModeLimitError,
  type AutoModeOptions,
  ClassificationError,
  askHuman,
  deferToTrustedModel,
  haltRun,
  throwOnLimit,
} from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, answerTo, textOf } from "../kit/agent.js";
import { badlyAnswered, questionOf, reject, stageAsking } from "../kit/asking.js";
import { onToolCall, replacingArgs } from "../kit/middlewares.js";
import { del, proposes, scripted } from "../kit/model.js";

/** More model calls than any limit below lets through. */
const MANY = 80;
const again = (path: (step: number) => string) => {
  let step = 0;
  return Array.from({ length: MANY }, () => () => proposes([del(path((step += 1)))]));
};

describe.each(VERSIONS)("a run that asks a person ends, %s", (version) => {
  test.each(["outside", "inside"] as const)(
    "where every call is changed by a middleware %s, so that nobody can be asked: it halts at the limit",
    async (where) => {
      const { start, model } = stageAsking({
        version,
        turns: again((step) => `/${step}`),
        // Harmless until it is changed.
        classifier: fakeDecisionModel().always(({ args }) => (args.path === "/changed" ? 0.9 : 0)),
        options: { limits: { consecutiveBlocks: 3 }, whenLimitReached: askHuman() },
        [where]: [replacingArgs({ path: "/changed" })],
      });
      const { messages, questions } = await start();
      expect(questions).toEqual([]);
      expect(messages.at(-1)?.additional_kwargs).toMatchObject({
        lc_source: "auto_mode",
        auto_mode: { limit: "consecutiveBlocks", counters: { consecutiveBlocks: 3 } },
      });
      expect(model.callCount).toBe(3);
    },
  );

  test.each(["continue", "ask"] as const)(
    "where the classifier fails and every call is changed, with onUnavailable %j",
    async (onUnavailable) => {
      const { start, model } = stageAsking({
        version,
        turns: again((step) => `/${step}`),
        classifier: fakeDecisionModel().always(() => undefined),
        options: { onUnavailable, limits: { consecutiveUnavailable: 3 }, whenLimitReached: askHuman() },
        outside: [replacingArgs({ path: "/changed" })],
      });
      const { messages } = await start();
      expect(messages.at(-1)?.additional_kwargs).toMatchObject({
        auto_mode: { limit: "consecutiveUnavailable" },
      });
      expect(model.callCount).toBe(3);
    },
  );

  test("where a person rejects the same call each time: after totalBlocks questions it halts", async () => {
    const { start, decide } = stageAsking({
      version,
      turns: again(() => "/same"),
      classifier: fakeDecisionModel().always(0.9),
      options: { limits: { consecutiveBlocks: 1, totalBlocks: 5 }, whenLimitReached: askHuman() },
    });
    let standpoint = await start();
    let asked = 0;
    while (standpoint.questions.length > 0) {
      asked += 1;
      standpoint = await decide(reject());
    }
    expect(asked).toBe(5);
    expect(standpoint.messages.at(-1)?.additional_kwargs).toMatchObject({
      auto_mode: { limit: "totalBlocks", counters: { totalBlocks: 5 } },
    });
  });

  test("a block by precheck is final: nobody is asked, and at the limit the run halts", async () => {
    const { start, box, model } = stageAsking({
      version,
      turns: [del("/a", "a"), "not reached"],
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: askHuman(), precheck: () => "block" },
    });
    const { messages, questions } = await start();
    expect(questions).toEqual([]);
    expect(box.ran).toEqual([]);
    expect(answerTo(messages, "a").text).toContain("A fixed rule of the operator forbids this call.");
    expect(textOf(messages.at(-1))).toContain("Auto mode stopped this run");
    expect(model.callCount).toBe(1);
  });

  test("at the limit what can be asked is asked, next to a block by precheck", async () => {
    const { start, decide, box } = stageAsking({
      version,
      turns: [[del("/never", "a"), del("/risky", "b")], "end"],
      options: {
        limits: { consecutiveBlocks: 1 },
        whenLimitReached: askHuman(),
        precheck: ({ args }) => (args.path === "/never" ? "block" : "classify"),
      },
    });
    expect(questionOf(await start()).actionRequests.map(({ args }) => args.path)).toEqual(["/risky"]);
    const { messages } = await decide({ type: "approve" });
    expect(box.ranWith("delete_file")).toEqual([{ path: "/risky" }]);
    expect(textOf(messages.at(-1))).toBe("end");
  });
});

const FALLBACKS = ["halt", "ask", "throw", "defer"] as const;

/** A random world in which nothing is ever approved. */
const world = fc.record({
  fallback: fc.constantFrom(...FALLBACKS),
  onUnavailable: fc.constantFrom("throw" as const, "continue" as const, "ask" as const),
  siblings: fc.constantFrom("independent" as const, "all-or-none" as const),
  askAt: fc.constantFrom(undefined, 0, 0.4),
  limits: fc.record({
    consecutiveBlocks: fc.integer({ min: 1, max: 4 }),
    totalBlocks: fc.integer({ min: 1, max: 6 }),
    consecutiveUnavailable: fc.integer({ min: 1, max: 4 }),
  }),
  // Each call of each step: its risk, a failure, or a rule that blocks or asks.
  steps: fc.array(
    fc.array(fc.constantFrom("0.4", "0.9", "down", "block", "ask"), { minLength: 1, maxLength: 3 }),
    { minLength: 1, maxLength: 6 },
  ),
  changes: fc.constantFrom(undefined, "outside" as const, "inside" as const),
  /** Which calls another middleware changes. */
  changed: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
});

const kindOf = (path: unknown): string => (path as string).split("/")[1] ?? "";
const isOurs = (error: unknown): boolean =>
  AutoModeLimitError.isInstance(error) || ClassificationError.isInstance(error);

type World = typeof world extends fc.Arbitrary<infer T> ? T : never;

async function playWorld(version: (typeof VERSIONS)[number], given: World) {
  let steps = 0;
  const turn = () => {
    const kinds = given.steps[steps % given.steps.length] as string[];
    steps += 1;
    return proposes(kinds.map((kind, index) => del(`/${kind}/${steps}.${index}`)));
  };
  const turns = Array.from({ length: MANY }, () => turn);
  let seen = 0;
  const changing = onToolCall((request, handler) => {
    seen += 1;
    if (!given.changed[seen % given.changed.length]) return handler(request);
    const path = `${String(request.toolCall.args.path)}-changed`;
    return handler({ ...request, toolCall: { ...request.toolCall, args: { path } } });
  });
  const fallbacks = {
    halt: () => haltRun(),
    ask: () => askHuman(),
    throw: () => throwOnLimit(),
    defer: () => deferToTrustedModel({ model: scripted(...turns) }),
  };
  const options: Partial<AutoModeOptions> = {
    limits: given.limits,
    onUnavailable: given.onUnavailable,
    siblings: given.siblings,
    whenLimitReached: fallbacks[given.fallback](),
    precheck: ({ args }) => {
      const kind = kindOf(args.path);
      return kind === "block" || kind === "ask" ? kind : "classify";
    },
    ...(given.askAt === undefined ? {} : { askAt: given.askAt }),
  };
  const { start, decide, model, box } = stageAsking({
    version,
    turns,
    classifier: fakeDecisionModel().always(({ args }) => {
      const kind = kindOf(args.path);
      return kind === "down" ? undefined : Number(kind);
    }),
    options,
    ...(given.changes ? { [given.changes]: [changing] } : {}),
    config: { recursionLimit: 1_000 },
  });
  try {
    let standpoint = await start();
    while (standpoint.questions.length > 0)
      standpoint = await decide(...questionOf(standpoint).actionRequests.map(() => reject("no")));
  } catch (error) {
    if (!isOurs(error)) throw error;
  }
  return { modelCalls: model.callCount, badly: badlyAnswered(model), ran: box.ran };
}

describe.each(VERSIONS)("with any finite limits and a person who rejects everything, %s", (version) => {
  test(
    "every run ends, with every fallback, and every call is answered once",
    { timeout: 180_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(world, async (given) => {
          const { modelCalls, badly, ran } = await playWorld(version, given);
          // Where a call in the band may run the schedule may be harmless, and end by itself.
          const mayRun = given.askAt === undefined && given.steps.flat().includes("0.4");
          expect({ ended: mayRun || modelCalls < MANY, ran: mayRun ? [] : ran, badly }).toEqual({
            ended: true,
            ran: [],
            badly: [],
          });
        }),
        { numRuns: 40 },
      );
    },
  );
});

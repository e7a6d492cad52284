import type { ClassifierRequest } from "@langchain/core/decisions";
import fc from "fast-check";
import { type AutoModeOptions, ClassificationError, askHuman } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test, vi } from "vitest";
import { digest, freezeJson } from "../../src/json.js";
import { type StepCall, type StepContext, decideStep } from "../../src/guard/evaluate.js";
import { RISK_KINDS } from "../../src/guard/question.js";
import { blockedCallOf, recordFor, waitingCallOf } from "../../src/guard/report.js";
import { INITIAL, type StepState, type ThreadState } from "../../src/limits/state.js";
import { resolvePolicy } from "../../src/resolve-options.js";
import { rejection } from "../kit/agent.js";

const digestOf = (args: unknown): string => digest(freezeJson(args)!);

const RULE = { criteria: null, instructions: "Is it risky?", threshold: 0.5 };
type Given = Partial<Omit<StepCall, "frozen">> & { args?: unknown };
const proposed = (index: number, given: Given = {}): StepCall => {
  const { args, ...more } = { args: { path: `/${index}` } as unknown, ...given };
  return {
    index,
    id: `id-${index}`,
    name: "delete_file",
    rule: RULE,
    frozen: freezeJson(args),
    canWait: true,
    ...more,
  };
};

/** Options of the middleware, and what the thread remembers. */
type Surroundings = Partial<
  AutoModeOptions &
    Omit<StepContext, "thread"> &
    Pick<StepState, "approvals" | "passed" | "trusted"> &
    Pick<ThreadState, "blockedCalls">
>;

function decide(
  calls: StepCall[],
  { classifier = fakeDecisionModel().always(0), ...rest }: Surroundings = {},
) {
  const { environment, precheck, approvals, passed, blockedCalls, signal, transcript, trusted, ...options } =
    rest as Record<string, never>;
  const policy = resolvePolicy({ tools: ["delete_file"], classifier, ...(options as object) });
  return decideStep(policy, calls, {
    messageId: "m-1",
    thread: {
      ...INITIAL,
      blockedCalls: blockedCalls ?? [],
      step: {
        messageId: "m-1",
        base: INITIAL.limitStatus,
        calls: [],
        waiting: [],
        approvals: approvals ?? [],
        passed: passed ?? [],
        trusted: trusted ?? false,
      },
    },
    transcript: transcript ?? (() => []),
    ...(signal === undefined ? {} : { signal }),
    ...(environment === undefined ? {} : { environment }),
    ...(precheck === undefined ? {} : { precheck }),
  });
}
const outcomes = async (...given: Parameters<typeof decide>) =>
  (await decide(...given)).map(({ decision }) => decision.outcome);

describe("the decision sequence", () => {
  test("one request holds all calls that need one; each keeps its own verdict, criteria and threshold", async () => {
    const classifier = fakeDecisionModel().respondWith(({ args }) => (args.path === "/1" ? 0.4 : 0.6));
    const decided = await decide(
      [
        proposed(0, { rule: { ...RULE, threshold: 0.7, criteria: { true: "own" } } }),
        proposed(1, { rule: { ...RULE, threshold: 0.3 } }),
        proposed(2),
      ],
      { classifier },
    );
    expect(classifier.callCount).toBe(1);
    expect(decided.map(({ decision }) => decision.outcome)).toEqual(["allowed", "blocked", "blocked"]);
    expect(classifier.requests[0]?.questions.call_1).toMatchObject({ criteria: { true: "own" } });
    expect(new Set(decided.map(({ judgment }) => judgment)).size).toBe(1);
    expect(decided.map(({ messageId }) => messageId)).toEqual(["m-1", "m-1", "m-1"]);
  });

  test("a malformed call is never judged, whatever else would let it run", async () => {
    const classifier = fakeDecisionModel().always(0);
    const precheck = vi.fn<() => "allow">(() => "allow");
    const decided = await decide(
      [
        proposed(0, { malformation: "no_id" }),
        proposed(1, { args: "text" }),
        proposed(2, { malformation: "duplicate_id", args: undefined }),
      ],
      { classifier, precheck, approvals: [{ id: "id-1", name: "delete_file", digest: "" }] },
    );
    expect(decided.map(({ finding }) => finding)).toEqual([
      { kind: "malformed", malformation: "no_id" },
      { kind: "malformed", malformation: "bad_arguments" },
      { kind: "malformed", malformation: "duplicate_id" },
    ]);
    expect(decided.map(({ decision }) => [decision.action, decision.by])).toEqual(
      Array.from({ length: 3 }, () => ["refuse", "guard"]),
    );
    expect(precheck).not.toHaveBeenCalled();
    expect(classifier.callCount).toBe(0);
  });

  test("an approval is for one id, one tool and one set of arguments", async () => {
    const approval = { id: "id-0", name: "delete_file", digest: digestOf({ path: "/0" }) };
    const classifier = fakeDecisionModel().always(1);
    const under = (approvals: object[], more: Given = {}) =>
      outcomes([proposed(0, more)], { classifier, approvals: approvals as never });
    expect(await under([approval])).toEqual(["approved"]);
    expect(classifier.callCount).toBe(0);
    expect(await under([{ ...approval, id: "other" }])).toEqual(["blocked"]);
    expect(await under([{ ...approval, name: "send_mail" }])).toEqual(["blocked"]);
    expect(await under([approval], { args: { path: "/else" } })).toEqual(["blocked"]);
    expect(await under([])).toEqual(["blocked"]);
  });

  test("what was taken from the arguments is what was judged, although they change meanwhile", async () => {
    const args = { path: "/tmp" };
    const classifier = fakeDecisionModel().respondWith(() => {
      args.path = "/prod";
      return 0;
    });
    const [decided] = await decide([proposed(0, { args })], { classifier });
    expect(decided?.call.frozen?.value).toEqual({ path: "/tmp" });
    expect(classifier.judged[0]?.args).toEqual({ path: "/tmp" });
  });

  test("the transcript is built once, without the calls that are being judged", async () => {
    const transcript = vi.fn<(judged: ReadonlySet<number>) => []>(() => []);
    await decide([proposed(3), proposed(5), proposed(7, { args: 1 })], { transcript });
    expect(transcript.mock.calls).toEqual([[new Set([3, 5])]]);
  });

  test("the trace gets label, step, ids, digests and thresholds, and no content", async () => {
    let metadata: unknown;
    const classifier = {
      invoke: async (_request: ClassifierRequest, config?: { metadata?: unknown }) => {
        ({ metadata } = config ?? {});
        return { model: "m", answers: { call_1: { type: "noul", noul: 0 } } } as never;
      },
    };
    await decide([proposed(0)], { classifier, label: "mine" });
    expect(metadata).toEqual({
      auto_mode_label: "mine",
      auto_mode_step: "m-1",
      auto_mode_calls: [{ id: "id-0", argsDigest: digestOf({ path: "/0" }), threshold: 0.5 }],
    });
  });
});

describe("a fixed rule", () => {
  test("allow and block save the request; classify asks", async () => {
    const classifier = fakeDecisionModel().always(0);
    const rules = { "/0": "allow", "/1": "block" } as const;
    const decided = await decide([proposed(0), proposed(1), proposed(2)], {
      classifier,
      precheck: ({ args }) => rules[args.path as "/0"] ?? "classify",
    });
    expect(decided.map(({ decision }) => [decision.outcome, decision.by])).toEqual([
      ["allowed", "precheck"],
      ["blocked", "precheck"],
      ["allowed", "classifier"],
    ]);
    expect(classifier.judged.map(({ args }) => args.path)).toEqual(["/2"]);
    expect(decided.map(({ judgment }) => judgment === undefined)).toEqual([true, true, false]);
  });

  test("it may take its time, and is shown a copy", async () => {
    const classifier = fakeDecisionModel().always(0);
    await decide([proposed(0)], {
      classifier,
      precheck: (async (call: { name: string; args: { path: string } }) => {
        await Promise.resolve();
        call.name = "other";
        call.args.path = "/changed";
        return "classify";
      }) as never,
    });
    expect(classifier.judged).toMatchObject([{ name: "delete_file", args: { path: "/0" } }]);
  });

  test("ask makes the call wait for a person, without a request", async () => {
    const classifier = fakeDecisionModel().always(0);
    const [decided] = await decide([proposed(0)], { classifier, precheck: () => "ask" });
    expect(decided?.decision).toMatchObject({ outcome: "waiting", by: "precheck", action: "suspend" });
    expect(classifier.callCount).toBe(0);
  });

  test.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("no rule");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no rule"))],
    ["gives nothing", () => undefined],
    ["gives true", () => true],
    ["gives a word that is none of the four", () => "ALLOW"],
  ])("that %s decides nothing: unavailable, and no request", async (_what, precheck) => {
    const classifier = fakeDecisionModel().always(0);
    const [decided] = await decide([proposed(0)], { classifier, precheck: precheck as never });
    expect(decided).toMatchObject({
      decision: { outcome: "unavailable", by: "precheck", action: "refuse" },
      finding: { kind: "failed", error: expect.any(Error) as unknown },
    });
    expect(classifier.callCount).toBe(0);
  });
});

describe("the environment", () => {
  test("is read once for the one request, and not at all without one", async () => {
    const environment = vi.fn<() => unknown>(async () => ({ cwd: "/srv" }));
    const classifier = fakeDecisionModel().always(0);
    await decide([proposed(0), proposed(1)], { classifier, environment: environment as never });
    expect(environment).toHaveBeenCalledOnce();
    expect(classifier.requests[0]?.environment).toEqual({ cwd: "/srv" });
    await decide([proposed(0)], { environment: environment as never, precheck: (() => "allow") as never });
    expect(environment).toHaveBeenCalledOnce();
  });

  const broken = {
    get rules() {
      throw new Error("no rules");
    },
  };
  test.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("no rules");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no rules"))],
    ["gives nothing", () => undefined],
    ["gives a function", () => () => 1],
    ["gives a map", () => ({ rules: new Map() })],
    ["gives what cannot be read", () => broken],
  ])("that %s may have held a rule against it: unavailable, and no request", async (_what, environment) => {
    const classifier = fakeDecisionModel().always(0);
    const [decided] = await decide([proposed(0)], { classifier, environment: environment as never });
    expect(decided).toMatchObject({
      decision: { outcome: "unavailable", by: "environment" },
      finding: { error: expect.any(Error) as unknown },
    });
    expect(classifier.callCount).toBe(0);
  });

  test("a transcript that cannot be built is no verdict either", async () => {
    const error = new Error("odd history");
    const [decided] = await decide([proposed(0)], {
      transcript: () => {
        throw error;
      },
    });
    expect(decided).toMatchObject({ decision: { outcome: "unavailable", by: "guard" }, finding: { error } });
  });
});

describe("a call without a verdict", () => {
  test("only the calls that an answer leaves out have none", async () => {
    const classifier = fakeDecisionModel().respondWith(({ args }) =>
      args.path === "/0" ? 0 : args.path === "/1" ? 0.9 : undefined,
    );
    expect(await outcomes([proposed(0), proposed(1), proposed(2)], { classifier })).toEqual([
      "allowed",
      "blocked",
      "unavailable",
    ]);
  });

  test("a failure ends at the call that it is about: its siblings keep their verdicts", async () => {
    const decided = await decide([proposed(0), proposed(1), proposed(2)], {
      precheck: ({ id }) => {
        if (id === "id-0") throw new Error("no rule");
        return id === "id-1" ? "allow" : "classify";
      },
    });
    expect(decided.map(({ decision }) => [decision.outcome, decision.by])).toEqual([
      ["unavailable", "precheck"],
      ["allowed", "precheck"],
      ["allowed", "classifier"],
    ]);
  });

  test("a failed environment leaves what rules and persons decided as it is", async () => {
    const decided = await decide([proposed(0), proposed(1), proposed(2)], {
      approvals: [{ id: "id-0", name: "delete_file", digest: digestOf({ path: "/0" }) }],
      precheck: ({ id }) => (id === "id-1" ? "block" : "classify"),
      environment: (() => undefined) as never,
    });
    expect(decided.map(({ decision }) => decision.outcome)).toEqual(["approved", "blocked", "unavailable"]);
  });

  test("a step of the trusted model never waits", async () => {
    const classifier = fakeDecisionModel().alwaysFail("timeout");
    const ask = { classifier, onUnavailable: "ask" } as const;
    expect(await outcomes([proposed(0)], ask)).toEqual(["waiting"]);
    expect(await outcomes([proposed(0)], { ...ask, trusted: true })).toEqual(["unavailable"]);
    const atOnce = {
      classifier: fakeDecisionModel().always(1),
      limits: { consecutiveBlocks: 1 },
      whenLimitReached: askHuman(),
    };
    expect(await outcomes([proposed(0)], atOnce)).toEqual(["waiting"]);
    expect(await outcomes([proposed(0)], { ...atOnce, trusted: true })).toEqual(["blocked"]);
  });
});

describe("a call that was decided before", () => {
  const identity = { id: "id-0", name: "delete_file", digest: digestOf({ path: "/0" }) };
  const blocked = { name: "delete_file", digest: digestOf({ path: "/0" }), risk: 0.8 };

  test("that the classifier blocked in this turn is blocked again without a request", async () => {
    const classifier = fakeDecisionModel().always(0);
    const [decided, other] = await decide([proposed(0), proposed(1)], {
      classifier,
      blockedCalls: [blocked],
    });
    expect(decided).toMatchObject({
      finding: { kind: "repeated", risk: 0.8 },
      decision: { outcome: "blocked", by: "classifier", counted: { judged: "no" } },
    });
    expect(other?.decision.outcome).toBe("allowed");
    expect(classifier.judged.map(({ args }) => args.path)).toEqual(["/1"]);
  });

  test.each([
    ["another tool", { name: "send_mail" }],
    ["other arguments", { digest: digestOf({ path: "/1" }) }],
  ])("with %s is judged", async (_what, change) => {
    expect(await outcomes([proposed(0)], { blockedCalls: [{ ...blocked, ...change }] })).toEqual(["allowed"]);
  });

  test("is blocked however often the step holds it, next to calls that are judged", async () => {
    const classifier = fakeDecisionModel().always(0.2);
    const again = [proposed(0), proposed(1), proposed(2, { args: { path: "/0" } })];
    const decided = await decide(again, { classifier, blockedCalls: [blocked] });
    expect(decided.map(({ finding }) => finding.kind)).toEqual(["repeated", "judged", "repeated"]);
    expect(classifier.judged.map(({ args }) => args.path)).toEqual(["/1"]);
  });

  test("equal arguments in another order are the same call", async () => {
    const args = { path: "/0", force: true };
    const known = { ...blocked, digest: digestOf({ force: true, path: "/0" }) };
    expect(await outcomes([proposed(0, { args })], { blockedCalls: [known] })).toEqual(["blocked"]);
  });

  test("and that a rule sends to the classifier is blocked all the same; one that a rule asks about waits", async () => {
    const classifier = fakeDecisionModel().always(0);
    const known = { classifier, blockedCalls: [blocked] };
    expect(await outcomes([proposed(0)], { ...known, precheck: () => "classify" })).toEqual(["blocked"]);
    expect(await outcomes([proposed(0)], { ...known, precheck: () => "ask" })).toEqual(["waiting"]);
    expect(classifier.callCount).toBe(0);
  });

  test("that a person approved, or that a rule allows, is not held against it", async () => {
    const known = { blockedCalls: [blocked] };
    expect(await outcomes([proposed(0)], { ...known, approvals: [identity] })).toEqual(["approved"]);
    expect(await outcomes([proposed(0)], { ...known, precheck: () => "allow" })).toEqual(["allowed"]);
  });

  test.each(["allowed", "approved"] as const)(
    "that passed this guard as %s passes again without a request",
    async (outcome) => {
      const classifier = fakeDecisionModel().always(1);
      const passed = [{ ...identity, outcome }];
      expect(await outcomes([proposed(0)], { classifier, passed })).toEqual([outcome]);
      expect(await outcomes([proposed(0, { id: "other" })], { classifier, passed })).toEqual(["blocked"]);
    },
  );
});

describe("the band in which a person decides", () => {
  const rule = { ...RULE, askAt: 0.3 };

  test("each call is held to its own band", async () => {
    const classifier = fakeDecisionModel().always(0.4);
    const calls = [
      proposed(0, { rule }),
      proposed(1, { rule: { ...RULE, askAt: 0.45 } }),
      proposed(2),
      proposed(3, { rule: { ...rule, threshold: 0.4 } }),
    ];
    expect(await outcomes(calls, { classifier })).toEqual(["waiting", "allowed", "allowed", "blocked"]);
  });

  test("a call that a person cannot be shown, or that the trusted model wrote, is blocked for want of approval", async () => {
    const classifier = fakeDecisionModel().always(0.4);
    const wanting = { decision: { outcome: "blocked", action: "refuse", lacksApproval: true } };
    expect(await decide([proposed(0, { rule, canWait: false })], { classifier })).toMatchObject([wanting]);
    expect(await decide([proposed(0, { rule })], { classifier, trusted: true })).toMatchObject([wanting]);
    expect(await decide([proposed(0)], { precheck: () => "ask", trusted: true })).toMatchObject([wanting]);
  });
});

describe("the evidence of a decision", () => {
  test("is what the request held, built once for all its calls", async () => {
    const transcript = vi.fn<() => []>(() => []);
    const decided = await decide([proposed(0), proposed(1)], {
      transcript,
      environment: (() => ({ cwd: "/srv" })) as never,
    });
    for (const { evidence } of decided)
      expect(evidence()).toEqual({ transcript: [], environment: { cwd: "/srv" } });
    expect(transcript).toHaveBeenCalledOnce();
  });

  test("is built only when somebody asks, where there was no request", async () => {
    const transcript = vi.fn<() => []>(() => []);
    const [decided] = await decide([proposed(0)], { transcript, precheck: () => "allow" });
    expect(transcript).not.toHaveBeenCalled();
    expect(decided?.evidence().transcript).toEqual([]);
    expect(decided?.evidence().transcript).toEqual([]);
    expect(transcript).toHaveBeenCalledOnce();
  });

  test("leaves out the calls that were judged, or all of the step if none was", async () => {
    const transcript = vi.fn<(judged: ReadonlySet<number>) => []>(() => []);
    const allow = { transcript, precheck: () => "allow" as const };
    (await decide([proposed(1), proposed(4)], allow))[0]?.evidence();
    expect(transcript).toHaveBeenLastCalledWith(new Set([1, 4]));
    const one = await decide([proposed(1), proposed(4)], {
      transcript,
      precheck: ({ id }) => (id === "id-1" ? "allow" : "classify"),
    });
    one[0]?.evidence();
    expect(transcript).toHaveBeenLastCalledWith(new Set([4]));
    expect(transcript).toHaveBeenCalledTimes(2);
  });

  test("of a call whose environment failed holds none, and its transcript only for who asks", async () => {
    const transcript = vi.fn<() => []>(() => []);
    const environment = (() => undefined) as never;
    const [decided] = await decide([proposed(0)], { transcript, environment });
    expect(transcript).not.toHaveBeenCalled();
    expect(decided?.evidence()).toEqual({ transcript: [], environment: undefined });
  });
});

const answering = (answer: object, more: object = {}) => ({
  invoke: async () => ({ model: "m", answers: { call_1: { type: "noul", ...answer } }, ...more }) as never,
});
const POLICY = resolvePolicy({ tools: ["delete_file"], classifier: fakeDecisionModel() });
const banded = proposed(0, { rule: { ...RULE, askAt: 0.3 } });

const recordWithId = async (requestId: unknown) => {
  const [decided] = await decide([proposed(0)], { classifier: answering({ noul: 0 }, { requestId }) });
  return recordFor(POLICY, decided!);
};

const remarkOf = async (answer: object, kind?: string) => {
  const answers = { call_1: { type: "noul", noul: 0.4, ...answer }, kind_1: { choice: kind } };
  const [decided] = await decide([banded], { classifier: answering({}, { answers }), explain: true });
  return waitingCallOf(decided!)?.remark;
};

async function rememberedOf(of: StepCall, given: Surroundings) {
  const [decided] = await decide([of], given);
  return blockedCallOf(decided!);
}

describe("what is reported of a decision", () => {
  test("the provider's id of the request, if it gave one that is a text", async () => {
    expect(await recordWithId("req-1")).toMatchObject({ requestId: "req-1", classifier: "m" });
    for (const none of [undefined, "", 7]) expect(await recordWithId(none)).not.toHaveProperty("requestId");
  });

  test.each<[string, Surroundings, StepCall, object]>([
    [
      "the band",
      { classifier: answering({ noul: 0.4 }) },
      banded,
      { cause: { kind: "ask_band", askAt: 0.3 }, judged: "verdict", risk: 0.4, threshold: 0.5 },
    ],
    ["a rule", { precheck: () => "ask" }, proposed(0), { cause: { kind: "precheck" }, judged: "no" }],
    [
      "a failed check",
      { classifier: fakeDecisionModel().alwaysFail("refused"), onUnavailable: "ask" },
      proposed(0),
      { cause: { kind: "unavailable", reason: "refused" }, judged: "unavailable" },
    ],
    [
      "a failed rule",
      { precheck: () => Promise.reject(new Error("x")), onUnavailable: "ask" },
      proposed(0),
      { cause: { kind: "unavailable", reason: "error" }, judged: "unavailable" },
    ],
    [
      "a limit",
      {
        classifier: answering({ noul: 0.9 }),
        limits: { totalBlocks: 1 },
        whenLimitReached: askHuman(),
      },
      proposed(0),
      { cause: { kind: "limit", limit: "totalBlocks" }, judged: "verdict", risk: 0.9, threshold: 0.5 },
    ],
    [
      "a limit, that a repeated call reaches",
      {
        blockedCalls: [{ name: "delete_file", digest: digestOf({ path: "/0" }), risk: 0.8 }],
        limits: { totalBlocks: 1 },
        whenLimitReached: askHuman(),
      },
      proposed(0),
      { cause: { kind: "limit", limit: "totalBlocks" }, judged: "no", risk: 0.8, threshold: 0.5 },
    ],
  ])("a call that waits because of %s", async (_what, given, of, expected) => {
    const [decided] = await decide([of], given);
    expect(waitingCallOf(decided!)).toEqual({
      id: "id-0",
      index: 0,
      name: "delete_file",
      digest: digestOf({ path: "/0" }),
      ...expected,
    });
  });

  test("a remark is the classifier's sentence as one line of at most 500 characters, else the kind of risk", async () => {
    expect(await remarkOf({ explanation: " It deletes\n\n a\tbuild. " }, "secrets")).toBe(
      "It deletes a build.",
    );
    expect(await remarkOf({}, "secrets")).toBe(RISK_KINDS.secrets);
    expect(await remarkOf({})).toBeUndefined();
    expect((await remarkOf({ explanation: "x".repeat(2_000) }))?.length).toBeLessThanOrEqual(500);
    expect(await remarkOf({ explanation: "a\u202Eb" })).not.toContain("\u202E");
  });

  test("only a block by the classifier is remembered, not one for want of approval or by a rule", async () => {
    const classifier = answering({ noul: 0.9 });
    const remembered = { name: "delete_file", digest: digestOf({ path: "/0" }), risk: 0.9 };
    expect(await rememberedOf(proposed(0), { classifier })).toEqual(remembered);
    expect(
      await rememberedOf({ ...banded, canWait: false }, { classifier: answering({ noul: 0.4 }) }),
    ).toBeUndefined();
    expect(await rememberedOf(proposed(0), { precheck: () => "block" })).toBeUndefined();
    expect(await rememberedOf(proposed(0), { classifier, blockedCalls: [remembered] })).toBeUndefined();
    expect(
      await rememberedOf(proposed(0), { classifier: fakeDecisionModel().alwaysFail("error") }),
    ).toBeUndefined();
  });
});

describe("an abort of the run", () => {
  const reason = new Error("stopped by the user");

  test.each<[string, (abort: () => void) => object]>([
    [
      "while a rule is asked, that then throws",
      (abort) => ({
        precheck: () => {
          abort();
          throw new Error("x");
        },
      }),
    ],
    [
      "while a rule is asked, that then allows",
      (abort) => ({
        precheck: () => {
          abort();
          return "allow";
        },
      }),
    ],
    [
      "while the environment is read",
      (abort) => ({
        environment: () => {
          abort();
          return {};
        },
      }),
    ],
    [
      "while the environment is read, that then throws",
      (abort) => ({
        environment: () => {
          abort();
          throw new Error("x");
        },
      }),
    ],
    [
      "while the classifier is asked",
      (abort) => ({
        classifier: fakeDecisionModel({ delayMs: 1 }).always(() => {
          abort();
          return 0;
        }),
      }),
    ],
    [
      "while the classifier fails",
      (abort) => ({
        classifier: fakeDecisionModel().always(() => {
          abort();
          throw new Error("x");
        }),
      }),
    ],
  ])("%s: nothing is decided, its reason comes out", async (_when, given) => {
    const controller = new AbortController();
    const more = given(() => controller.abort(reason));
    expect(await rejection(decide([proposed(0)], { ...more, signal: controller.signal }))).toBe(reason);
  });

  test("before: nobody is asked anything", async () => {
    const classifier = fakeDecisionModel().always(0);
    expect(await rejection(decide([proposed(0)], { classifier, signal: AbortSignal.abort(reason) }))).toBe(
      reason,
    );
    expect(classifier.callCount).toBe(0);
  });
});

describe("whatever is proposed and answered", () => {
  const args = fc.oneof(
    fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()),
    fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
    fc.constant(0).map(() => {
      const cyclic: Record<string, unknown> = {};
      cyclic.self = cyclic;
      return cyclic;
    }),
  );
  const call = fc.record({
    args,
    name: fc.string({ minLength: 1 }),
    description: fc.option(fc.string({ unit: "binary" }), { nil: undefined }),
    malformation: fc.option(fc.constantFrom("no_id" as const, "duplicate_id" as const), {
      nil: undefined,
      freq: 5,
    }),
  });
  const answer = fc.oneof(
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.constantFrom(NaN, -1, 2, "0", null, undefined, {}, []),
  );
  const rule = fc.constantFrom("allow", "block", "classify", "throw", undefined);

  test("a call runs only with a risk below its threshold or by a rule's allow, and whole calls are judged", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(call, answer, rule), { maxLength: 4 }),
        fc.boolean(),
        async (steps, fails) => {
          let request: { tool_calls: Record<string, { name: string; args: object }> } | undefined;
          const asked: number[] = [];
          const classifier = {
            invoke: async ({ state }: ClassifierRequest) => {
              request = state as unknown as NonNullable<typeof request>;
              const answers = Object.fromEntries(
                asked.map((index, at) => [`call_${at + 1}`, { type: "noul", noul: steps[index]?.[1] }]),
              );
              if (fails) throw new ClassificationError("truncated", { answers });
              return { answers } as never;
            },
          };
          const decided = await decide(
            steps.map(([one], index) => proposed(index, one)),
            {
              classifier,
              precheck: ((_call: unknown, of: StepCall) => {
                const given = steps[of.index]?.[2];
                if (given === "classify") asked.push(of.index);
                if (given === "throw") throw new Error("no rule");
                return given;
              }) as never,
            },
          );
          expect(decided).toHaveLength(steps.length);
          for (const [
            index,
            {
              decision,
              call: { frozen },
            },
          ] of decided.entries()) {
            const [{ malformation }, risk, given] = steps[index]!;
            const isWellFormed = frozen !== undefined && malformation === undefined;
            const mayRun =
              isWellFormed &&
              (given === "allow" ||
                (given === "classify" && typeof risk === "number" && risk >= 0 && risk < 0.5));
            expect(decision.action).toBe(mayRun ? "run" : "refuse");
            const shown = request?.tool_calls[`call_${asked.indexOf(index) + 1}`]?.args;
            const isJudged = isWellFormed && given === "classify";
            expect(Object.keys(shown ?? {})).toHaveLength(isJudged ? Object.keys(frozen.value).length : 0);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

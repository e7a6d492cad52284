import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Counted, type Limits, type LimitStatus, ZERO, countStep } from "../../src/limits/counters.js";
import { type Finding, type StepRules, planStep } from "../../src/guard/plan.js";

const START: LimitStatus = { counters: ZERO };
const limitStatus = (row: number, total = row, failed = 0): LimitStatus => ({
  counters: { consecutiveBlocks: row, totalBlocks: total, consecutiveUnavailable: failed },
});
const judged = (risk: number): Finding => ({ kind: "judged", answered: { risk }, threshold: 0.5 });
const safe = judged(0.1);
const risky = judged(0.9);
const failed: Finding = { kind: "judged", answered: { unavailable: "timeout" }, threshold: 0.5 };
const allowRule: Finding = { kind: "rule", answer: "allow" };
const blockRule: Finding = { kind: "rule", answer: "block" };
const approved: Finding = { kind: "approved" };
const malformed: Finding = { kind: "malformed", malformation: "no_id" };

const LIMITS: Limits = { consecutiveBlocks: 3, totalBlocks: 20, consecutiveUnavailable: 10 };
type Given = Partial<Omit<StepRules, "limits">> & {
  limits?: Partial<Limits>;
  limitStatus?: LimitStatus;
  canWait?: boolean[];
};

function plan(findings: Finding[], given: Given = {}) {
  const { limits, limitStatus: before = START, canWait = findings.map(() => true), ...rules } = given;
  const calls = findings.map((finding, index) => ({ finding, canWait: canWait[index] ?? true }));
  return planStep(calls, before, {
    onUnavailable: "continue",
    siblings: "independent",
    limitAsks: false,
    mode: "enforce",
    ...rules,
    limits: { ...LIMITS, ...limits },
  });
}
const outcomes = (findings: Finding[], given?: Given) => plan(findings, given).map(({ outcome }) => outcome);
const actions = (findings: Finding[], given?: Given) => plan(findings, given).map(({ action }) => action);

describe("one call", () => {
  test.each<[string, Finding, string, string, string]>([
    ["below the threshold is allowed and runs", safe, "allowed", "run", "classifier"],
    ["at the threshold is blocked and refused", judged(0.5), "blocked", "refuse", "classifier"],
    ["without a verdict is unavailable and refused", failed, "unavailable", "refuse", "classifier"],
    ["that a fixed rule allows runs", allowRule, "allowed", "run", "precheck"],
    ["that a fixed rule blocks is refused", blockRule, "blocked", "refuse", "precheck"],
    ["that a person approved runs", approved, "approved", "run", "human"],
    ["that is malformed is refused", malformed, "malformed", "refuse", "guard"],
  ])("%s", (_title, finding, outcome, action, by) => {
    expect(plan([finding])).toMatchObject([{ outcome, action, by }]);
  });

  test.each<[string, Finding, string]>([
    ["a verdict", risky, "verdict"],
    ["a failure", failed, "unavailable"],
    ["neither, where no one was asked", allowRule, "no"],
  ])("is counted as %s", (_title, finding, expected) => {
    expect(plan([finding])[0]?.counted.judged).toBe(expected);
  });
});

describe("counts", () => {
  test("each call gets the counts after it, in the order of the calls", () => {
    const counters = plan([risky, safe, risky], { limitStatus: limitStatus(1, 5, 2) }).map(
      (call) => call.counters,
    );
    expect(counters).toEqual([
      { consecutiveBlocks: 2, totalBlocks: 6, consecutiveUnavailable: 0 },
      { consecutiveBlocks: 0, totalBlocks: 6, consecutiveUnavailable: 0 },
      { consecutiveBlocks: 1, totalBlocks: 7, consecutiveUnavailable: 0 },
    ]);
  });

  test("an empty step plans nothing", () => {
    expect(plan([])).toEqual([]);
  });
});

describe("the band in which a person decides", () => {
  const band = { kind: "judged", answered: { risk: 0.4 }, threshold: 0.5, askAt: 0.3 } as const;
  const askRule: Finding = { kind: "rule", answer: "ask" };

  test.each<[string, Finding]>([
    ["a risk in the band", band],
    ["a rule that asks", askRule],
  ])("%s: the call waits, and counts when it is answered", (_what, finding) => {
    expect(plan([finding])).toMatchObject([
      { outcome: "waiting", action: "suspend", lacksApproval: false, counters: START.counters },
    ]);
  });

  test.each<[string, Finding]>([
    ["a risk in the band", band],
    ["a rule that asks", askRule],
  ])("%s, where nobody can be asked: blocked, because it lacks approval", (_what, finding) => {
    expect(plan([finding], { canWait: [false] })).toMatchObject([
      { outcome: "blocked", action: "refuse", lacksApproval: true, counters: { totalBlocks: 1 } },
    ]);
  });

  test("below the band a call is allowed, at the threshold it is blocked", () => {
    expect(outcomes([0.29, 0.3, 0.49, 0.5].map((risk) => ({ ...band, answered: { risk } })))).toEqual([
      "allowed",
      "waiting",
      "waiting",
      "blocked",
    ]);
  });

  test("next to a failure that ends the run nobody is asked", () => {
    expect(outcomes([band, failed], { onUnavailable: "throw" })).toEqual(["blocked", "unavailable"]);
  });

  test("observing records that it would wait, and runs it", () => {
    expect(plan([band], { mode: "observe" })).toMatchObject([{ outcome: "waiting", action: "run" }]);
  });
});

describe("what was decided before", () => {
  test("a repeated call counts as a block, and was not judged", () => {
    expect(plan([{ kind: "repeated", risk: 0.8 }])).toMatchObject([
      { outcome: "blocked", by: "classifier", counted: { judged: "no" }, counters: { totalBlocks: 1 } },
    ]);
  });

  test.each<[Finding, string, string]>([
    [{ kind: "passed", outcome: "allowed" }, "allowed", "classifier"],
    [{ kind: "passed", outcome: "approved" }, "approved", "human"],
  ])("%j runs", (finding, outcome, by) => {
    expect(plan([finding])).toMatchObject([{ outcome, by, action: "run" }]);
  });

  test.each(["precheck", "environment", "guard"] as const)(
    "a failure of the %s is recorded as such",
    (by) => {
      expect(plan([{ kind: "failed", by, error: new Error("x") }])).toMatchObject([
        { outcome: "unavailable", by, action: "refuse", counted: { judged: "unavailable" } },
      ]);
    },
  );
});

describe("observing", () => {
  test("runs every call, whatever was decided", () => {
    expect(new Set(actions([risky, failed, malformed, blockRule, safe], { mode: "observe" }))).toEqual(
      new Set(["run"]),
    );
  });
});

describe("a limit that asks a person", () => {
  test("the call that reaches it waits, and does not count yet", () => {
    const [call] = plan([risky], { limitAsks: true, limitStatus: limitStatus(2) });
    expect(call).toMatchObject({ outcome: "waiting", action: "suspend", counters: limitStatus(2).counters });
  });

  test("a block that does not reach it is an ordinary block", () => {
    expect(outcomes([risky], { limitAsks: true, limitStatus: limitStatus(1) })).toEqual(["blocked"]);
  });

  test("every further block of the step waits too, though none of the waiting calls counts", () => {
    expect(outcomes([risky, risky, risky], { limitAsks: true, limitStatus: limitStatus(1) })).toEqual([
      "blocked",
      "waiting",
      "waiting",
    ]);
  });

  test("an allowed call of the step does not end the asking", () => {
    expect(outcomes([risky, safe, risky], { limitAsks: true, limitStatus: limitStatus(2) })).toEqual([
      "waiting",
      "allowed",
      "waiting",
    ]);
  });

  test("every call that waits because of it names it, also behind an allowed call that ended the row", () => {
    const planned = plan([risky, safe, risky], { limitAsks: true, limitStatus: limitStatus(2) });
    expect(planned.map(({ limit }) => limit)).toEqual(["consecutiveBlocks", undefined, "consecutiveBlocks"]);
  });

  test("behind a call without a verdict, which reaches its own limit, a block of the step waits too", () => {
    const given = { limitAsks: true, limits: { consecutiveUnavailable: 1 }, canWait: [false, true] };
    expect(plan([failed, risky], given)).toMatchObject([
      { outcome: "unavailable" },
      { outcome: "waiting", limit: "consecutiveUnavailable" },
    ]);
  });

  test("once a limit is reached every block of the turn waits, whatever the counts say", () => {
    const reached: LimitStatus = { ...limitStatus(0, 7), limit: "consecutiveBlocks" };
    expect(outcomes([risky], { limitAsks: true, limitStatus: reached })).toEqual(["waiting"]);
  });

  test("the total asks as the row does", () => {
    expect(outcomes([risky], { limitAsks: true, limitStatus: limitStatus(0, 19) })).toEqual(["waiting"]);
  });

  test("a fixed rule's block is final: it does not wait, what can wait next to it does", () => {
    const given = { limitAsks: true, limitStatus: limitStatus(2) };
    expect(outcomes([blockRule], given)).toEqual(["blocked"]);
    expect(outcomes([blockRule, risky], given)).toEqual(["blocked", "waiting"]);
  });

  test("a call that a person cannot be shown as it would run does not wait: it is blocked", () => {
    const given = { limitAsks: true, limitStatus: limitStatus(2), canWait: [false, true] };
    expect(outcomes([risky, risky], given)).toEqual(["blocked", "waiting"]);
  });

  test("a malformed call never waits", () => {
    expect(outcomes([malformed], { limitAsks: true, limitStatus: limitStatus(2) })).toEqual(["malformed"]);
  });

  test("the call that waits says who decided that it should", () => {
    expect(plan([risky, blockRule], { limitAsks: true, limitStatus: limitStatus(2) })).toMatchObject([
      { by: "classifier" },
      { by: "precheck" },
    ]);
  });
});

describe("a limit that does not ask", () => {
  test("nothing waits, however many are blocked", () => {
    expect(actions([risky, risky, risky, risky], { limitStatus: limitStatus(9) })).toEqual(
      Array.from({ length: 4 }, () => "refuse"),
    );
  });
});

describe("calls without a verdict", () => {
  test("wait where a person decides about them", () => {
    expect(plan([failed, safe], { onUnavailable: "ask" })).toMatchObject([
      { outcome: "waiting", action: "suspend", counted: { judged: "unavailable" } },
      { outcome: "allowed" },
    ]);
  });

  test("do not wait if a person cannot be shown what would run", () => {
    expect(outcomes([failed], { onUnavailable: "ask", canWait: [false] })).toEqual(["unavailable"]);
  });

  test("of the step that reaches their limit wait, where limits ask", () => {
    const given = {
      limitAsks: true,
      limits: { consecutiveUnavailable: 2 },
      limitStatus: limitStatus(0, 0, 1),
    };
    expect(outcomes([failed, failed], given)).toEqual(["waiting", "waiting"]);
  });

  test.each<[string, Given]>([
    ["before their limit", { limitAsks: true, limitStatus: limitStatus(0, 0, 0) }],
    ["where limits do not ask", { limitStatus: limitStatus(0, 0, 1) }],
  ])("are answered %s", (_title, given) => {
    expect(outcomes([failed], { limits: { consecutiveUnavailable: 2 }, ...given })).toEqual(["unavailable"]);
  });

  test("that end the run with an error are not asked about at their limit", () => {
    const given = { limitAsks: true, onUnavailable: "throw", limits: { consecutiveUnavailable: 1 } } as const;
    expect(outcomes([failed], given)).toEqual(["unavailable"]);
  });

  test("that end the run with an error go before the fallback: the step's blocks do not wait", () => {
    const given = { limitAsks: true, onUnavailable: "throw", limitStatus: limitStatus(2) } as const;
    expect(outcomes([risky, failed, risky], given)).toEqual(["blocked", "unavailable", "blocked"]);
    expect(outcomes([risky, safe, risky], given)).toEqual(["waiting", "allowed", "waiting"]);
  });
});

describe("all-or-none siblings", () => {
  const siblings = "all-or-none";

  test.each<[string, Finding, Given]>([
    ["a blocked", risky, {}],
    ["a fixed rule's blocked", blockRule, {}],
    ["an unavailable", failed, {}],
    ["an unavailable call that waits:", failed, { onUnavailable: "ask" }],
    ["a call that reaches a limit and waits:", risky, { limitAsks: true, limitStatus: limitStatus(2) }],
  ])("%s call holds the others back, wherever it is", (_title, stop, given) => {
    for (const findings of [
      [stop, safe, allowRule],
      [safe, allowRule, stop],
    ]) {
      const planned = plan(findings, { siblings, ...given });
      const others = planned.filter((_, index) => findings[index] !== stop);
      expect(others.map(({ outcome, action, by }) => ({ outcome, action, by }))).toEqual([
        { outcome: "held_back", action: "refuse", by: "guard" },
        { outcome: "held_back", action: "refuse", by: "guard" },
      ]);
    }
  });

  test("a held-back call counts nothing: it neither blocks nor ends a row", () => {
    const planned = plan([safe, risky, safe], { siblings, limitStatus: limitStatus(1) });
    expect(planned.at(-1)?.counters).toEqual(limitStatus(2).counters);
  });

  test("a malformed call holds nobody back: it was not judged", () => {
    expect(outcomes([malformed, safe], { siblings })).toEqual(["malformed", "allowed"]);
  });

  test("an approved call is not held back: a person decided", () => {
    expect(outcomes([approved, risky], { siblings })).toEqual(["approved", "blocked"]);
  });

  test("when nothing is stopped everything runs", () => {
    expect(actions([safe, allowRule, approved], { siblings })).toEqual(["run", "run", "run"]);
  });
});

describe("whatever the findings", () => {
  const band: Finding = { kind: "judged", answered: { risk: 0.4 }, threshold: 0.5, askAt: 0.3 };
  const askRule: Finding = { kind: "rule", answer: "ask" };
  const repeated: Finding = { kind: "repeated", risk: 0.8 };
  const passed: Finding = { kind: "passed", outcome: "allowed" };
  const passedAgain: Finding = { kind: "passed", outcome: "approved" };
  const broken: Finding = { kind: "failed", by: "environment", error: undefined };

  /** What each finding says of its call, written down once more. */
  const MEANS = new Map<Finding, { verdict: string; judged: Counted["judged"] }>([
    [safe, { verdict: "allow", judged: "verdict" }],
    [risky, { verdict: "block", judged: "verdict" }],
    [band, { verdict: "ask", judged: "verdict" }],
    [failed, { verdict: "fail", judged: "unavailable" }],
    [broken, { verdict: "fail", judged: "unavailable" }],
    [allowRule, { verdict: "allow", judged: "no" }],
    [blockRule, { verdict: "forbid", judged: "no" }],
    [askRule, { verdict: "ask", judged: "no" }],
    [repeated, { verdict: "block", judged: "no" }],
    [passed, { verdict: "allow", judged: "no" }],
    [passedAgain, { verdict: "approve", judged: "no" }],
    [approved, { verdict: "approve", judged: "no" }],
    [malformed, { verdict: "reject", judged: "no" }],
  ]);
  const finding = fc.constantFrom(...MEANS.keys());
  const anyRules = fc.record({
    onUnavailable: fc.constantFrom("throw", "continue", "ask"),
    siblings: fc.constantFrom("independent", "all-or-none"),
    limitAsks: fc.boolean(),
  });
  const anyLimits = fc.record({
    consecutiveBlocks: fc.integer({ min: 1, max: 4 }),
    totalBlocks: fc.integer({ min: 1, max: 8 }),
    consecutiveUnavailable: fc.integer({ min: 1, max: 4 }),
  });
  const before = fc
    .record({
      row: fc.nat(3),
      total: fc.nat(8),
      failed: fc.nat(4),
      limit: fc.option(fc.constantFrom("consecutiveBlocks", "totalBlocks"), { nil: undefined, freq: 3 }),
    })
    .map(({ row, total, failed: failures, limit }): LimitStatus => ({
      ...limitStatus(row, total, failures),
      ...(limit ? { limit } : {}),
    }));
  const step = fc.array(fc.record({ finding, canWait: fc.boolean() }), { maxLength: 8 });
  type Calls = { finding: Finding; canWait: boolean }[];
  const planAny = (calls: Calls, given: Given) =>
    plan(
      calls.map((call) => call.finding),
      { ...given, canWait: calls.map((call) => call.canWait) },
    );

  /** The outcomes as they are documented, call by call, with plain counts of blocks. */
  function expectedOutcomes(
    calls: Calls,
    given: typeof anyRules extends fc.Arbitrary<infer T> ? T : never,
    from: LimitStatus,
    limits: Limits,
  ) {
    const verdictAt = (call: Calls[number]) => MEANS.get(call.finding)!.verdict;
    const endsRun = given.onUnavailable === "throw" && calls.some((call) => verdictAt(call) === "fail");
    const reachesFailures = from.counters.consecutiveUnavailable + 1 >= limits.consecutiveUnavailable;
    const asksOnFailure =
      given.onUnavailable === "ask" ||
      (given.onUnavailable === "continue" && given.limitAsks && reachesFailures);
    const first = calls.map((call): string => {
      const mayWait = call.canWait && !endsRun;
      switch (verdictAt(call)) {
        case "allow":
          return "allowed";
        case "approve":
          return "approved";
        case "reject":
          return "malformed";
        case "fail":
          return mayWait && asksOnFailure ? "waiting" : "unavailable";
        case "ask":
          return mayWait ? "waiting" : "blocked";
        default:
          return "blocked";
      }
    });
    const isStopped = first.some((outcome) => ["blocked", "unavailable", "waiting"].includes(outcome));
    let { consecutiveBlocks: row, totalBlocks: total } = from.counters;
    let isReached = from.limit !== undefined;
    let isAsking = false;
    return calls.map((call, index) => {
      const outcome = first[index];
      const { verdict, judged: how } = MEANS.get(call.finding)!;
      if (outcome === "allowed" && isStopped && given.siblings === "all-or-none") return "held_back";
      if (outcome === "approved" || (outcome === "allowed" && how !== "no")) row = 0;
      // A failure that nobody is asked about reaches its own limit, and further blocks of the step wait.
      if (outcome === "unavailable" && reachesFailures) isReached = true;
      if (outcome !== "blocked") return outcome;
      const wouldReach = isReached || row + 1 >= limits.consecutiveBlocks || total + 1 >= limits.totalBlocks;
      const asks = given.limitAsks && !endsRun && call.canWait && verdict !== "forbid";
      if (asks && (isAsking || wouldReach)) {
        isAsking = true;
        return "waiting";
      }
      row += 1;
      total += 1;
      isReached = wouldReach;
      return "blocked";
    });
  }

  test("the outcomes are those that a plain reading of the rules gives", () => {
    fc.assert(
      fc.property(step, anyRules, before, anyLimits, (calls, given, from, limits) => {
        const planned = planAny(calls, { ...given, limits, limitStatus: from });
        expect(planned.map(({ outcome }) => outcome)).toEqual(expectedOutcomes(calls, given, from, limits));
        expect(planned.map(({ counted }) => counted.judged)).toEqual(
          calls.map((call) => MEANS.get(call.finding)?.judged),
        );
      }),
      { numRuns: 1_000 },
    );
  });

  test("a call runs only if it was allowed or approved, and waits only if it can", () => {
    const mayRun: ReadonlySet<string | undefined> = new Set(["allow", "approve"]);
    fc.assert(
      fc.property(step, anyRules, before, (calls, given, from) => {
        const planned = planAny(calls, { ...given, limitStatus: from });
        expect(planned).toHaveLength(calls.length);
        for (const [index, { outcome, action }] of planned.entries()) {
          const call = calls[index]!;
          expect(action === "run").toBe(outcome === "allowed" || outcome === "approved");
          expect(action === "suspend").toBe(outcome === "waiting");
          expect(action !== "suspend" || (call.canWait && call.finding !== blockRule)).toBe(true);
          expect(action !== "run" || mayRun.has(MEANS.get(call.finding)?.verdict)).toBe(true);
        }
      }),
    );
  });

  test("observing changes nothing but that every call runs", () => {
    fc.assert(
      fc.property(step, anyRules, before, (calls, given, from) => {
        const enforced = planAny(calls, { ...given, limitStatus: from });
        const observed = planAny(calls, { ...given, limitStatus: from, mode: "observe" });
        expect(observed).toEqual(enforced.map((decision) => ({ ...decision, action: "run" })));
      }),
    );
  });

  test("a call lacks approval if and only if a person would have had to decide and cannot be asked", () => {
    fc.assert(
      fc.property(step, anyRules, before, (calls, given, from) => {
        const planned = planAny(calls, { ...given, limitStatus: from });
        for (const [index, { outcome, lacksApproval }] of planned.entries())
          expect(lacksApproval).toBe(
            outcome === "blocked" && MEANS.get(calls[index]!.finding)?.verdict === "ask",
          );
      }),
    );
  });

  test("a call that waits because of a limit names it, and no other call does", () => {
    fc.assert(
      fc.property(step, anyRules, before, anyLimits, (calls, given, from, limits) => {
        const planned = planAny(calls, { ...given, limits, limitStatus: from });
        for (const [index, { outcome, limit }] of planned.entries())
          expect(limit !== undefined).toBe(
            outcome === "waiting" && MEANS.get(calls[index]!.finding)?.verdict === "block",
          );
      }),
    );
  });

  test("the counts of the last call are those that the state comes to", () => {
    fc.assert(
      fc.property(step, anyRules, before, anyLimits, (calls, given, from, limits) => {
        const planned = planAny(calls, { ...given, limits, limitStatus: from });
        const counted = planned
          .filter(({ outcome }) => outcome !== "waiting")
          .map((decision) => decision.counted);
        expect(planned.at(-1)?.counters ?? from.counters).toEqual(countStep(from, counted, limits).counters);
      }),
    );
  });

  test("an approved call changes no count again: it counted when the person answered", () => {
    fc.assert(
      fc.property(before, ({ counters }) => {
        const from = limitStatus(0, counters.totalBlocks, counters.consecutiveUnavailable);
        expect(plan([approved], { limitStatus: from })[0]?.counters).toEqual(from.counters);
      }),
    );
  });
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Limits, type LimitStatus, ZERO, countStep } from "../../src/limits/counters.js";
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
  test("each call is told the counts as they stand after it, in the order of the calls", () => {
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

  test("beside a failure that ends the run nobody is asked", () => {
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

  test.each(["precheck", "environment", "guard"] as const)("a failure of the %s is told as such", (by) => {
    expect(plan([{ kind: "failed", by, error: new Error("x") }])).toMatchObject([
      { outcome: "unavailable", by, action: "refuse", counted: { judged: "unavailable" } },
    ]);
  });
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

  test("once a limit is reached every block of the turn waits, whatever the counts say", () => {
    const reached: LimitStatus = { ...limitStatus(0, 7), limit: "consecutiveBlocks" };
    expect(outcomes([risky], { limitAsks: true, limitStatus: reached })).toEqual(["waiting"]);
  });

  test("the total asks as the row does", () => {
    expect(outcomes([risky], { limitAsks: true, limitStatus: limitStatus(0, 19) })).toEqual(["waiting"]);
  });

  test("a fixed rule's block is final: it does not wait, what can wait beside it does", () => {
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
  ])("%s call holds the others back, wherever it stands", (_title, stop, given) => {
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
  const finding = fc.constantFrom(safe, risky, failed, allowRule, blockRule, approved, malformed);
  const rules = fc.record({
    onUnavailable: fc.constantFrom("throw", "continue", "ask"),
    siblings: fc.constantFrom("independent", "all-or-none"),
    limitAsks: fc.boolean(),
  });
  const before = fc.record({ row: fc.nat(3), total: fc.nat(20), failed: fc.nat(10) });
  const mayRun: ReadonlySet<Finding | undefined> = new Set([safe, allowRule, approved]);
  const step = fc.array(fc.record({ finding, canWait: fc.boolean() }), { maxLength: 8 });

  test("a call runs only if it was allowed or approved, and waits only if it can", () => {
    fc.assert(
      fc.property(step, rules, before, (calls, given, counts) => {
        const planned = plan(
          calls.map((call) => call.finding),
          {
            ...given,
            limitStatus: limitStatus(counts.row, counts.total, counts.failed),
            canWait: calls.map((call) => call.canWait),
          },
        );
        expect(planned).toHaveLength(calls.length);
        for (const [index, { outcome, action }] of planned.entries()) {
          expect(action === "run").toBe(outcome === "allowed" || outcome === "approved");
          expect(action === "suspend").toBe(outcome === "waiting");
          expect(action !== "suspend" || calls[index]?.canWait).toBe(true);
          expect(action !== "run" || mayRun.has(calls[index]?.finding)).toBe(true);
        }
      }),
    );
  });

  test("the counts that the last call is told are those that the state comes to", () => {
    fc.assert(
      fc.property(step, rules, before, (calls, given, counts) => {
        const from = limitStatus(counts.row, counts.total, counts.failed);
        const planned = plan(
          calls.map((call) => call.finding),
          { ...given, limitStatus: from, canWait: calls.map((call) => call.canWait) },
        );
        const counted = planned
          .filter(({ outcome }) => outcome !== "waiting")
          .map((decision) => decision.counted);
        expect(planned.at(-1)?.counters ?? from.counters).toEqual(countStep(from, counted, LIMITS).counters);
      }),
    );
  });

  test("an approved call changes no count again: it counted when the person answered", () => {
    fc.assert(
      fc.property(before, (counts) => {
        const from = limitStatus(0, counts.total, counts.failed);
        expect(plan([approved], { limitStatus: from })[0]?.counters).toEqual(from.counters);
      }),
    );
  });
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Outcome } from "../../src/decision-record.js";
import type { LimitName } from "../../src/errors.js";
import {
  type Counted,
  DEFAULT_LIMITS,
  type Limits,
  type LimitStatus,
  StepTally,
  ZERO,
  countStep,
  newTurn,
} from "../../src/limits/counters.js";

const START: LimitStatus = { counters: ZERO };
const limits = (given: Partial<Limits> = {}): Limits => ({
  consecutiveBlocks: Infinity,
  totalBlocks: Infinity,
  consecutiveUnavailable: Infinity,
  ...given,
});

const allowed: Counted = { outcome: "allowed", judged: "verdict" };
const blocked: Counted = { outcome: "blocked", judged: "verdict" };
const unavailable: Counted = { outcome: "unavailable", judged: "unavailable" };
const precheckAllowed: Counted = { outcome: "allowed", judged: "no" };
const precheckBlocked: Counted = { outcome: "blocked", judged: "no" };
const rejected: Counted = { outcome: "rejected", judged: "verdict" };
const approved: Counted = { outcome: "approved", judged: "verdict" };
const heldBack: Counted = { outcome: "held_back", judged: "verdict" };
const malformed: Counted = { outcome: "malformed", judged: "no" };
const waiting: Counted = { outcome: "waiting", judged: "verdict" };

/** Steps one after another, each a list of calls. */
function after(steps: readonly (readonly Counted[])[], given: Partial<Limits> = {}, start = START) {
  return steps.reduce((limitStatus, calls) => countStep(limitStatus, calls, limits(given)), {
    ...start,
    due: false,
  });
}
const counts = (row: number, total: number, failed = 0) => ({
  consecutiveBlocks: row,
  totalBlocks: total,
  consecutiveUnavailable: failed,
});

describe("what one call changes", () => {
  test.each<[string, Counted, ReturnType<typeof counts>]>([
    ["a blocked call adds one to the row and one to the total", blocked, counts(3, 8, 0)],
    ["a call that a fixed rule blocks is a block", precheckBlocked, counts(3, 8, 4)],
    ["a person's rejection is a block", rejected, counts(3, 8, 0)],
    ["an allowed call ends the row", allowed, counts(0, 7, 0)],
    ["a person's approval ends the row", approved, counts(0, 7, 0)],
    ["a call that a fixed rule allows changes nothing", precheckAllowed, counts(2, 7, 4)],
    ["an unavailable call is no block", unavailable, counts(2, 7, 5)],
    ["a held-back call counts nothing, not even its verdict", heldBack, counts(2, 7, 4)],
    ["a malformed call counts nothing", malformed, counts(2, 7, 4)],
  ])("%s", (_title, call, expected) => {
    const start: LimitStatus = { counters: counts(2, 7, 4) };
    expect(countStep(start, [call], limits()).counters).toEqual(expected);
  });

  test("a rejected call that could not be evaluated is a block and a failed step", () => {
    const call: Counted = { outcome: "rejected", judged: "unavailable" };
    expect(after([[call]]).counters).toEqual(counts(1, 1, 1));
  });

  test("an approved call that could not be evaluated ends the row of blocks, not the row of failures", () => {
    const call: Counted = { outcome: "approved", judged: "unavailable" };
    const start: LimitStatus = { counters: counts(2, 2, 1) };
    expect(countStep(start, [call], limits()).counters).toEqual(counts(0, 2, 2));
  });

  test("a waiting call adds no block and ends no row of blocks", () => {
    const start: LimitStatus = { counters: counts(2, 7, 0) };
    expect(countStep(start, [waiting], limits()).counters).toEqual(counts(2, 7, 0));
  });
});

describe("the order of a step's calls", () => {
  test("an allowed call after a block ends the row that the block began", () => {
    expect(after([[blocked, allowed]]).counters).toEqual(counts(0, 1));
  });

  test("a block after an allowed call begins a new row", () => {
    expect(after([[blocked, blocked, allowed, blocked]]).counters).toEqual(counts(1, 3));
  });

  test("a limit is reached in the middle of a step, though a later call of it is allowed", () => {
    const { limit, due, counters } = after([[blocked, blocked, allowed]], { consecutiveBlocks: 2 });
    expect({ limit, due, counters }).toEqual({
      limit: "consecutiveBlocks",
      due: true,
      counters: counts(0, 2),
    });
  });
});

describe("failures in a row", () => {
  test("several failed calls of one step add one", () => {
    expect(after([[unavailable, unavailable, unavailable]]).counters.consecutiveUnavailable).toBe(1);
  });

  test("a step with a failed call and a verdict adds one all the same", () => {
    expect(after([[allowed, unavailable, blocked]]).counters).toEqual(counts(1, 1, 1));
  });

  test("a step whose judged calls all got verdicts sets it to 0", () => {
    expect(after([[unavailable], [unavailable], [blocked]]).counters.consecutiveUnavailable).toBe(0);
  });

  test.each<[string, Counted[]]>([
    ["no call at all", []],
    ["only calls that fixed rules decided", [precheckAllowed, precheckBlocked]],
    ["only malformed calls", [malformed]],
    ["only held-back calls beside a fixed rule's block", [heldBack, precheckBlocked]],
  ])("a step with %s leaves it as it is", (_title, calls) => {
    expect(after([[unavailable], calls]).counters.consecutiveUnavailable).toBe(1);
  });

  test("a held-back call next to a judged block: the block's verdict sets it to 0", () => {
    expect(after([[unavailable], [heldBack, blocked]]).counters.consecutiveUnavailable).toBe(0);
  });
});

describe("when a limit is reached", () => {
  test("by the block that makes the count equal to it, not before", () => {
    expect(after([[blocked], [blocked]], { consecutiveBlocks: 3 })).toEqual({
      counters: counts(2, 2),
      due: false,
    });
    expect(after([[blocked], [blocked], [blocked]], { consecutiveBlocks: 3 })).toEqual({
      counters: counts(3, 3),
      limit: "consecutiveBlocks",
      due: true,
    });
  });

  test("it stays reached while calls are allowed, but only a further block goes to the fallback", () => {
    const reached = after([[blocked], [blocked]], { consecutiveBlocks: 2 });
    const quiet = countStep(reached, [allowed], limits({ consecutiveBlocks: 2 }));
    expect(quiet).toEqual({ counters: counts(0, 2), limit: "consecutiveBlocks", due: false });
    const again = countStep(quiet, [blocked], limits({ consecutiveBlocks: 2 }));
    expect(again).toEqual({ counters: counts(1, 3), limit: "consecutiveBlocks", due: true });
  });

  test("the first limit that was reached keeps its name", () => {
    const limitStatus = after([[blocked], [blocked], [blocked]], { consecutiveBlocks: 2, totalBlocks: 3 });
    expect(limitStatus.limit).toBe("consecutiveBlocks");
  });

  test("of two that one block reaches, the row is named", () => {
    expect(after([[blocked]], { consecutiveBlocks: 1, totalBlocks: 1 }).limit).toBe("consecutiveBlocks");
  });

  test("by the step that makes the failures in a row equal to it", () => {
    const given = { consecutiveUnavailable: 2 };
    expect(after([[unavailable]], given)).toEqual({ counters: counts(0, 0, 1), due: false });
    expect(after([[unavailable], [unavailable]], given)).toEqual({
      counters: counts(0, 0, 2),
      limit: "consecutiveUnavailable",
      due: true,
    });
  });

  test("failures below their limit do not go to the fallback, though another limit was reached before", () => {
    const reached = after([[blocked]], { consecutiveBlocks: 1, consecutiveUnavailable: 2 });
    const { due, limit } = countStep(
      reached,
      [unavailable],
      limits({ consecutiveBlocks: 1, consecutiveUnavailable: 2 }),
    );
    expect({ due, limit }).toEqual({ due: false, limit: "consecutiveBlocks" });
  });

  test("failures that reach their limit go to the fallback under the name of the limit that came first", () => {
    const given = { consecutiveBlocks: 1, consecutiveUnavailable: 1 };
    const { due, limit } = countStep(after([[blocked]], given), [unavailable], limits(given));
    expect({ due, limit }).toEqual({ due: true, limit: "consecutiveBlocks" });
  });

  test("a step that only held the row of failures, without adding to it, does not go to the fallback", () => {
    const given = { consecutiveUnavailable: 1 };
    expect(countStep(after([[unavailable]], given), [precheckAllowed], limits(given)).due).toBe(false);
  });

  test("Infinity is never reached", () => {
    const limitStatus = after(Array.from({ length: 500 }, () => [blocked, unavailable]));
    expect(limitStatus).toEqual({ counters: counts(500, 500, 500), due: false });
  });

  test("three blocks in a row, twenty in a thread and ten failures in a row are the defaults", () => {
    expect(DEFAULT_LIMITS).toEqual({ consecutiveBlocks: 3, totalBlocks: 20, consecutiveUnavailable: 10 });
  });
});

describe("a new turn", () => {
  test("sets the counts in a row to 0 and keeps the total", () => {
    expect(newTurn({ counters: counts(2, 9, 3), limit: "consecutiveBlocks" })).toEqual({
      counters: counts(0, 9, 0),
    });
  });

  test("after the total was reached, calls are allowed as ever and the next block goes to the fallback", () => {
    const given = { totalBlocks: 2 };
    const next = newTurn(after([[blocked, blocked]], given));
    const quiet = countStep(next, [allowed], limits(given));
    expect(quiet.due).toBe(false);
    expect(countStep(quiet, [blocked], limits(given))).toMatchObject({ due: true, limit: "totalBlocks" });
  });
});

describe("a long thread", () => {
  test("300 calls with 20 scattered blocks: the row never fills, the total does at the 20th", () => {
    let limitStatus: ReturnType<typeof countStep> = { ...START, due: false };
    const due: number[] = [];
    for (let call = 0; call < 300; call += 1) {
      limitStatus = countStep(limitStatus, [call % 15 === 7 ? blocked : allowed], DEFAULT_LIMITS);
      if (limitStatus.due) due.push(call);
    }
    expect(due).toEqual([19 * 15 + 7]);
    expect(limitStatus).toMatchObject({ counters: counts(0, 20), limit: "totalBlocks" });
  });
});

describe("whatever happens", () => {
  const outcomes: Outcome[] = [
    "allowed",
    "blocked",
    "unavailable",
    "waiting",
    "approved",
    "rejected",
    "held_back",
    "malformed",
  ];
  const call = fc.record<Counted>({
    outcome: fc.constantFrom(...outcomes),
    judged: fc.constantFrom("verdict", "unavailable", "no"),
  });
  const anyLimits = fc.record<Limits>({
    consecutiveBlocks: fc.integer({ min: 1, max: 5 }),
    totalBlocks: fc.integer({ min: 1, max: 8 }),
    consecutiveUnavailable: fc.integer({ min: 1, max: 5 }),
  });
  const thread = fc.array(fc.array(call, { maxLength: 5 }), { maxLength: 12 });

  test("the total is the number of blocks and rejections, and no count is negative or larger than it", () => {
    fc.assert(
      fc.property(thread, anyLimits, (steps, given) => {
        const { counters } = after(steps, given);
        const blocks = steps.flat().filter(({ outcome }) => outcome === "blocked" || outcome === "rejected");
        expect(counters.totalBlocks).toBe(blocks.length);
        expect(counters.consecutiveBlocks).toBeGreaterThanOrEqual(0);
        expect(counters.consecutiveBlocks).toBeLessThanOrEqual(counters.totalBlocks);
        expect(counters.consecutiveUnavailable).toBeLessThanOrEqual(steps.length);
      }),
    );
  });

  test("a step goes to the fallback only under a limit, and a limit once reached is not forgotten", () => {
    fc.assert(
      fc.property(thread, anyLimits, (steps, given) => {
        let limitStatus: ReturnType<typeof countStep> = { ...START, due: false };
        for (const calls of steps) {
          const before = limitStatus;
          limitStatus = countStep(before, calls, given);
          expect(limitStatus.due && limitStatus.limit === undefined).toBe(false);
          expect(limitStatus.limit).toBe(before.limit ?? limitStatus.limit);
        }
      }),
    );
  });

  const anyStart = fc
    .record({
      row: fc.nat(4),
      total: fc.nat(8),
      failed: fc.nat(4),
      limit: fc.option(fc.constantFrom<LimitName>("consecutiveBlocks", "totalBlocks"), { nil: undefined }),
    })
    .map(({ row, total, failed, limit }): LimitStatus => ({
      counters: counts(row, total, failed),
      ...(limit ? { limit } : {}),
    }));

  test("calls that are added one by one come, after each, to what the step counted at once comes to", () => {
    fc.assert(
      fc.property(anyStart, fc.array(call, { maxLength: 8 }), anyLimits, (start, calls, given) => {
        const tally = new StepTally(start, given);
        expect(tally.count).toEqual(countStep(start, [], given));
        for (const [index, item] of calls.entries())
          expect(tally.add(item).count).toEqual(countStep(start, calls.slice(0, index + 1), given));
      }),
    );
  });

  test("a copy goes on from where it was taken, and neither changes the other", () => {
    const list = fc.array(call, { maxLength: 6 });
    fc.assert(
      fc.property(anyStart, list, list, anyLimits, (start, earlier, later, given) => {
        const tally = new StepTally(start, given);
        for (const item of earlier) tally.add(item);
        const copy = tally.copy();
        for (const item of later) copy.add(item);
        expect(copy.count).toEqual(countStep(start, [...earlier, ...later], given));
        expect(tally.count).toEqual(countStep(start, earlier, given));
      }),
    );
  });

  test("nothing that was given is changed", () => {
    fc.assert(
      fc.property(fc.array(call), anyLimits, (calls, given) => {
        const frozen = calls.map((item) => Object.freeze(item));
        expect(() =>
          countStep(Object.freeze({ counters: ZERO }), Object.freeze(frozen), Object.freeze(given)),
        ).not.toThrow();
      }),
    );
  });
});

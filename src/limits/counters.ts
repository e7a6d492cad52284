import type { Outcome } from "../decision-record.js";
import type { Counters, LimitName } from "../errors.js";

/** When a run is stopped. Each a whole number >= 1, or `Infinity` for never. */
export interface Limits {
  /** Blocked calls in a row within a turn. Default 3. */
  consecutiveBlocks: number;
  /** Blocked calls in a thread. Default 20. */
  totalBlocks: number;
  /** Steps in a row within a turn in which a call could not be evaluated. Default 10. */
  consecutiveUnavailable: number;
}

/** The limits that are used where none are configured. */
export const DEFAULT_LIMITS: Limits = { consecutiveBlocks: 3, totalBlocks: 20, consecutiveUnavailable: 10 };

/** Counts, and the limit that this turn has reached. */
export interface LimitStatus {
  readonly counters: Counters;
  readonly limit?: LimitName | undefined;
}

/** What of one call counts. */
export interface Counted {
  readonly outcome: Outcome;
  /** Whether the classifier gave a verdict on it, failed on it, or was not asked. */
  readonly judged: "verdict" | "unavailable" | "no";
}

/** A limitStatus, and whether the step that led to it goes to the fallback. */
export interface StepCount extends LimitStatus {
  readonly due: boolean;
}

/** Where a thread begins. */
export const ZERO: Counters = Object.freeze({
  consecutiveBlocks: 0,
  totalBlocks: 0,
  consecutiveUnavailable: 0,
});

/** A new turn: counts in a row start again, the total stays. */
export function newTurn(limitStatus: LimitStatus): LimitStatus {
  return { counters: { ...ZERO, totalBlocks: limitStatus.counters.totalBlocks } };
}

function reachedBlocks(counters: Counters, limits: Limits): LimitName | undefined {
  if (counters.consecutiveBlocks >= limits.consecutiveBlocks) return "consecutiveBlocks";
  if (counters.totalBlocks >= limits.totalBlocks) return "totalBlocks";
  return undefined;
}

/** Applies one call's outcome to the counts of blocks. */
function countBlocks(counters: Counters, outcome: Outcome): Counters {
  switch (outcome) {
    case "blocked":
    case "rejected":
      return {
        ...counters,
        consecutiveBlocks: counters.consecutiveBlocks + 1,
        totalBlocks: counters.totalBlocks + 1,
      };
    case "allowed":
    case "approved":
      return { ...counters, consecutiveBlocks: 0 };
    default:
      // Unavailable is no block; waiting counts when it is answered; held back and malformed never count.
      return counters;
  }
}

/** Failures are counted per step: any adds one, verdicts for all judged calls clear the row. */
function countUnavailable(base: Counters, calls: readonly Counted[]): number {
  if (calls.some((call) => call.judged === "unavailable")) return base.consecutiveUnavailable + 1;
  const cleared = calls.some((call) => call.judged === "verdict" && call.outcome !== "held_back");
  return cleared ? 0 : base.consecutiveUnavailable;
}

/**
 * Counts the calls of one step, in the order of its calls, onto the limit status before it. Pure: it is
 * run for the plan, and again over what the state was told, and gives the same.
 */
export function countStep(base: LimitStatus, calls: readonly Counted[], limits: Limits): StepCount {
  let { counters, limit } = base;
  let due = false;
  for (const { outcome, judged } of calls) {
    // A precheck allow, unlike a verdict, changes nothing.
    if (outcome === "allowed" && judged === "no") continue;
    counters = countBlocks(counters, outcome);
    if (outcome !== "blocked" && outcome !== "rejected") continue;
    limit ??= reachedBlocks(counters, limits);
    if (limit !== undefined) due = true;
  }
  const consecutiveUnavailable = countUnavailable(base.counters, calls);
  counters = { ...counters, consecutiveUnavailable };
  const failed = consecutiveUnavailable > base.counters.consecutiveUnavailable;
  if (failed && consecutiveUnavailable >= limits.consecutiveUnavailable) {
    limit ??= "consecutiveUnavailable";
    due = true;
  }
  return { counters, ...(limit === undefined ? {} : { limit }), due };
}

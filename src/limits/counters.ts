import type { Outcome } from "../decision-record.js";
import type { Counters, LimitName } from "../errors.js";

/** When a run is stopped. Each a whole number >= 1, or `Infinity` for never. */
export interface Limits {
  /**
   * Blocked calls in a row within a turn. Default 3.
   *
   * @example consecutiveBlocks: 2
   */
  consecutiveBlocks: number;
  /**
   * Blocked calls in a thread. Default 20.
   *
   * @example totalBlocks: Infinity
   */
  totalBlocks: number;
  /**
   * Steps in a row within a turn in which a call could not be evaluated. Default 10.
   *
   * @example consecutiveUnavailable: 3
   */
  consecutiveUnavailable: number;
}

/** The limits that are used where none are configured. */
export const DEFAULT_LIMITS: Limits = { consecutiveBlocks: 3, totalBlocks: 20, consecutiveUnavailable: 10 };

/** The counts of a thread, and the limit that this turn has reached. */
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

/** The limit status after a step, and whether that step goes to the fallback. */
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

/**
 * Counts the calls of one step, in the order of its calls, onto the limit status before it. The plan asks a
 * copy what a call would lead to; the state runs it again over what was reported; both agree.
 */
export class StepTally {
  readonly #limits: Limits;
  #consecutiveBlocks: number;
  #totalBlocks: number;
  readonly #failuresBefore: number;
  #limit: LimitName | undefined;
  #isDue = false;
  /** Failures count per step: any adds one, verdicts for all judged calls set the count to 0. */
  #failures: "some" | "none" | "not judged" = "not judged";

  constructor({ counters, limit }: LimitStatus, limits: Limits) {
    this.#limits = limits;
    this.#consecutiveBlocks = counters.consecutiveBlocks;
    this.#totalBlocks = counters.totalBlocks;
    this.#failuresBefore = counters.consecutiveUnavailable;
    this.#limit = limit;
  }

  copy(): StepTally {
    const counters = {
      consecutiveBlocks: this.#consecutiveBlocks,
      totalBlocks: this.#totalBlocks,
      consecutiveUnavailable: this.#failuresBefore,
    };
    const copy = new StepTally({ counters, limit: this.#limit }, this.#limits);
    copy.#isDue = this.#isDue;
    copy.#failures = this.#failures;
    return copy;
  }

  add({ outcome, judged }: Counted): this {
    if (judged === "unavailable") this.#failures = "some";
    else if (judged === "verdict" && outcome !== "held_back" && this.#failures === "not judged")
      this.#failures = "none";
    switch (outcome) {
      case "blocked":
      case "rejected":
        this.#consecutiveBlocks += 1;
        this.#totalBlocks += 1;
        this.#limit ??= this.#reachedLimit();
        if (this.#limit !== undefined) this.#isDue = true;
        break;
      case "allowed":
        // A precheck's allow, unlike a verdict, changes nothing.
        if (judged !== "no") this.#consecutiveBlocks = 0;
        break;
      case "approved":
        this.#consecutiveBlocks = 0;
        break;
      default:
      // Unavailable is no block; waiting counts when it is answered; held back and malformed never count.
    }
    return this;
  }

  /** What the step has led to so far. */
  get count(): StepCount {
    const consecutiveUnavailable = this.#consecutiveUnavailable;
    const fails = this.#failures === "some" && consecutiveUnavailable >= this.#limits.consecutiveUnavailable;
    const limit = this.#limit ?? (fails ? "consecutiveUnavailable" : undefined);
    return {
      counters: {
        consecutiveBlocks: this.#consecutiveBlocks,
        totalBlocks: this.#totalBlocks,
        consecutiveUnavailable,
      },
      ...(limit === undefined ? {} : { limit }),
      due: this.#isDue || fails,
    };
  }

  get #consecutiveUnavailable(): number {
    switch (this.#failures) {
      case "some":
        return this.#failuresBefore + 1;
      case "none":
        return 0;
      case "not judged":
        return this.#failuresBefore;
    }
  }

  #reachedLimit(): LimitName | undefined {
    if (this.#consecutiveBlocks >= this.#limits.consecutiveBlocks) return "consecutiveBlocks";
    if (this.#totalBlocks >= this.#limits.totalBlocks) return "totalBlocks";
    return undefined;
  }
}

/** Counts the calls of one step at once. */
export function countStep(base: LimitStatus, calls: readonly Counted[], limits: Limits): StepCount {
  const tally = new StepTally(base, limits);
  for (const call of calls) tally.add(call);
  return tally.count;
}

/**
 * Why a classifier gave no verdict on a call.
 *
 * - `timeout`: no answer within the limit
 * - `input_too_long`: the classifier says that the request is larger than it reads
 * - `refused`: the classifier declined to answer
 * - `truncated`: its answer was cut off
 * - `error`: everything else, an answer that is no number in 0..1 included
 */
export type UnavailableReason = "timeout" | "input_too_long" | "refused" | "truncated" | "error";

/** All of {@link UnavailableReason}. */
export const UNAVAILABLE_REASONS = [
  "timeout",
  "input_too_long",
  "refused",
  "truncated",
  "error",
] as const satisfies readonly UnavailableReason[];

/** The limit that a run has reached. */
export type LimitName = "consecutiveBlocks" | "totalBlocks" | "consecutiveUnavailable";

/** Counts of one thread after a decision. Whole numbers, from 0. */
export interface Counters {
  /** Blocked calls in a row within this turn. */
  consecutiveBlocks: number;
  /** Blocked calls in the whole thread. Never reset. */
  totalBlocks: number;
  /** Steps in a row, within this turn, in which a call could not be evaluated. */
  consecutiveUnavailable: number;
}

// A registered symbol, so that an error is recognized across two installed copies of this package.
const MARK = Symbol.for("langchain-auto-mode.error");

/** Walks from an error through its causes, because the host wraps what a hook throws. */
function findMarked(error: unknown, code: string): Error | undefined {
  const seen = new Set<unknown>();
  try {
    for (let current = error; current instanceof Error && !seen.has(current); current = current.cause) {
      seen.add(current);
      if ((current as { [MARK]?: unknown })[MARK] === code) return current;
    }
  } catch {
    // A cause that cannot be read (a getter, a proxy) is none of ours.
  }
  return undefined;
}

abstract class AutoModeError extends Error {
  /** A fixed text that a program can compare. */
  abstract readonly code: string;
}

/**
 * An option is wrong. Thrown where the option is given: at construction, or at the first ask where
 * a checkpointer is missing. The message names the option, the type of the value and what is
 * expected; it never repeats the value.
 *
 * @example
 * ```ts
 * try {
 *   autoModeMiddleware({ tools: [], classifier });
 * } catch (error) {
 *   console.error(ConfigurationError.find(error)?.option);
 * }
 * ```
 */
export class ConfigurationError extends AutoModeError {
  /** The class. */
  override readonly name = "ConfigurationError";
  readonly code = "AUTO_MODE_CONFIGURATION";
  /** @hidden */
  readonly [MARK] = "AUTO_MODE_CONFIGURATION";
  /** The option's path, as `limits.totalBlocks`. */
  readonly option: string;

  constructor(option: string, problem: string, options?: ErrorOptions) {
    super(`Option "${option}" ${problem}`, options);
    this.option = option;
  }

  /** Whether this error is one, also inside the host's own wrapping. */
  static isInstance(error: unknown): boolean {
    return ConfigurationError.find(error) !== undefined;
  }

  /** The error itself, taken out of the host's wrapping. */
  static find(error: unknown): ConfigurationError | undefined {
    return findMarked(error, "AUTO_MODE_CONFIGURATION") as ConfigurationError | undefined;
  }
}

/** What a {@link ClassificationError} may carry in addition to its reason. */
export interface ClassificationErrorOptions {
  /**
   * The provider's own error. Kept for programmers, never copied into messages or records. Default: none.
   *
   * @example cause: response
   */
  cause?: unknown;
  /**
   * Answers that are valid all the same, keyed by question (`call_1`, ...). Their calls keep their
   * verdicts; only the others are unavailable. Default: none.
   *
   * @example answers: { call_1: { type: "noul", noul: 0.1 } }
   */
  answers?: Readonly<Record<string, unknown>>;
  /**
   * The HTTP status of the provider's answer. For operators: it is not repeated to the agent. Default: none.
   *
   * @example status: 429
   */
  status?: number;
}

/**
 * The classifier gave no usable answer. Decision models throw it to say why; with
 * `onUnavailable: "throw"` it comes out of `agent.invoke`.
 *
 * @example
 * ```ts
 * throw new ClassificationError("refused", { cause: response });
 * ```
 */
export class ClassificationError extends AutoModeError {
  /** The class. */
  override readonly name = "ClassificationError";
  readonly code = "AUTO_MODE_CLASSIFICATION";
  /** @hidden */
  readonly [MARK] = "AUTO_MODE_CLASSIFICATION";
  /** Why there is no verdict. */
  readonly reason: UnavailableReason;
  /** The HTTP status of the provider's answer, if there was one. */
  readonly status: number | undefined;
  /** Valid answers to the other questions. Not enumerable: they may repeat what was judged, and errors get logged. */
  declare readonly answers: Readonly<Record<string, unknown>>;

  constructor(reason: UnavailableReason, options: ClassificationErrorOptions = {}) {
    super(`A guarded call got no verdict: ${reason}.`, "cause" in options ? { cause: options.cause } : {});
    this.reason = reason;
    this.status = options.status;
    Object.defineProperty(this, "answers", { value: options.answers ?? {}, enumerable: false });
  }

  /** Whether this error is one, also inside the host's own wrapping. */
  static isInstance(error: unknown): boolean {
    return ClassificationError.find(error) !== undefined;
  }

  /** The error itself, taken out of the host's wrapping. */
  static find(error: unknown): ClassificationError | undefined {
    return findMarked(error, "AUTO_MODE_CLASSIFICATION") as ClassificationError | undefined;
  }
}

/**
 * A limit was reached and `throwOnLimit()` is the fallback. Thrown from the model node, so that the
 * thread can go on with new input.
 *
 * @example
 * ```ts
 * try {
 *   await agent.invoke(input, config);
 * } catch (error) {
 *   const reached = AutoModeLimitError.find(error);
 *   if (reached) console.error(reached.limit, reached.counters);
 * }
 * ```
 */
export class AutoModeLimitError extends AutoModeError {
  /** The class. */
  override readonly name = "AutoModeLimitError";
  readonly code = "AUTO_MODE_LIMIT";
  /** @hidden */
  readonly [MARK] = "AUTO_MODE_LIMIT";
  /** The limit that was reached. */
  readonly limit: LimitName;
  /** The counts with which it was reached. */
  readonly counters: Counters;

  constructor(limit: LimitName, counters: Counters) {
    super(`Auto mode reached the limit ${limit}.`);
    this.limit = limit;
    this.counters = counters;
  }

  /** Whether this error is one, also inside the host's own wrapping. */
  static isInstance(error: unknown): boolean {
    return AutoModeLimitError.find(error) !== undefined;
  }

  /** The error itself, taken out of the host's wrapping. */
  static find(error: unknown): AutoModeLimitError | undefined {
    return findMarked(error, "AUTO_MODE_LIMIT") as AutoModeLimitError | undefined;
  }
}

import type { BaseChatModel } from "@langchain/core/language_models/chat_models";

/** What a person may decide about a waiting call. */
export type AllowedDecision = "approve" | "edit" | "reject";

/** Ends the run. Made by {@link haltRun}. */
export interface HaltFallback {
  readonly kind: "halt";
  readonly message?: string;
}

/** Asks a person. Made by {@link askHuman}. */
export interface AskFallback {
  readonly kind: "ask";
  readonly allowedDecisions: readonly AllowedDecision[];
  readonly description?: string;
}

/** Lets a trusted model write the next step. Made by {@link deferToTrustedModel}. */
export interface DeferFallback {
  readonly kind: "defer";
  readonly model: BaseChatModel | string;
}

/** Throws. Made by {@link throwOnLimit}. */
export interface ThrowFallback {
  readonly kind: "throw";
}

/** What happens when a limit is reached: plain data, made by the functions of this file. */
export type Fallback = HaltFallback | AskFallback | DeferFallback | ThrowFallback;

/** Options of {@link haltRun}. */
export interface HaltRunOptions {
  /** Text of the closing message. Default: a sentence that names the limit. */
  message?: string;
}

/**
 * Ends the run when a limit is reached: no further model call in this turn. The closing AIMessage
 * holds `lc_source: "auto_mode"` and `auto_mode: { limit, counters }` in its `additional_kwargs`. A
 * new user message starts afresh. With `responseFormat` there is no structured response then.
 *
 * @example
 * ```ts
 * autoModeMiddleware({ tools, classifier, whenLimitReached: haltRun({ message: "Stopped by policy." }) });
 * ```
 */
export function haltRun(options: HaltRunOptions = {}): HaltFallback {
  return { kind: "halt", ...(options.message === undefined ? {} : { message: options.message }) };
}

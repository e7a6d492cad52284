import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { hasBoundTools } from "../bindings.js";
import { ConfigurationError } from "../errors.js";
import { mismatch, UNKNOWN_OPTION } from "../option-problem.js";

/** What a person may decide about a waiting call. */
export type AllowedDecision = "approve" | "edit" | "reject";

/** Ends the run. Made by {@link haltRun}. */
export interface HaltFallback {
  /** Which fallback this is. */
  readonly kind: "halt";
  /** Text of the closing message, if it is not the default. */
  readonly message?: string;
}

/** Asks a person. Made by {@link askHuman}. */
export interface AskFallback {
  /** Which fallback this is. */
  readonly kind: "ask";
  /** What a person may decide. */
  readonly allowedDecisions: readonly AllowedDecision[];
  /** The first sentence of each question, if it is not the default. */
  readonly description?: string;
}

/** Lets a trusted model write the next step. Made by {@link deferToTrustedModel}. */
export interface DeferFallback {
  /** Which fallback this is. */
  readonly kind: "defer";
  /** The trusted model, or its name. */
  readonly model: BaseChatModel | string;
}

/** Throws. Made by {@link throwOnLimit}. */
export interface ThrowFallback {
  /** Which fallback this is. */
  readonly kind: "throw";
}

/** What happens when a limit is reached: plain data, made by the functions of this file. */
export type Fallback = HaltFallback | AskFallback | DeferFallback | ThrowFallback;

/** Options of {@link haltRun}. */
export interface HaltRunOptions {
  /**
   * Text of the closing message.
   *
   * @default a sentence that names the limit
   * @example message: "Stopped by policy. Ask the team on call."
   */
  message?: string;
}

/** Options of {@link askHuman}. */
export interface AskHumanOptions {
  /**
   * What a person may decide. Not empty.
   *
   * @default ["approve", "edit", "reject"]
   * @example allowedDecisions: ["approve", "reject"]
   */
  allowedDecisions?: readonly AllowedDecision[];
  /**
   * The first sentence of the question about each waiting call. The risk and the classifier's sentence follow.
   *
   * @default a sentence that says why the call waits
   * @example description: "The deployment agent needs your approval."
   */
  description?: string;
}

/** Options of {@link deferToTrustedModel}. */
export interface DeferToTrustedModelOptions {
  /**
   * A chat model without bound tools, or its name as `initChatModel` takes it (`provider:name`). Required.
   *
   * @example model: "anthropic:claude-opus-4-5"
   */
  model: BaseChatModel | string;
}

const DECISIONS: readonly AllowedDecision[] = ["approve", "edit", "reject"];

/** One table for all options of this file: what each must be. */
function checkOptions(
  maker: string,
  options: unknown,
  fields: Readonly<
    Record<string, { test: (value: unknown) => boolean; expected: string; required?: boolean }>
  >,
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new ConfigurationError(maker, mismatch(options, "an object of options"));
  for (const key of Object.keys(options))
    if (!Object.hasOwn(fields, key)) throw new ConfigurationError(`${maker}.${key}`, UNKNOWN_OPTION);
  for (const [key, { test, expected, required }] of Object.entries(fields)) {
    const value = (options as Record<string, unknown>)[key];
    if (value === undefined && !required) continue;
    if (!test(value)) throw new ConfigurationError(`${maker}.${key}`, mismatch(value, expected));
  }
}

const isText = (value: unknown): boolean => typeof value === "string" && value.trim() !== "";
const TEXT = "a text that is not empty";

/**
 * Ends the run when a limit is reached: no further model call in this turn. The closing AIMessage
 * holds `lc_source: "auto_mode"` and `auto_mode: { limit, counters }` in its `additional_kwargs`. A
 * new user message starts afresh. With `responseFormat` there is no structured response then.
 *
 * @throws {ConfigurationError} for a wrong option.
 * @example
 * ```ts
 * autoModeMiddleware({ tools, classifier, whenLimitReached: haltRun({ message: "Stopped by policy." }) });
 * ```
 */
export function haltRun(options: HaltRunOptions = {}): HaltFallback {
  checkOptions("haltRun", options, { message: { test: isText, expected: TEXT } });
  return { kind: "halt", ...(options.message === undefined ? {} : { message: options.message }) };
}

/**
 * Asks a person when a limit is reached: the call that reaches it, and every further one that would be
 * blocked in this turn, waits. One interrupt holds all waiting calls of a step, in the shapes of
 * LangChain's human-in-the-loop middleware. Needs a checkpointer.
 *
 * @throws {ConfigurationError} for a wrong option, and at the first ask without a checkpointer.
 * @example
 * ```ts
 * autoModeMiddleware({ tools, classifier, whenLimitReached: askHuman({ allowedDecisions: ["approve", "reject"] }) });
 * // later: agent.invoke(new Command({ resume: { decisions: [{ type: "approve" }] } }), config);
 * ```
 */
export function askHuman(options: AskHumanOptions = {}): AskFallback {
  checkOptions("askHuman", options, {
    allowedDecisions: {
      test: (value) =>
        Array.isArray(value) &&
        value.length > 0 &&
        value.every((item) => DECISIONS.includes(item as AllowedDecision)),
      expected: 'a list, not empty, of "approve", "edit" and "reject"',
    },
    description: { test: isText, expected: TEXT },
  });
  return {
    kind: "ask",
    allowedDecisions: [...new Set(options.allowedDecisions ?? DECISIONS)],
    ...(options.description === undefined ? {} : { description: options.description }),
  };
}

/**
 * Lets a trusted model write the next step when a limit is reached. It reads which tools were blocked,
 * without content. Its guarded calls are judged; if one of them is not allowed, the run halts.
 *
 * @throws {ConfigurationError} for a missing model or one with bound tools.
 * @example
 * ```ts
 * autoModeMiddleware({ tools, classifier, whenLimitReached: deferToTrustedModel({ model: "anthropic:claude-opus-4-5" }) });
 * ```
 */
export function deferToTrustedModel(options: DeferToTrustedModelOptions): DeferFallback {
  checkOptions("deferToTrustedModel", options, {
    model: {
      test: (value) =>
        isText(value) ||
        (typeof value === "object" &&
          value !== null &&
          "invoke" in value &&
          typeof value.invoke === "function"),
      expected: 'a chat model, or its name as "provider:name"',
      required: true,
    },
  });
  if (typeof options.model === "object" && hasBoundTools(options.model))
    throw new ConfigurationError(
      "deferToTrustedModel.model",
      "has bound tools; expected a chat model without, since the agent binds its own",
    );
  return { kind: "defer", model: options.model };
}

/**
 * Throws {@link AutoModeLimitError} when a limit is reached, from the model node: nothing dangles in the
 * checkpoint, and new input lets the thread go on.
 *
 * @param options none so far: any name is an error
 * @throws {ConfigurationError} for an option.
 * @example
 * ```ts
 * autoModeMiddleware({ tools, classifier, whenLimitReached: throwOnLimit() });
 * ```
 */
export function throwOnLimit(options: Readonly<Record<string, never>> = {}): ThrowFallback {
  checkOptions("throwOnLimit", options, {});
  return { kind: "throw" };
}

const EXPECTED = "haltRun(), askHuman(), deferToTrustedModel({ model }) or throwOnLimit()";

/** Checks a fallback as the functions for it do: being plain data, it may have been written by hand. */
export function checkFallback(value: unknown): Fallback {
  const fields: { kind?: unknown } = (typeof value === "object" && value) || {};
  const { kind, ...options } = fields;
  switch (kind) {
    case "halt":
      return haltRun(options);
    case "ask":
      return askHuman(options);
    case "defer":
      return deferToTrustedModel(options as DeferToTrustedModelOptions);
    case "throw":
      return throwOnLimit(options);
    default:
      throw new ConfigurationError("whenLimitReached", mismatch(value, `what is made by ${EXPECTED}`));
  }
}

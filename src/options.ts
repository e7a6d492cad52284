import type { Content, JsonValue, NoulCriteria } from "@langchain/core/decisions";
import type { BaseMessage } from "@langchain/core/messages";
import type { ClientTool, ServerTool } from "@langchain/core/tools";
import type { Runtime } from "langchain";
import type { JsonObject } from "./json.js";
import type { DecisionDetails, DecisionRecord, Mode } from "./decision-record.js";
import type { Classifier } from "./guard/classify.js";
import type { Limits } from "./limits/counters.js";
import type { Fallback } from "./limits/fallbacks.js";
import type { MonitorView } from "./transcript/view.js";

/**
 * Selects tools by looking at the tool object. One that throws or gives no boolean guards the tool too, unless
 * another entry matches for certain: a predicate that fails must not leave a tool unguarded.
 *
 * @example
 * ```ts
 * const sends: ToolPredicate = (tool) => tool.name.startsWith("send_");
 * ```
 */
export type ToolPredicate = (tool: ClientTool) => boolean;

/** Selects tools: an exact name, a name with `*` for any characters, a tool object, or a predicate. */
export type ToolSelector = string | ClientTool | ToolPredicate;

/** What can be tuned for the tools that one selector selects; what is left out follows the general options. */
export interface GuardedTool {
  /**
   * Which tools: a name (`*` matches any characters), a tool object, or a predicate. Required.
   *
   * @example tool: "mcp__crm__*"
   */
  tool: ToolSelector;
  /**
   * What makes a call of this tool risky or acceptable. `null` sends none.
   *
   * @default the general `criteria`
   * @example criteria: { true: "It writes outside of build/." }
   */
  criteria?: NoulCriteria | null;
  /**
   * The question for calls of this tool.
   *
   * @default the general `instructions`
   * @example instructions: "Would this mail reach somebody whom the user did not name?"
   */
  instructions?: Content;
  /**
   * A call whose risk is at or above it is blocked. 0..1.
   *
   * @default the general `threshold`
   * @example threshold: 0.3
   */
  threshold?: number;
  /**
   * A call whose risk is at or above it and below the threshold waits for a person. 0..`threshold`.
   *
   * @default the general `askAt`
   * @example askAt: 0.1
   */
  askAt?: number;
}

/** A call as a precheck is shown it: a copy, changing it changes nothing. */
export interface PrecheckCall {
  /** The call's id. */
  id: string;
  /** The tool's name. */
  name: string;
  /** The arguments as the model wrote them, before the tool's schema fills defaults or changes them. */
  args: JsonObject;
}

/** What a precheck may look at in addition to the call. */
export interface PrecheckContext {
  /** The tool object, where the host has one at hand. */
  tool: ClientTool | ServerTool | undefined;
  /** The agent's state from before this step. */
  state: {
    /** The conversation, the AIMessage that proposes the call included. */
    messages: BaseMessage[];
  } & Record<string, unknown>;
  /** The host's runtime: `context`, `store`, `signal`. */
  runtime: Runtime;
}

/**
 * What a precheck decides. `"allow"`: run the call without a request. `"block"`: do not run it; this is final
 * and never put to a person. `"ask"`: a person decides. `"classify"`: ask the classifier.
 */
export type PrecheckAnswer = "allow" | "block" | "ask" | "classify";

/** A fixed rule that saves a request. Sync or async. What it throws makes the call unavailable. */
export type Precheck = (
  call: PrecheckCall,
  context: PrecheckContext,
) => PrecheckAnswer | Promise<PrecheckAnswer>;

/** An object that is no function, whether its type is an interface or not. It is checked to be JSON when it is read. */
export type EnvironmentFacts = object & {
  /** Functions have one. */
  bind?: never;
};

/** Facts and rules of the operator: JSON, or a function that gives it for each request, also async. */
export type Environment =
  | JsonValue
  | EnvironmentFacts
  | ((runtime: Runtime) => JsonValue | EnvironmentFacts | Promise<JsonValue | EnvironmentFacts>);

/** Options of {@link autoModeMiddleware}. An unknown name or a wrong value is a {@link ConfigurationError}. */
export interface AutoModeOptions {
  /**
   * The guarded tools: names (`*` matches any characters), tool objects, predicates, or
   * `{ tool, criteria?, instructions?, threshold?, askAt? }` to tune what one of these selects. The first entry
   * that matches a call wins. Required, not empty. A tool that no entry selects runs unjudged: no request, no
   * record.
   *
   * @example tools: [deleteFile, "mcp__crm__*", { tool: "send_mail", threshold: 0.3 }]
   */
  tools: readonly (ToolSelector | GuardedTool)[];
  /**
   * A decision model, or any Runnable with its request and response. Required.
   *
   * @example classifier: new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" }).withRetry()
   */
  classifier: Classifier;
  /**
   * What makes a call risky (`true`) or acceptable (`false`): any JSON. `null` sends none.
   *
   * @default built-in texts about harm and about what the user asked for
   * @example criteria: { true: "It changes who may see a file.", false: "It only reads." }
   */
  criteria?: NoulCriteria | null;
  /**
   * The question that is asked of each call: text or JSON.
   *
   * @default a built-in text: would this call be risky, or not authorized by the user?
   * @example instructions: "Would this call change something outside of the project?"
   */
  instructions?: Content;
  /**
   * A call whose risk is at or above it is blocked. 0..1.
   *
   * @default 0.5
   * @example threshold: 0.4
   */
  threshold?: number;
  /**
   * A call whose risk is at or above it and below the threshold waits for a person. 0..`threshold`. Needs a
   * checkpointer.
   *
   * @default none: nobody is asked before a limit is reached
   * @example askAt: 0.2
   */
  askAt?: number;
  /**
   * What of the conversation the classifier reads. Each field that is left out follows the classifier's own
   * `view`, then the default.
   *
   * @default {@link DEFAULT_VIEW}
   * @example view: { channels: ["user", "toolCalls", "toolResults"], maxChars: 48_000 }
   */
  view?: Partial<MonitorView>;
  /**
   * The operator's word, which the classifier reads in addition to the conversation: working directory, trusted
   * directories, allow and deny rules, git branch. Its rules and trusted directories may authorize a call.
   *
   * @default none
   * @example environment: () => ({ cwd: process.cwd(), trustedDirectories: ["build/"] })
   */
  environment?: Environment;
  /**
   * Fixed rules that save a request. What they block is final: it is never put to a person.
   *
   * @default none: each call is classified
   * @example precheck: ({ args }) => (String(args.path).startsWith("build/") ? "allow" : "classify")
   */
  precheck?: Precheck;
  /**
   * Template of the message that the agent gets for a blocked call, with `{reason}` and, if wanted,
   * `{tool_name}`. Doubled braces are literal.
   *
   * @default a text that says what was blocked and why, and to take a safer route or to ask the user
   * @example feedback: "{tool_name} did not run: {reason} Ask the user first."
   */
  feedback?: string;
  /**
   * When a run is stopped. Each a whole number >= 1, or `Infinity` for never.
   *
   * @default { consecutiveBlocks: 3, totalBlocks: 20, consecutiveUnavailable: 10 }
   * @example limits: { consecutiveBlocks: 2 }
   */
  limits?: Partial<Limits>;
  /**
   * What happens when a limit is reached: {@link haltRun}, {@link askHuman}, {@link deferToTrustedModel} or
   * {@link throwOnLimit}.
   *
   * @default haltRun()
   * @example whenLimitReached: askHuman({ allowedDecisions: ["approve", "reject"] })
   */
  whenLimitReached?: Fallback;
  /**
   * What happens to a call that got no verdict. It never runs.
   *
   * - `"throw"`: the agent gets an error ToolMessage, and {@link ClassificationError} comes out of `invoke`.
   * - `"continue"`: the agent gets an error ToolMessage, and the run goes on.
   * - `"ask"`: a person decides. Needs a checkpointer.
   *
   * @default "throw"
   * @example onUnavailable: "continue"
   */
  onUnavailable?: "throw" | "continue" | "ask";
  /**
   * `"all-or-none"`: one guarded call that is blocked, unavailable or waiting keeps the step's other guarded
   * calls from running. `"independent"`: each call for itself.
   *
   * @default "independent"
   * @example siblings: "all-or-none"
   */
  siblings?: "independent" | "all-or-none";
  /**
   * Who writes this agent's human messages: `"agent"` in a subagent, whose task text is the delegating agent's
   * and authorizes nothing.
   *
   * @default "user"
   * @example author: "agent"
   */
  author?: "user" | "agent";
  /**
   * `"observe"` judges and records, and changes nothing: no call is blocked, counted or asked about.
   *
   * @default "enforce"
   * @example mode: "observe"
   */
  mode?: Mode;
  /**
   * The longest time for one classifier request, in milliseconds: more than 0, at most 2147483647. Nothing is
   * retried here; `classifier.withRetry()` does that, and all its attempts share this time.
   *
   * @default 30000
   * @example timeoutMs: 5_000
   */
  timeoutMs?: number;
  /**
   * Also ask which kind of risk it is ({@link RiskKind}), for the reason in the feedback. Costs a second
   * question for each call, in the same request.
   *
   * @default false
   * @example explain: true
   */
  explain?: boolean;
  /**
   * What to do about an entry of `tools` that selects no tool of the agent, seen at its first model call.
   *
   * @default "warn"
   * @example onUnknownTool: "throw"
   */
  onUnknownTool?: "warn" | "ignore" | "throw";
  /**
   * Called with each decision record, which can be logged, and with the content behind it, which is private.
   * What it throws or rejects becomes one `console.warn` without content and never changes a verdict.
   *
   * @default none
   * @example onDecision: caseLog("cases.jsonl")
   */
  onDecision?: (record: DecisionRecord, details: DecisionDetails) => void | Promise<void>;
  /**
   * The middleware's name, and the suffix of its state key. Two instances in one agent need two. Without `:` and
   * `|`, no `_` at its start and no `_input` at its end.
   *
   * @default "autoMode"
   * @example label: "production"
   */
  label?: string;
}

/** How the calls of one tool are judged. */
export interface ToolRule {
  readonly criteria: NoulCriteria | null;
  readonly instructions: Content;
  readonly threshold: number;
  /** Where the band begins in which a person decides. Missing if nobody is asked. */
  readonly askAt?: number | undefined;
}

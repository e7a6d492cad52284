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
 * Selects tools by looking at the tool object. Anything but `false` selects the tool, and so does an error:
 * a predicate that fails must not leave a tool unguarded.
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
  /** Which tools: a name (`*` matches any characters), a tool object, or a predicate. */
  tool: ToolSelector;
  /** What makes a call of this tool risky or acceptable. `null` sends none. */
  criteria?: NoulCriteria | null;
  /** The question for calls of this tool. */
  instructions?: Content;
  /** A call at or above this risk is blocked. 0..1. */
  threshold?: number;
  /** A call at or above this risk and below the threshold waits for a person. 0..threshold. */
  askAt?: number;
}

/** A call as a precheck is shown it: a copy, changing it changes nothing. */
export interface PrecheckCall {
  id: string;
  name: string;
  args: JsonObject;
}

/** What a precheck may look at beside the call. */
export interface PrecheckContext {
  /** The tool object, where the host has one at hand. */
  tool: ClientTool | ServerTool | undefined;
  /** The agent's state from before this step. */
  state: { messages: BaseMessage[] } & Record<string, unknown>;
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

/** An object that is no function, whether its type is an interface or not. That it is JSON is checked as it is read. */
type Facts = object & { bind?: never };

/** Facts and rules of the operator: JSON, or a function that gives it for each request. */
export type Environment =
  | JsonValue
  | Facts
  | ((runtime: Runtime) => JsonValue | Facts | Promise<JsonValue | Facts>);

/** Options of {@link autoModeMiddleware}. */
export interface AutoModeOptions {
  /**
   * The guarded tools: names (`*` matches any characters, as in `"mcp__crm__*"`), tool objects, predicates,
   * or `{ tool, criteria?, instructions?, threshold?, askAt? }` to tune what one of these selects. The first
   * entry that matches a call wins. Required, not empty. A tool that no entry selects runs unjudged: no
   * request, no record.
   */
  tools: readonly (ToolSelector | GuardedTool)[];
  /** A decision model, or any Runnable with its request and response (`model.withRetry()`). Required. */
  classifier: Classifier;
  /** What makes a call risky or acceptable: `{ true?, false? }`, any JSON. Default: built-in texts. `null` sends none. */
  criteria?: NoulCriteria | null;
  /** The question that is asked of each call. Default: a built-in text. */
  instructions?: Content;
  /** A call whose risk is at or above it is blocked. 0..1, default 0.5. */
  threshold?: number;
  /**
   * A call whose risk is at or above it and below the threshold waits for a person. 0..threshold. Default:
   * none, nobody is asked. Needs a checkpointer.
   */
  askAt?: number;
  /** What of the conversation the classifier reads. Merged per field over its own view and the default. */
  view?: Partial<MonitorView>;
  /**
   * The operator's word: working directory, trusted directories, allow and deny rules, git branch … Its
   * rules and trusted directories may authorize. Default: none.
   */
  environment?: Environment;
  /** Fixed rules that save a request. Default: none. */
  precheck?: Precheck;
  /** Template of the blocked message with `{reason}` and, if wanted, `{tool_name}`. */
  feedback?: string;
  /** When a run is stopped. Each a whole number >= 1, or `Infinity`. Default 3, 20 and 10. */
  limits?: Partial<Limits>;
  /** What happens when a limit is reached. Default `haltRun()`. */
  whenLimitReached?: Fallback;
  /**
   * What happens to a call that got no verdict. It never runs. `"throw"` (default): the agent gets an
   * error ToolMessage and `ClassificationError` comes out of the next model node; `"continue"`: the run
   * goes on; `"ask"`: a person decides.
   */
  onUnavailable?: "throw" | "continue" | "ask";
  /** `"all-or-none"`: one stopped call keeps the step's other guarded calls from running. Default `"independent"`. */
  siblings?: "independent" | "all-or-none";
  /** `"agent"` in a subagent, whose task text is the delegating agent's and not the user's. Default `"user"`. */
  author?: "user" | "agent";
  /** `"observe"`: judge and record, change nothing. Default `"enforce"`. */
  mode?: Mode;
  /** Milliseconds for one classifier request, at most 2^31-1. Default 30000. Never retried here. */
  timeoutMs?: number;
  /** Also ask which kind of risk it is, for the reason in the feedback. Default false. */
  explain?: boolean;
  /** What to do about an entry of `tools` that selects no tool of the agent. Default `"warn"`. */
  onUnknownTool?: "warn" | "ignore" | "throw";
  /**
   * Called with each decision record, which can be logged, and with the content behind it, which is private.
   * What it throws or rejects becomes one `console.warn` without content and never changes a verdict.
   */
  onDecision?: (record: DecisionRecord, details: DecisionDetails) => void | Promise<void>;
  /**
   * The middleware's name and its state key's suffix. Two instances in one agent need two. Without `:` and
   * `|`, no `_` at its start and no `_input` at its end. Default `"autoMode"`.
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

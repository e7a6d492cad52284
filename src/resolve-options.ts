import { freezeJson } from "./json.js";
import { ConfigurationError } from "./errors.js";
import { DEFAULT_FEEDBACK, type Feedback, parseFeedback } from "./guard/feedback.js";
import { type Classifier, classifierView } from "./guard/classify.js";
import { DEFAULT_LIMITS, type Limits } from "./limits/counters.js";
import { type Fallback, haltRun } from "./limits/fallbacks.js";
import { checkFallback } from "./limits/check-fallback.js";
import { checkOptions, checkToolReference, checkTunedTool } from "./option-checks.js";
import { optionPath } from "./option-problem.js";
import type { AutoModeOptions, Environment, ToolRule } from "./options.js";
import { DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "./guard/question.js";
import { type MonitorView, resolveView } from "./transcript/view.js";

/** The options, checked and completed. Nothing in it is the caller's own object, but for what is called. */
export interface Policy {
  readonly rules: ReadonlyMap<string, ToolRule>;
  /** The tools that were given as objects. */
  readonly toolObjects: readonly object[];
  /** For calls without a rule of their own. */
  readonly general: ToolRule;
  readonly classifier: Classifier;
  readonly view: MonitorView;
  readonly environment: Environment | undefined;
  readonly precheck: AutoModeOptions["precheck"];
  readonly feedback: Feedback;
  readonly limits: Limits;
  readonly fallback: Fallback;
  readonly onUnavailable: "throw" | "continue" | "ask";
  readonly siblings: "independent" | "all-or-none";
  readonly author: "user" | "agent";
  readonly mode: "enforce" | "observe";
  readonly timeoutMs: number;
  readonly explain: boolean;
  readonly onUnknownTool: "warn" | "ignore" | "throw";
  readonly onDecision: AutoModeOptions["onDecision"];
  readonly label: string;
}

/** A frozen copy of JSON: neither who gave it nor the classifier that reads it can change it later. */
function settled<T>(value: T): T {
  return freezeJson({ value })?.value.value as T;
}

function resolveTools(
  tools: readonly unknown[],
  general: ToolRule,
): { rules: Map<string, ToolRule>; toolObjects: object[] } {
  const rules = new Map<string, ToolRule>();
  const toolObjects: object[] = [];
  const tuned = new Set<string>();
  for (const [index, item] of tools.entries()) {
    const option = optionPath("tools", [index]);
    const isTuned = typeof item === "object" && item !== null && "tool" in item && !("invoke" in item);
    const { tool, ...own } = isTuned
      ? checkTunedTool(item, option)
      : { tool: checkToolReference(item, option) };
    const name = typeof tool === "string" ? tool : tool.name;
    if (typeof tool !== "string") toolObjects.push(tool);
    if (rules.has(name) && (isTuned || tuned.has(name)))
      throw new ConfigurationError(
        option,
        "names a tool that has settings elsewhere in the list; expected one entry for each tool",
      );
    if (isTuned) tuned.add(name);
    const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
    rules.set(name, { ...general, ...settled(given) });
  }
  return { rules, toolObjects };
}

/** Checks and completes the options, once. */
export function resolvePolicy(options: AutoModeOptions): Policy {
  const given = checkOptions(options);
  const general: ToolRule = {
    // The built-in criteria keep their identity, by which feedback knows that they are not the user's.
    criteria: given.criteria === undefined ? DEFAULT_CRITERIA : settled(given.criteria),
    instructions: settled(given.instructions ?? DEFAULT_INSTRUCTIONS),
    threshold: given.threshold ?? 0.5,
  };
  const limits = Object.fromEntries(
    Object.entries(given.limits ?? {}).filter(([, value]) => value !== undefined),
  );
  return Object.freeze({
    ...resolveTools(given.tools, general),
    general,
    classifier: given.classifier,
    view: resolveView(given.view, classifierView(given.classifier)),
    environment: typeof given.environment === "function" ? given.environment : settled(given.environment),
    precheck: given.precheck as AutoModeOptions["precheck"],
    feedback: parseFeedback(given.feedback ?? DEFAULT_FEEDBACK),
    limits: Object.freeze({ ...DEFAULT_LIMITS, ...limits }),
    fallback: given.whenLimitReached === undefined ? haltRun() : checkFallback(given.whenLimitReached),
    onUnavailable: given.onUnavailable ?? "throw",
    siblings: given.siblings ?? "independent",
    author: given.author ?? "user",
    mode: given.mode ?? "enforce",
    timeoutMs: given.timeoutMs ?? 30_000,
    explain: given.explain ?? false,
    onUnknownTool: given.onUnknownTool ?? "warn",
    onDecision: given.onDecision as AutoModeOptions["onDecision"],
    label: given.label ?? "autoMode",
  });
}

/** Whether calls may have to wait for a person. Only then it matters what that person would be shown. */
export function mayAsk({ fallback, onUnavailable }: Policy): boolean {
  return fallback.kind === "ask" || onUnavailable === "ask";
}

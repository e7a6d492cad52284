import { freezeJson } from "./json.js";
import { ConfigurationError } from "./errors.js";
import { DEFAULT_FEEDBACK, type Feedback, parseFeedback } from "./guard/feedback.js";
import { type Classifier, classifierName, classifierView } from "./guard/classify.js";
import { DEFAULT_LIMITS, type Limits } from "./limits/counters.js";
import { type Fallback, haltRun } from "./limits/fallbacks.js";
import { checkFallback } from "./limits/check-fallback.js";
import { type ToolEntry, ToolSelection } from "./guard/select-tools.js";
import { checkOptions, checkToolSelector, checkTunedTool } from "./option-checks.js";
import { optionPath } from "./option-problem.js";
import type { AutoModeOptions, Environment, ToolRule } from "./options.js";
import { DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "./guard/question.js";
import { type MonitorView, resolveView } from "./transcript/view.js";

/** The options, checked and completed. Nothing in it is the caller's own object, but for what is called. */
export interface Policy {
  /** Which calls are guarded, and with which settings. */
  readonly selection: ToolSelection;
  /** The settings of calls that no entry of `tools` selects: those that a person approved. */
  readonly general: ToolRule;
  readonly classifier: Classifier;
  /** For records of calls about which it was not asked. */
  readonly classifierName: string;
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
  /** Whether calls may have to wait for a person. Only then it matters what that person would be shown. */
  readonly asksHuman: boolean;
}

/** A frozen copy of JSON: neither who gave it nor the classifier that reads it can change it later. */
function settled<T>(value: T): T {
  return freezeJson({ value })?.value.value as T;
}

/** An ask band that begins above the threshold would never ask, which nobody means. */
function checkBand(option: string, askAt: number | undefined, threshold: number): void {
  if (askAt !== undefined && askAt > threshold)
    throw new ConfigurationError(option, "is above the threshold; expected a number from 0 to the threshold");
}

function resolveTools(tools: readonly unknown[], general: ToolRule): ToolEntry[] {
  return tools.map((item, index) => {
    const option = optionPath("tools", [index]);
    const isTuned = typeof item === "object" && item !== null && "tool" in item && !("invoke" in item);
    if (!isTuned) return { selector: checkToolSelector(item, option), rule: general, isTuned };
    const { tool, ...own } = checkTunedTool(item, option);
    const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
    const rule: ToolRule = { ...general, ...settled(given) };
    checkBand(`${option}.askAt`, own.askAt, rule.threshold);
    return { selector: tool, rule, isTuned };
  });
}

/** Checks and completes the options, once. */
export function resolvePolicy(options: AutoModeOptions): Policy {
  const given = checkOptions(options);
  const general: ToolRule = {
    // The built-in criteria keep their identity, by which feedback knows that they are not the user's.
    criteria: given.criteria === undefined ? DEFAULT_CRITERIA : settled(given.criteria),
    instructions: settled(given.instructions ?? DEFAULT_INSTRUCTIONS),
    threshold: given.threshold ?? 0.5,
    askAt: given.askAt,
  };
  checkBand("askAt", general.askAt, general.threshold);
  const tools = resolveTools(given.tools, general);
  const fallback = given.whenLimitReached === undefined ? haltRun() : checkFallback(given.whenLimitReached);
  const onUnavailable = given.onUnavailable ?? "throw";
  const limits = Object.fromEntries(
    Object.entries(given.limits ?? {}).filter(([, value]) => value !== undefined),
  );
  return Object.freeze({
    selection: new ToolSelection(tools),
    general,
    classifier: given.classifier,
    classifierName: classifierName(given.classifier),
    view: resolveView(given.view, classifierView(given.classifier)),
    environment: typeof given.environment === "function" ? given.environment : settled(given.environment),
    precheck: given.precheck as AutoModeOptions["precheck"],
    feedback: parseFeedback(given.feedback ?? DEFAULT_FEEDBACK),
    limits: Object.freeze({ ...DEFAULT_LIMITS, ...limits }),
    fallback,
    onUnavailable,
    siblings: given.siblings ?? "independent",
    author: given.author ?? "user",
    mode: given.mode ?? "enforce",
    timeoutMs: given.timeoutMs ?? 30_000,
    explain: given.explain ?? false,
    onUnknownTool: given.onUnknownTool ?? "warn",
    onDecision: given.onDecision as AutoModeOptions["onDecision"],
    label: given.label ?? "autoMode",
    asksHuman:
      fallback.kind === "ask" ||
      onUnavailable === "ask" ||
      // A precheck may answer "ask".
      given.precheck !== undefined ||
      tools.some(({ rule }) => rule.askAt !== undefined),
  });
}

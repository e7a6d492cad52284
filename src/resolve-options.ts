import { freezeJson } from "./json.js";
import { ConfigurationError } from "./errors.js";
import { DEFAULT_FEEDBACK, type Feedback, parseFeedback } from "./guard/feedback.js";
import { type Classifier, classifierName, classifierView } from "./guard/classify.js";
import { DEFAULT_LIMITS, type Limits } from "./limits/counters.js";
import { type Fallback, haltRun, checkFallback } from "./limits/fallbacks.js";
import { type ToolEntry, ToolSelection } from "./guard/select-tools.js";
import { optionPath, check } from "./option-problem.js";
import type { AutoModeOptions, Environment, ToolRule, ToolSelector } from "./options.js";
import { DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "./guard/question.js";
import { type MonitorView, resolveView } from "./transcript/view.js";
import type { Content, NoulCriteria } from "@langchain/core/decisions";
import { z } from "zod";
import { bindings } from "./bindings.js";

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

/** An ask band that begins above the threshold would never ask, which is never intended. */
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

const isJson = (value: unknown): boolean => value !== undefined && freezeJson({ value }) !== undefined;
const isFunction = (value: unknown): boolean => typeof value === "function";

export const criteria = z.custom<NoulCriteria | null>(
  (value) =>
    value === null ||
    (typeof value === "object" &&
      !Array.isArray(value) &&
      isJson(value) &&
      Object.keys(value).every((key) => key === "true" || key === "false")),
  "null, or an object with JSON under the keys true and false",
);
export const instructions = z.custom<Content>(
  (value) =>
    typeof value === "string"
      ? value.trim() !== ""
      : typeof value === "object" && value !== null && isJson(value),
  "a text that is not empty, a JSON object or a JSON array",
);
const unit = "a number from 0 to 1";
export const threshold = z.number(unit).min(0, unit).max(1, unit);
const limitText = "a whole number of at least 1, or Infinity";
const limit = z.custom<number>(
  (value) => value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 1),
  limitText,
);
const delayText = "milliseconds, more than 0 and at most 2147483647";
const oneOf = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, `one of ${values.map((value) => `"${value}"`).join(", ")}`);
const text = (expected: string) => z.string(expected).refine((value) => value.trim() !== "", expected);
// The host keeps names with these characters, and keys with two underscores, for itself. The second private
// key of an instance ends so: it must not be the first one of another.
const isLabel = (value: string): boolean => !/[:|]/.test(value) && !/^_|_input$/.test(value);
const labelText =
  'a text that is not empty, without ":" and "|", no "_" at its start and no "_input" at its end';
export const optionalFunction = (expected: string) =>
  z.custom<(...args: never[]) => unknown>(isFunction, expected).optional();

const CLASSIFIER = "a decision model, or a Runnable with its request and response";
function isChatModel(value: object): boolean {
  return [...bindings(value)].some((inner) => "_llmType" in inner || "bindTools" in inner);
}
export const classifier = z.custom<Classifier>(
  (value) =>
    typeof value === "object" &&
    value !== null &&
    "invoke" in value &&
    isFunction(value.invoke) &&
    !isChatModel(value),
  `${CLASSIFIER}; a chat model judges as new ChatDecisionModel({ model }) of langchain-auto-mode/classifiers`,
);

const TOOL =
  "a tool's name, a tool object, a predicate, or { tool, criteria?, instructions?, threshold?, askAt? }";
const toolSelector = z.custom<ToolSelector>(
  (value) =>
    isFunction(value) ||
    (typeof value === "string"
      ? value !== ""
      : typeof value === "object" &&
        value !== null &&
        "name" in value &&
        typeof value.name === "string" &&
        value.name !== "" &&
        "invoke" in value &&
        isFunction(value.invoke)),
  TOOL,
);
const tunedTool = z.strictObject(
  {
    tool: toolSelector,
    criteria: criteria.optional(),
    instructions: instructions.optional(),
    threshold: threshold.optional(),
    askAt: threshold.optional(),
  },
  TOOL,
);
const TOOLS = `a list, not empty, of ${TOOL}`;

const schema = z.strictObject(
  {
    tools: z.array(z.unknown(), TOOLS).min(1, TOOLS),
    classifier,
    criteria: criteria.optional(),
    instructions: instructions.optional(),
    threshold: threshold.optional(),
    askAt: threshold.optional(),
    view: z.unknown().optional(),
    environment: z
      .custom<Environment>((value) => isFunction(value) || isJson(value), "JSON, or a function that gives it")
      .optional(),
    precheck: optionalFunction('a function that gives "allow", "block", "ask" or "classify"'),
    feedback: text("a text with the field {reason}").optional(),
    limits: z
      .strictObject(
        {
          consecutiveBlocks: limit.optional(),
          totalBlocks: limit.optional(),
          consecutiveUnavailable: limit.optional(),
        },
        `an object whose fields are each ${limitText}`,
      )
      .optional(),
    whenLimitReached: z.unknown().optional(),
    onUnavailable: oneOf(["throw", "continue", "ask"]).optional(),
    siblings: oneOf(["independent", "all-or-none"]).optional(),
    author: oneOf(["user", "agent"]).optional(),
    mode: oneOf(["enforce", "observe"]).optional(),
    timeoutMs: z.number(delayText).gt(0, delayText).max(2_147_483_647, delayText).optional(),
    explain: z.boolean("true or false").optional(),
    onUnknownTool: oneOf(["warn", "ignore", "throw"]).optional(),
    onDecision: optionalFunction("a function that takes a decision record"),
    label: text(labelText).refine(isLabel, labelText).optional(),
  },
  "an object with at least tools and classifier",
);

/** Checks the options of the middleware. */
const checkOptions = (options: unknown): z.infer<typeof schema> => check(schema, options, "");
/** Checks one entry of `tools` that brings settings of its own. */
const checkTunedTool = (item: unknown, option: string): z.infer<typeof tunedTool> =>
  check(tunedTool, item, option);
/** Checks one entry of `tools` that is a selector alone. */
const checkToolSelector = (item: unknown, option: string): ToolSelector => check(toolSelector, item, option);

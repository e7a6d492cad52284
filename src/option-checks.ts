import type { Content, NoulCriteria } from "@langchain/core/decisions";
import { z } from "zod";
import { bindings } from "./bindings.js";
import { freezeJson } from "./json.js";
import type { Classifier } from "./guard/classify.js";
import { check } from "./option-problem.js";
import type { Environment, ToolSelector } from "./options.js";

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
export const checkOptions = (options: unknown): z.infer<typeof schema> => check(schema, options, "");
/** Checks one entry of `tools` that brings settings of its own. */
export const checkTunedTool = (item: unknown, option: string): z.infer<typeof tunedTool> =>
  check(tunedTool, item, option);
/** Checks one entry of `tools` that is a selector alone. */
export const checkToolSelector = (item: unknown, option: string): ToolSelector =>
  check(toolSelector, item, option);

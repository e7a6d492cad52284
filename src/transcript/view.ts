import { z } from "zod";
import { ConfigurationError } from "../errors.js";
import { CHANNELS, type Channel } from "./channels.js";

/**
 * What of a conversation the classifier reads, and how much of it. Lengths are in UTF-16 units.
 *
 * @example
 * ```ts
 * autoModeMiddleware({ tools, classifier, view: { channels: ["user", "toolCalls", "toolResults"] } });
 * ```
 */
export interface MonitorView {
  /** Which channels are read. Default: `user`, `toolCalls`, `subagentReports`. */
  channels: readonly Channel[];
  /** How many entries beside the user's own words, newest first. Whole number >= 0. Default 30. */
  mostRecent: number;
  /**
   * Budget of all entries, as the length of their JSON. Whole number >= 1. Default 24000. Only the
   * entries that say what is missing may go over it, where it is smaller than they are (about 80).
   */
  maxChars: number;
  /**
   * Budget of one text, or of one call's arguments as JSON. Whole number >= 1. Default 2000. The
   * opening user message has half of `maxChars` instead.
   */
  maxCharsPerEntry: number;
  /** Budget of one tool result; `maxCharsPerEntry` holds too. Whole number >= 1. Default 500. */
  maxCharsPerToolResult: number;
  /** Tools whose results are reports of a subagent. Default `["task"]`. */
  delegationTools: readonly string[];
}

/** The view that is used where none is configured. */
export const DEFAULT_VIEW: MonitorView = Object.freeze({
  channels: Object.freeze(["user", "toolCalls", "subagentReports"] as const),
  mostRecent: 30,
  maxChars: 24_000,
  maxCharsPerEntry: 2_000,
  maxCharsPerToolResult: 500,
  delegationTools: Object.freeze(["task"]),
});

const lengthSchema = z.int().min(1).optional();
const viewSchema = z.strictObject({
  channels: z.array(z.enum(CHANNELS)).optional(),
  mostRecent: z.int().min(0).optional(),
  maxChars: lengthSchema,
  maxCharsPerEntry: lengthSchema,
  maxCharsPerToolResult: lengthSchema,
  delegationTools: z.array(z.string().min(1)).optional(),
});

const EXPECTED: Readonly<Record<string, string>> = {
  channels: `a list of channels: ${CHANNELS.join(", ")}`,
  mostRecent: "a whole number >= 0",
  maxChars: "a whole number >= 1",
  maxCharsPerEntry: "a whole number >= 1",
  maxCharsPerToolResult: "a whole number >= 1",
  delegationTools: "a list of tool names",
};

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "a list";
  return `${/^[aeiou]/.test(typeof value) ? "an" : "a"} ${typeof value}`;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of path) current = (current as Readonly<Record<PropertyKey, unknown>>)[key];
  return current;
}

/** The option's path as a programmer writes it: `view.channels[2]`. */
function pathText(option: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : `${text}.${String(key)}`),
    option,
  );
}

function checkView(view: unknown, option: string): Partial<MonitorView> {
  const result = viewSchema.safeParse(view);
  if (result.success) return result.data;
  const issue = result.error.issues[0] as z.core.$ZodIssue;
  if (issue.code === "unrecognized_keys")
    throw new ConfigurationError(
      pathText(option, issue.keys.slice(0, 1)),
      `is unknown; expected one of ${Object.keys(EXPECTED).join(", ")}`,
    );
  const expected = EXPECTED[String(issue.path[0])] ?? "an object with fields of MonitorView";
  throw new ConfigurationError(
    pathText(option, issue.path),
    `is ${kindOf(valueAt(view, issue.path))}; expected ${expected}`,
  );
}

/** Only the fields that say something: an explicit `undefined` is not a choice. */
function given(view: Partial<MonitorView>): Partial<MonitorView> {
  return Object.fromEntries(Object.entries(view).filter(([, value]) => value !== undefined));
}

/**
 * Checks a view and completes it, field by field: first `view`, then `base` (the view that a
 * classifier names), then the defaults. The result is frozen and shares nothing with what was given.
 *
 * @param option how the option is called where it is given, for the error's message
 * @throws ConfigurationError if `view` or `base` has an unknown or a wrong field
 */
export function resolveView(view: unknown, base?: unknown, option = "view"): MonitorView {
  const merged: MonitorView = {
    ...DEFAULT_VIEW,
    ...given(checkView(base ?? {}, "classifier.view")),
    ...given(checkView(view === undefined ? {} : view, option)),
  };
  return Object.freeze({
    ...merged,
    channels: Object.freeze([...merged.channels]),
    delegationTools: Object.freeze([...merged.delegationTools]),
  });
}

import { z } from "zod";
import { check } from "../option-problem.js";
import { CHANNELS, type Channel } from "./entries.js";

/**
 * What of a conversation the classifier reads, and how much of it. Lengths are in UTF-16 units.
 *
 * @example
 * ```ts
 * autoModeMiddleware({ tools, classifier, view: { channels: ["user", "toolCalls", "toolResults"] } });
 * ```
 */
export interface MonitorView {
  /**
   * Which channels are read. Default: `user`, `toolCalls`, `subagentReports`.
   *
   * @example channels: ["user", "toolCalls", "toolResults"]
   */
  channels: readonly Channel[];
  /**
   * How many entries at most, without the user's own words and the approvers' decisions. Whole number >= 0, or
   * `Infinity`: then `maxChars` alone limits. Default 30.
   *
   * The window moves in pages, so that a request is mostly the beginning of the next one, which providers
   * compute or charge only once: it begins at the same message over several steps, and then leaves out a
   * whole page. A page has four fifths as many messages as the window has entries (24 of 30, and at most 48
   * of 24,000 characters). At least a fifth of the entries that fit is always shown, and always the newest.
   *
   * @example mostRecent: 60
   */
  mostRecent: number;
  /**
   * Budget of all entries, as the length of their JSON. Whole number >= 1. Default 24000. The user's own
   * words come first: the opening message, then the later ones and the approvers' decisions, newest first.
   * Only the entries that say what is missing may go over it, where it is smaller than they are (about 80).
   *
   * @example maxChars: 48_000
   */
  maxChars: number;
  /**
   * Budget of one text, or of one call's arguments as JSON. Whole number >= 1. Default 2000. The
   * opening user message has half of `maxChars` instead.
   *
   * @example maxCharsPerEntry: 4_000
   */
  maxCharsPerEntry: number;
  /**
   * Budget of one tool result; `maxCharsPerEntry` holds too. Whole number >= 1. Default 500.
   *
   * @example maxCharsPerToolResult: 2_000
   */
  maxCharsPerToolResult: number;
  /**
   * Tools whose results are reports of a subagent. Default `["task"]`.
   *
   * @example delegationTools: ["task", "ask_expert"]
   */
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

const LENGTH = "a whole number >= 1";
const RECENT = "a whole number >= 0, or Infinity";
const LIST = `a list of channels: ${CHANNELS.join(", ")}`;
const TOOLS = "a list of tool names";
const length = z.int(LENGTH).min(1, LENGTH).optional();
const fields = {
  channels: z.array(z.enum(CHANNELS, LIST), LIST).optional(),
  mostRecent: z
    .custom<number>(
      (value) => value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 0),
      RECENT,
    )
    .optional(),
  maxChars: length,
  maxCharsPerEntry: length,
  maxCharsPerToolResult: length,
  delegationTools: z.array(z.string(TOOLS).min(1, TOOLS), TOOLS).optional(),
};
const schema = z.strictObject(fields, 'an object such as { channels: ["user", "toolCalls"] }');
const UNKNOWN_FIELD = `is not an option; expected one of ${Object.keys(fields).join(", ")}`;

/** Only the fields that say something: an explicit `undefined` is not a choice. */
function given(view: Partial<MonitorView>): Partial<MonitorView> {
  return Object.fromEntries(Object.entries(view).filter(([, value]) => value !== undefined));
}

/**
 * Checks a view and completes it, field by field: first `view`, then `base` (the view that a
 * classifier names), then the defaults. The result is frozen and shares nothing with what was given.
 *
 * @param option how the option is called where it is given, for the error's message
 * @throws {ConfigurationError} if `view` or `base` has an unknown or a wrong field
 */
export function resolveView(view: unknown, base?: unknown, option = "view"): MonitorView {
  const merged: MonitorView = {
    ...DEFAULT_VIEW,
    ...given(check(schema, base ?? {}, "classifier.view", UNKNOWN_FIELD)),
    ...given(check(schema, view === undefined ? {} : view, option, UNKNOWN_FIELD)),
  };
  return Object.freeze({
    ...merged,
    channels: Object.freeze([...merged.channels]),
    delegationTools: Object.freeze([...merged.delegationTools]),
  });
}

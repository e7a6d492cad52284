import type { Channel, Entry } from "./channels.js";

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
  /** Budget of all entries, as the length of their JSON. Whole number >= 1. Default 24000. */
  maxChars: number;
  /** Budget of one entry; the opening user message has half of `maxChars` instead. Default 2000. */
  maxCharsPerEntry: number;
  /** Budget of one tool result. Default 500. */
  maxCharsPerToolResult: number;
  /** Tools whose results are reports of a subagent. Default `["task"]`. */
  delegationTools: readonly string[];
}

/** The view that is used where none is configured. */
export const DEFAULT_VIEW: MonitorView = {
  channels: ["user", "toolCalls", "subagentReports"],
  mostRecent: 30,
  maxChars: 24_000,
  maxCharsPerEntry: 2_000,
  maxCharsPerToolResult: 500,
  delegationTools: ["task"],
};

export type { Channel, Entry };

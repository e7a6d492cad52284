import type { JsonValue } from "@langchain/core/decisions";

/** A part of the conversation that a classifier may be shown. */
export type Channel = "user" | "toolCalls" | "subagentReports" | "agentText" | "reasoning" | "toolResults";

/** Words of the user, or words that only look like the user's. */
export interface TextEntry {
  /**
   * - `user`: a human message that came in as a run's input. Of messages, only it can authorize.
   * - `delegator`: the task text of a subagent: the delegating agent's words, not the user's.
   * - `auto_mode_feedback`: the answer of this middleware to an earlier call.
   * - `agent`: the agent's own text, a refusal included.
   * - `agent_reasoning`: its reasoning.
   */
  from: "user" | "delegator" | "auto_mode_feedback" | "agent" | "agent_reasoning";
  /** The words. */
  text: string;
}

/**
 * What a person decided about an earlier call that waited for them, with the person's words. It authorizes
 * exactly what it names, and its limits bind. Only this package makes such an entry: no message and no
 * result of a tool can.
 */
export interface ApproverEntry {
  /** Who speaks. */
  from: "approver";
  /** The words. */
  text: string;
}

/** A human message that was written during a run, or tagged as made by a program: it authorizes nothing. */
export interface NoteEntry {
  /** Who speaks. */
  from: "context_note";
  /** The tool, the message's name or its tag, as far as known. */
  source: string;
  /** The words. */
  text: string;
}

/** A call that the agent, or the model's own server, made earlier. */
export interface CallEntry {
  /** Where the call ran. */
  from: "tool_call" | "server_tool_call";
  /** The tool's name. */
  name: string;
  /** The arguments, cut where they are long. */
  args: JsonValue;
}

/** What came back from a tool, or a call that was no valid JSON (its raw text). */
export interface ResultEntry {
  /** What kind of result it is. */
  from: "tool_result" | "server_tool_result" | "tool_error" | "subagent_report" | "malformed_tool_call";
  /** The tool's name, `unknown` where nothing says it. */
  name: string;
  /** The words. */
  text: string;
}

/** Says where the view left messages out for want of room. */
export interface OmittedEntry {
  /** What is missing. */
  from: "omitted";
  /** How many messages it left out, those that no open channel would have shown included. */
  count: number;
}

/** Says that nothing in the transcript is the user's. */
export interface NoUserMessageEntry {
  /** What is missing. */
  from: "no_user_message";
}

/** One entry of the transcript that a classifier reads. */
export type Entry =
  | TextEntry
  | ApproverEntry
  | NoteEntry
  | CallEntry
  | ResultEntry
  | OmittedEntry
  | NoUserMessageEntry;

/** An entry with content, and not a mark of something missing. */
export type ContentEntry = Exclude<Entry, OmittedEntry | NoUserMessageEntry>;

/** Who or what a {@link ContentEntry} comes from. */
export type EntryKind = ContentEntry["from"];

/** An entry that is not built yet: who speaks is known, the text is not read. */
export interface Piece {
  readonly from: EntryKind;
  build(): ContentEntry;
}

/** The channel that each kind of entry belongs to. */
export const channelOf: Readonly<Record<EntryKind, Channel>> = {
  user: "user",
  delegator: "user",
  approver: "user",
  context_note: "user",
  auto_mode_feedback: "user",
  tool_call: "toolCalls",
  server_tool_call: "toolCalls",
  malformed_tool_call: "toolCalls",
  tool_error: "toolCalls",
  subagent_report: "subagentReports",
  agent: "agentText",
  agent_reasoning: "reasoning",
  tool_result: "toolResults",
  server_tool_result: "toolResults",
};

/** The kinds of entry that belong to the channels. */
export function kindsIn(channels: readonly Channel[]): Set<EntryKind> {
  const kinds = Object.keys(channelOf) as EntryKind[];
  return new Set(kinds.filter((kind) => channels.includes(channelOf[kind])));
}

/** All channels, in the order of the documentation. */
export const CHANNELS: readonly Channel[] = [
  "user",
  "toolCalls",
  "subagentReports",
  "agentText",
  "reasoning",
  "toolResults",
];

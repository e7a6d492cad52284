import type { JsonValue } from "@langchain/core/decisions";
import type { TranscriptSource } from "./build.js";
import { malformedEntry, nameOr, UNKNOWN } from "./message.js";
import { type Fields, fieldsOf, isMedia, mediaMarker } from "./media.js";
import type { Piece, NoteEntry, TextEntry } from "./entries.js";

/** What a source needs to know in addition to the messages. */
export interface AnthropicSourceOptions {
  /** Tools whose results are reports of a subagent. */
  readonly delegationTools: readonly string[];
  /** Ids of calls that were refused earlier: their results are our answers to the agent. */
  readonly refusedCalls?: ReadonlySet<unknown>;
  /** `"agent"`: the request is a subagent's, whose task text is the delegating agent's. Default `"user"`. */
  readonly author?: "user" | "agent";
}

/** Tools of the client whose answers are typed by the user. */
const ASKS_USER = new Set(["AskUserQuestion"]);
/** Tools of the client behind whose call a text of somebody else comes in the user's role. */
const BRINGS_TEXT = new Set(["Skill"]);
/** Tools by which the agent writes a prompt that comes back later in the user's role. */
const WRITES_PROMPT = new Set(["ScheduleWakeup", "CronCreate"]);

/** What is known of a request's calls before its messages are read. */
interface Calls {
  readonly nameOf: (id: unknown) => string;
  /** Prompts that the agent wrote to itself. */
  readonly prompts: ReadonlySet<string>;
  /** Where the conversation begins. */
  readonly startsAt: number;
}

/**
 * The messages of a request to Anthropic's messages API as a source of entries. They may hold
 * anything: what is no known block is data of unknown origin, never the user's.
 *
 * The model's thinking has no entries. A message of the system in the middle of a conversation is a note, or a
 * subagent's report. A summary in place of an earlier conversation is a note, and so is what the client has put
 * into the user's role: reminders, the bodies of skills and commands, prompts that the agent wrote to itself.
 */
export function fromAnthropic(messages: unknown, options: AnthropicSourceOptions): TranscriptSource {
  const list: readonly unknown[] = Array.isArray(messages) ? messages : [];
  let calls: Calls | undefined;
  const piecesAt = (index: number) => {
    calls ??= collectCalls(list);
    return piecesOf(list, index, options, calls);
  };
  return {
    length: list.length,
    entriesAt: (index, kinds) =>
      piecesAt(index)
        .filter(({ from }) => kinds.has(from))
        .map((piece) => piece.build()),
    isUserAt: (index) => piecesAt(index).some(({ from }) => from === "user" || from === "delegator"),
  };
}

function collectCalls(messages: readonly unknown[]): Calls {
  const names = new Map<unknown, string>();
  const prompts = new Set<string>();
  for (const message of messages) {
    const fields = fieldsOf(message);
    if (fields?.["role"] !== "assistant") continue;
    for (const { type, id, name, input } of blocksOf(fields["content"])) {
      if (!isKind(type, "tool_use") || typeof name !== "string") continue;
      names.set(id, name);
      const prompt = WRITES_PROMPT.has(name) ? fieldsOf(input)?.["prompt"] : undefined;
      if (typeof prompt === "string") prompts.add(prompt.trim());
    }
  }
  const startsAt = messages.findIndex((message) => fieldsOf(message)?.["role"] === "user");
  return {
    nameOf: (id) => names.get(id) ?? UNKNOWN,
    prompts,
    startsAt: startsAt < 0 ? messages.length : startsAt,
  };
}

/** Whether a block's type is one of a family: `tool_use`, `server_tool_use`, `mcp_tool_use` … */
function isKind(type: unknown, family: string): boolean {
  return typeof type === "string" && type.endsWith(family);
}

function piecesOf(
  list: readonly unknown[],
  index: number,
  options: AnthropicSourceOptions,
  calls: Calls,
): Piece[] {
  const message = fieldsOf(list[index]);
  const blocks = blocksOf(message?.["content"]);
  switch (message?.["role"]) {
    case "assistant":
      return blocks.flatMap((block) => agentPieces(block, calls.nameOf));
    case "system":
      // What the session begins with is the session's prompt, which stays out.
      return index < calls.startsAt ? [] : blocks.flatMap((block) => systemPieces(block));
    case "user": {
      let source = bodyBefore(list, index);
      return blocks.flatMap((block) => {
        const pieces = userPieces(block, source, options, calls);
        source = bodyBehind(block, calls) ?? source;
        return pieces;
      });
    }
    default:
      return [];
  }
}

/** What comes behind a block in the user's role and is not the user's: the body of a skill or of a command. */
function bodyBehind({ type, text, tool_use_id: id }: Fields, { nameOf }: Calls): string | undefined {
  if (type === "tool_result") return BRINGS_TEXT.has(nameOf(id)) ? "skill" : undefined;
  return type === "text" && typeof text === "string" && isCommand(text) ? "command" : undefined;
}

/** The same for a message that follows another of the user's role, which belong together. */
function bodyBefore(list: readonly unknown[], index: number): string | undefined {
  const before = fieldsOf(list[index - 1]);
  if (before?.["role"] !== "user") return undefined;
  const texts = blocksOf(before["content"]).flatMap(({ text }) => (typeof text === "string" ? [text] : []));
  return texts.some((text) => isCommand(text)) ? "command" : undefined;
}

/** A message of the system in the middle of a conversation. What the session began with is not here. */
function systemPieces({ type, text }: Fields): Piece[] {
  if (type !== "text" || typeof text !== "string") return [];
  return isAgentReport(text)
    ? [{ from: "subagent_report", build: () => ({ from: "subagent_report", name: UNKNOWN, text }) }]
    : [noteOf("system", text)];
}

const noteOf = (source: string, text: string): Piece => ({
  from: "context_note",
  build: () => ({ from: "context_note", source, text }),
});

function userPieces(
  block: Fields,
  body: string | undefined,
  options: AnthropicSourceOptions,
  calls: Calls,
): Piece[] {
  const { type, text } = block;
  const from = options.author === "agent" ? "delegator" : "user";
  if (type === "text" && typeof text === "string") {
    if (calls.prompts.has(text.trim())) return [noteOf("own_prompt", text)];
    if (body !== undefined && !isCommand(text)) return [noteOf(body, text)];
    return splitUserText(text).map((entry) =>
      entry.from === "user"
        ? { from, build: () => ({ from, text: entry.text }) }
        : { from: entry.from, build: () => entry },
    );
  }
  if (type === "tool_result") return [answerPiece(block, options, calls.nameOf)];
  if (isMedia(block)) return [{ from, build: () => ({ from, text: mediaMarker(block) }) }];
  return [notePiece(block)];
}

function agentPieces(block: Fields, nameOf: Calls["nameOf"]): Piece[] {
  const { type, text } = block;
  if (type === "thinking" || type === "redacted_thinking") return [];
  if (type === "text") return [{ from: "agent", build: () => ({ from: "agent", text: contentText(text) }) }];
  if (isKind(type, "tool_use")) return [callPiece(block)];
  if (isKind(type, "tool_result")) return [resultPiece("server_tool_result", block, nameOf)];
  return [notePiece(block)];
}

function callPiece({ type, name, input }: Fields): Piece {
  if (fieldsOf(input) === undefined || Array.isArray(input))
    return { from: "malformed_tool_call", build: () => malformedEntry({ name, args: input }) };
  const from = type === "tool_use" ? "tool_call" : "server_tool_call";
  return { from, build: () => ({ from, name: nameOr(name), args: input as JsonValue }) };
}

/** What came back from a tool that the client ran: by our own word first, then failure, then delegation. */
function answerPiece(block: Fields, options: AnthropicSourceOptions, nameOf: Calls["nameOf"]): Piece {
  if (options.refusedCalls?.has(block["tool_use_id"])) {
    const from = "auto_mode_feedback";
    return { from, build: () => ({ from, text: contentText(block["content"]) }) };
  }
  if (block["is_error"] === true) return resultPiece("tool_error", block, nameOf);
  if (ASKS_USER.has(nameOf(block["tool_use_id"])))
    return { from: "user", build: () => ({ from: "user", text: contentText(block["content"]) }) };
  const isReport = options.delegationTools.includes(nameOf(block["tool_use_id"]));
  return resultPiece(isReport ? "subagent_report" : "tool_result", block, nameOf);
}

function resultPiece(
  from: "tool_error" | "subagent_report" | "tool_result" | "server_tool_result",
  block: Fields,
  nameOf: Calls["nameOf"],
): Piece {
  const build = () => ({ from, name: nameOf(block["tool_use_id"]), text: contentText(block["content"]) });
  return { from, build };
}

/** A block that is nobody's words: a summary that the service wrote, or a kind that is not known. */
function notePiece(block: Fields): Piece {
  const source = nameOr(block["type"]);
  const from = "context_note";
  return { from, build: () => ({ from, source, text: contentText(block["content"] ?? block) }) };
}

/** What a marker of the client says about the text around it. */
interface Marker {
  /** The tag's name, or how it ends. */
  readonly tag: RegExp;
  /** Whose words the tagged text is: the user's own, or data that the client put there. */
  readonly speaker: "user" | "note";
  /** Client versions in which it was seen. */
  readonly seen: string;
}

/**
 * The markers that Claude Code writes into the user's role, one table for all of them. Any other tag is a part
 * of the text around it: users paste markup, too.
 */
const MARKERS: readonly Marker[] = [
  { tag: /^command-(?:name|message|args)$/, speaker: "user", seen: "2.1.278 and later" },
  { tag: /^bash-input$/, speaker: "user", seen: "2.1.278 and later" },
  { tag: /^system-reminder$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^(?:local-command|bash)-(?:stdout|stderr|caveat)$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^task-notification$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^ide_(?:selection|opened_file|diagnostics)$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^new-diagnostics$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /-hook$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^(?:agent|teammate)-message$/, speaker: "note", seen: "2.1.318 and later" },
  { tag: /^tick$/, speaker: "note", seen: "2.1.318 and later" },
];

const OPENING = /(?:^|\n)[^\S\n]*<([a-z][a-z\d]*(?:[-_][a-z\d]+)*)(?:\s[^>\n]*)?>/g;
const CLOSING = /<\/([a-z][a-z\d]*(?:[-_][a-z\d]+)*)>/g;
const COMMAND = /(?:^|\n)[^\S\n]*<command-(?:name|message)>/;
const REPORT = /^\s*<agent-message[\s>]/;

// How a client that has compacted a conversation begins the next one.
const SUMMARY = /^\s*This session is being continued from a previous conversation/;

const isNote = (tag: string): boolean =>
  MARKERS.some((marker) => marker.speaker === "note" && marker.tag.test(tag));

/** Whether a text names a command that the user typed. What the client adds behind it is the command's body. */
const isCommand = (text: string): boolean => COMMAND.test(text);

/** Whether a text is the report of a subagent. */
const isAgentReport = (text: string): boolean => REPORT.test(text);

/**
 * Separates the user's own words from what a client has added in the same text. What lies between the
 * first opening tag of the client and the last closing one is a note: whatever closing tag a wrapped text
 * holds, the client's own comes after it. Where none comes, the note goes on to the end.
 */
function splitUserText(text: string): (TextEntry | NoteEntry)[] {
  if (SUMMARY.test(text)) return [{ from: "context_note", source: "summary", text }];
  const opening = findOpening(text);
  if (opening === undefined) return isBlank(text) ? [] : [{ from: "user", text }];
  const { start, source } = opening;
  const end = endOfLastClosing(text, start);
  const before = text.slice(0, start);
  const after = text.slice(end);
  return [
    ...(isBlank(before) ? [] : [{ from: "user", text: before } as const]),
    { from: "context_note", source, text: text.slice(start, end).trim() },
    ...(isBlank(after) ? [] : [{ from: "user", text: after } as const]),
  ];
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

function findOpening(text: string): { start: number; source: string } | undefined {
  // Most texts hold no tag; looking for one costs next to nothing.
  if (!text.includes("<")) return undefined;
  for (const match of text.matchAll(OPENING)) {
    const source = match[1] as string;
    if (isNote(source)) return { start: match.index, source };
  }
  return undefined;
}

function endOfLastClosing(text: string, from: number): number {
  let end = text.length;
  for (const match of text.slice(from).matchAll(CLOSING))
    if (isNote(match[1] as string)) end = from + match.index + match[0].length;
  return end;
}

/** The content blocks of a message. A plain text is one block of it; what is no block is unknown data. */
function blocksOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content
    .filter((block) => block !== null)
    .map((block: unknown) => fieldsOf(block) ?? { type: "unknown", content: block });
}

/** What a tool answered, or any other data, as a text. */
function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content)
    ? content.map((block: unknown) => blockText(block))
    : [blockText(content)];
  return blocks.join("\n");
}

function blockText(block: unknown): string {
  const fields = fieldsOf(block);
  if (fields?.["type"] === "text" && typeof fields["text"] === "string") return fields["text"];
  if (fields && isMedia(fields)) return mediaMarker(fields);
  return JSON.stringify(block, readable) ?? "";
}

/** Leaves out what nobody can read, so that the room goes to what the agent read. */
function readable(key: string, value: unknown): unknown {
  if (key.startsWith("encrypted_")) return undefined;
  const fields = fieldsOf(value);
  return fields?.["type"] === "base64" ? mediaMarker(fields) : value;
}

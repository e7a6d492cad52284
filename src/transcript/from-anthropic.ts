import type { JsonValue } from "@langchain/core/decisions";
import { blocksOf, contentText } from "./anthropic-content.js";
import { splitUserText } from "./anthropic-user-text.js";
import type { TranscriptSource } from "./build.js";
import { malformedEntry, nameOr, UNKNOWN } from "./calls.js";
import { type Fields, fieldsOf, isMedia, mediaMarker } from "./media.js";
import type { Piece } from "./entries.js";

/** What a source needs to know beside the messages. */
export interface AnthropicSourceOptions {
  /** Tools whose results are reports of a subagent. */
  readonly delegationTools: readonly string[];
  /** Ids of calls that were refused earlier: their results are our answers to the agent. */
  readonly refusedCalls?: ReadonlySet<unknown>;
}

type NameOf = (id: unknown) => string;

/**
 * The messages of a request to Anthropic's messages API as a source of entries. They may hold
 * anything: what is no known block is data of unknown origin, never the user's.
 *
 * System messages, wherever they are, and the model's thinking have no entries. A summary that
 * stands for an earlier conversation is a note, and so is what a client has put beside the user's words.
 */
export function fromAnthropic(messages: unknown, options: AnthropicSourceOptions): TranscriptSource {
  const list: readonly unknown[] = Array.isArray(messages) ? messages : [];
  let names: ReadonlyMap<unknown, string> | undefined;
  const nameOf: NameOf = (id) => {
    names ??= collectNames(list);
    return names.get(id) ?? UNKNOWN;
  };
  const piecesAt = (index: number) => piecesOf(fieldsOf(list[index]), options, nameOf);
  return {
    length: list.length,
    entriesAt: (index, kinds) =>
      piecesAt(index)
        .filter(({ from }) => kinds.has(from))
        .map((piece) => piece.build()),
    isUserAt: (index) => piecesAt(index).some(({ from }) => from === "user"),
  };
}

function collectNames(messages: readonly unknown[]): Map<unknown, string> {
  const names = new Map<unknown, string>();
  for (const message of messages) {
    const fields = fieldsOf(message);
    if (fields?.["role"] !== "assistant") continue;
    for (const { type, id, name } of blocksOf(fields["content"]))
      if (isKind(type, "tool_use") && typeof name === "string") names.set(id, name);
  }
  return names;
}

/** Whether a block's type is one of a family: `tool_use`, `server_tool_use`, `mcp_tool_use` … */
function isKind(type: unknown, family: string): boolean {
  return typeof type === "string" && type.endsWith(family);
}

function piecesOf(message: Fields | undefined, options: AnthropicSourceOptions, nameOf: NameOf): Piece[] {
  const role = message?.["role"];
  if (role !== "user" && role !== "assistant") return [];
  return blocksOf(message?.["content"]).flatMap((block) =>
    role === "user" ? userPieces(block, options, nameOf) : agentPieces(block, nameOf),
  );
}

function userPieces(block: Fields, options: AnthropicSourceOptions, nameOf: NameOf): Piece[] {
  const { type, text } = block;
  if (type === "text" && typeof text === "string")
    return splitUserText(text).map((entry) => ({ from: entry.from, build: () => entry }));
  if (type === "tool_result") return [answerPiece(block, options, nameOf)];
  if (isMedia(block)) return [{ from: "user", build: () => ({ from: "user", text: mediaMarker(block) }) }];
  return [notePiece(block)];
}

function agentPieces(block: Fields, nameOf: NameOf): Piece[] {
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
function answerPiece(block: Fields, options: AnthropicSourceOptions, nameOf: NameOf): Piece {
  if (options.refusedCalls?.has(block["tool_use_id"])) {
    const from = "auto_mode_feedback";
    return { from, build: () => ({ from, text: contentText(block["content"]) }) };
  }
  if (block["is_error"] === true) return resultPiece("tool_error", block, nameOf);
  const isReport = options.delegationTools.includes(nameOf(block["tool_use_id"]));
  return resultPiece(isReport ? "subagent_report" : "tool_result", block, nameOf);
}

function resultPiece(
  from: "tool_error" | "subagent_report" | "tool_result" | "server_tool_result",
  block: Fields,
  nameOf: NameOf,
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

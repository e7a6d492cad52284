import {
  callEntry,
  callFromBlock,
  malformedEntry,
  nameOr,
  resultInside,
  serverCallEntry,
  serverResultEntry,
} from "./calls.js";
import type { ContentEntry, EntryKind, ResultEntry } from "./entries.js";
import {
  type BlockKind,
  blocksOf,
  joinTexts,
  kindOfBlock,
  textOf,
  textOfBlock,
  unwrap,
} from "./content-blocks.js";
import { type Fields, fieldsOf } from "./media.js";
import { fieldOf, listOf } from "./message-fields.js";

/** An entry that is not built yet: who speaks is known, the text is not read. */
export interface Piece {
  readonly from: EntryKind;
  build(): ContentEntry;
}

interface KnownBlock {
  readonly kind: BlockKind;
  readonly block: unknown;
}

const SPOKEN: ReadonlySet<BlockKind> = new Set<BlockKind>(["text", "media", "refusal", "unknown"]);

function knownBlocks(message: Fields): KnownBlock[] {
  return blocksOf(fieldOf(message, "content")).map((block) => ({ kind: kindOfBlock(block), block }));
}

function joined(blocks: readonly KnownBlock[]): string {
  return joinTexts(blocks.map(({ block }) => textOfBlock(block)));
}

/** A piece of plain text. */
function textPiece(
  from: "user" | "delegator" | "agent" | "agent_reasoning" | "auto_mode_feedback",
  text: () => string,
): Piece {
  return { from, build: () => ({ from, text: text() }) };
}

/** What a person decided about a call. */
export function approverPiece(text: string): Piece {
  return { from: "approver", build: () => ({ from: "approver", text }) };
}

/** Words that authorize nothing. */
export function notePiece(source: string, text: () => string): Piece {
  return { from: "context_note", build: () => ({ from: "context_note", source, text: text() }) };
}

/** A message of which only the text counts. */
export function messageText(message: Fields): string {
  return textOf(blocksOf(fieldOf(message, "content")));
}

/**
 * The user's own message. Only text and media are the user's words; other blocks, such as a tool's
 * result, could be anybody's.
 */
export function userPieces(message: Fields, from: "user" | "delegator"): Piece[] {
  const blocks = knownBlocks(message);
  const own = blocks.filter(({ kind }) => kind === "text" || kind === "media");
  const others = blocks.filter(({ kind }) => kind !== "text" && kind !== "media" && kind !== "nothing");
  return [
    textPiece(from, () => joined(own)),
    ...others.map(({ block }) =>
      notePiece(`${nameOr(fieldsOf(block)?.["type"])} block`, () => textOfBlock(block)),
    ),
  ];
}

/** A tool message, as what it was found to be. */
export function toolPiece(
  message: Fields,
  from: ResultEntry["from"] | "auto_mode_feedback",
  name: string,
): Piece {
  if (from === "auto_mode_feedback") return textPiece(from, () => messageText(message));
  return { from, build: () => ({ from, name, text: messageText(message) }) };
}

function reasoningIn(kwargs: Fields): string {
  const { reasoning, reasoning_content: content } = kwargs;
  if (typeof content === "string") return content;
  if (typeof reasoning === "string") return reasoning;
  const fields = fieldsOf(reasoning);
  return fields === undefined ? "" : textOfBlock({ ...fields, type: "reasoning" });
}

function reasoningPieces(blocks: readonly KnownBlock[], kwargs: Fields): Piece[] {
  const reasoning = blocks.filter(({ kind }) => kind === "reasoning");
  if (reasoning.length > 0) return [textPiece("agent_reasoning", () => joined(reasoning))];
  return reasoningIn(kwargs) === "" ? [] : [textPiece("agent_reasoning", () => reasoningIn(kwargs))];
}

function agentPieces(message: Fields, blocks: readonly KnownBlock[], kwargs: Fields, ours: boolean): Piece[] {
  const spoken = blocks.length === 0 ? blocks : blocks.filter(({ kind }) => SPOKEN.has(kind));
  const refusal = typeof kwargs["refusal"] === "string" ? kwargs["refusal"] : "";
  const metadata = fieldsOf(fieldOf(message, "response_metadata"));
  const stopped = metadata?.["stop_reason"] === "refusal" && !spoken.some(({ kind }) => kind === "refusal");
  if (spoken.length === 0 && refusal === "" && !stopped) return [];
  const text = (): string => joinTexts([joined(spoken), refusal, stopped ? "[refusal]" : ""]);
  return [textPiece(ours ? "auto_mode_feedback" : "agent", text)];
}

function serverPieces(blocks: readonly KnownBlock[], kwargs: Fields): Piece[] {
  const outputs = listOf(kwargs, "tool_outputs").map(unwrap);
  const all = [...blocks, ...outputs.map((block) => ({ kind: kindOfBlock(block), block }))];
  const pieces: Piece[] = [];
  const names = new Map<unknown, string>();
  for (const { kind, block } of all) {
    const fields = fieldsOf(block);
    if (fields === undefined) continue;
    if (kind === "server_call") {
      const call = serverCallEntry(fields);
      names.set(fields["id"] ?? fields["call_id"], call.name);
      pieces.push({ from: call.from, build: () => call });
      if (resultInside(fields) !== undefined)
        pieces.push({ from: "server_tool_result", build: () => serverResultEntry(fields, call.name) });
    } else if (kind === "server_result") {
      const id = fields["toolCallId"] ?? fields["tool_use_id"] ?? fields["call_id"];
      const name = names.get(id);
      pieces.push({ from: "server_tool_result", build: () => serverResultEntry(fields, name) });
    }
  }
  return pieces;
}

/**
 * What the agent said, thought and called.
 *
 * @param isJudged whether a call is being judged now
 * @param decisions what persons decided about the message's calls
 */
export function agentMessagePieces(
  message: Fields,
  ours: boolean,
  isJudged: (callIndex: number) => boolean,
  decisions: readonly { readonly toolCallId: string; readonly text: string }[],
): Piece[] {
  const blocks = knownBlocks(message);
  const kwargs = fieldsOf(fieldOf(message, "additional_kwargs")) ?? {};
  const calls = listOf(message, "tool_calls");
  const broken = listOf(message, "invalid_tool_calls");
  const pieces = agentPieces(message, blocks, kwargs, ours);
  // Most messages that propose calls say nothing else.
  if (blocks.length > 0 || Object.keys(kwargs).length > 0) {
    pieces.unshift(...reasoningPieces(blocks, kwargs));
    pieces.push(...serverPieces(blocks, kwargs));
  }
  const unmatched = new Set(decisions);
  for (const [index, call] of calls.entries()) {
    if (!isJudged(index)) pieces.push({ from: "tool_call", build: () => callEntry(call) });
    for (const decision of unmatched) {
      if (decision.toolCallId !== call["id"]) continue;
      pieces.push(approverPiece(decision.text));
      unmatched.delete(decision);
    }
  }
  for (const { text } of unmatched) pieces.push(approverPiece(text));
  for (const call of broken) pieces.push({ from: "malformed_tool_call", build: () => malformedEntry(call) });
  if (calls.length > 0 || broken.length > 0) return pieces;
  // Blocks repeat the calls above, and may keep arguments that were edited since; alone they count.
  for (const { kind, block } of blocks)
    if (kind === "call") {
      const entry = callFromBlock(block as Fields);
      pieces.push({ from: entry.from, build: () => entry });
    }
  return pieces;
}

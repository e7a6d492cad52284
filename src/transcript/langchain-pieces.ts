import { nameOr, UNKNOWN } from "./calls.js";
import type { Fields } from "./media.js";
import { fieldOf, kindOfMessage, sourceTag } from "./message-fields.js";
import {
  agentMessagePieces,
  messageText,
  notePiece,
  type Piece,
  toolPiece,
  userPieces,
} from "./message-pieces.js";

/** Whether a message carries the tag of our own. */
export function isOurs(message: Fields): boolean {
  return sourceTag(message) === "auto_mode";
}

/** What the entries of a message depend on beside the message. */
export interface Surroundings {
  /** Whose the user's words are: in a subagent its task text is the delegating agent's. */
  readonly own: "user" | "delegator";
  /** Tools whose results are reports of a subagent. */
  readonly delegation: ReadonlySet<string>;
  /** Whether a human message is the user's own. */
  isUsers(message: Fields): boolean;
  /** Whether the call at this place of the message's `tool_calls` is being judged now. */
  isJudged(message: Fields, callIndex: number): boolean;
  /** What persons decided about calls of an agent's message. */
  decisionsOn(message: Fields): readonly { readonly toolCallId: string; readonly text: string }[];
  /** The tool that the nameless tool message at this place of the list answers. */
  answeredName(at: number): string | undefined;
}

/** Who or what made a note: its tag, its name or its role. */
export function noteSource(message: Fields): string {
  const given = sourceTag(message);
  return nameOr(given, nameOr(fieldOf(message, "name"), nameOr(fieldOf(message, "role"))));
}

function note(message: Fields): Piece {
  return notePiece(noteSource(message), () => messageText(message));
}

/** What a tool message is, by our own tag first, then error status, then delegation; and of which tool. */
export function classOfResult(
  message: Fields,
  at: number,
  around: Surroundings,
): { from: "auto_mode_feedback" | "tool_error" | "subagent_report" | "tool_result"; name: string } {
  const name = nameOr(fieldOf(message, "name"), "") || (around.answeredName(at) ?? UNKNOWN);
  if (isOurs(message)) return { from: "auto_mode_feedback", name };
  if (fieldOf(message, "status") === "error") return { from: "tool_error", name };
  return { from: around.delegation.has(name) ? "subagent_report" : "tool_result", name };
}

/** The entries of one LangChain message, not built yet. `at` is its place in the list. */
export function langchainPieces(message: Fields, at: number, around: Surroundings): readonly Piece[] {
  switch (kindOfMessage(message)) {
    case "human":
      return around.isUsers(message) ? userPieces(message, around.own) : [note(message)];
    case "ai":
      return agentMessagePieces(
        message,
        isOurs(message),
        (call) => around.isJudged(message, call),
        around.decisionsOn(message),
      );
    case "tool": {
      const { from, name } = classOfResult(message, at, around);
      return [toolPiece(message, from, name)];
    }
    case "other":
      return fieldOf(message, "content") === undefined ? [] : [note(message)];
    default:
      return [];
  }
}

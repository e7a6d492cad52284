import type { BaseMessage } from "@langchain/core/messages";
import type { TranscriptSource } from "./build-transcript.js";
import { nameOr, UNKNOWN } from "./calls.js";
import type { ContentEntry, EntryKind } from "./channels.js";
import { type Fields, fieldsOf } from "./media.js";
import { fieldOf, kindOfMessage, listOf, sourceTag } from "./message-fields.js";
import {
  agentMessagePieces,
  messageText,
  notePiece,
  type Piece,
  toolPiece,
  userPieces,
} from "./message-pieces.js";

/** The tag of our own messages. */
const OWN_TAG = "auto_mode";

/** Who is who in a list of LangChain messages. */
export interface LangchainSourceOptions {
  /** Tools whose results are reports of a subagent. */
  readonly delegationTools: readonly string[];
  /** Whether an untagged human message came in as a run's input. Called often: make it cheap. */
  isUser(message: BaseMessage): boolean;
  /** `agent` in a subagent: its input is the delegating agent's, not the user's. Default `user`. */
  readonly author?: "user" | "agent";
  /** Whether the call at this place of the message's `tool_calls` is being judged now. */
  isJudged?(message: BaseMessage, callIndex: number): boolean;
  /** The user's own messages from before a summary took their place, oldest first. */
  readonly earlierWords?: readonly string[];
}

class LangchainSource implements TranscriptSource {
  readonly length: number;
  readonly #messages: readonly unknown[];
  readonly #options: LangchainSourceOptions;
  readonly #earlier: readonly string[];
  readonly #delegation: ReadonlySet<string>;
  readonly #own: "user" | "delegator";
  #names: readonly (string | undefined)[] | undefined;

  constructor(messages: readonly BaseMessage[], options: LangchainSourceOptions) {
    this.#messages = messages;
    this.#options = options;
    this.#earlier = options.earlierWords ?? [];
    this.#delegation = new Set(options.delegationTools);
    this.#own = options.author === "agent" ? "delegator" : "user";
    this.length = this.#earlier.length + messages.length;
  }

  isUserAt(index: number): boolean {
    if (index < this.#earlier.length) return true;
    const message = fieldsOf(this.#messages[index - this.#earlier.length]);
    return message !== undefined && kindOfMessage(message) === "human" && this.#isUsers(message);
  }

  entriesAt(index: number): readonly ContentEntry[] {
    return Array.from(this.#piecesAt(index), (piece) => piece.build());
  }

  hasEntriesAt(index: number, kinds: ReadonlySet<EntryKind>): boolean {
    for (const { from } of this.#piecesAt(index)) if (kinds.has(from)) return true;
    return false;
  }

  #isUsers(message: Fields): boolean {
    return sourceTag(message) === undefined && this.#options.isUser(message as unknown as BaseMessage);
  }

  #piecesAt(index: number): Iterable<Piece> {
    const words = this.#earlier[index];
    if (words !== undefined) return userPieces({ content: words }, this.#own);
    const at = index - this.#earlier.length;
    const message = fieldsOf(this.#messages[at]);
    if (message === undefined) return [];
    switch (kindOfMessage(message)) {
      case "human":
        return this.#isUsers(message) ? userPieces(message, this.#own) : [this.#notePiece(message)];
      case "ai":
        return agentMessagePieces(message, sourceTag(message) === OWN_TAG, (call) =>
          this.#isJudged(message, call),
        );
      case "tool":
        return [this.#toolPiece(message, at)];
      case "other":
        return fieldOf(message, "content") === undefined ? [] : [this.#notePiece(message)];
      default:
        return [];
    }
  }

  #isJudged(message: Fields, call: number): boolean {
    return this.#options.isJudged?.(message as unknown as BaseMessage, call) ?? false;
  }

  #notePiece(message: Fields): Piece {
    const given = sourceTag(message);
    const source = nameOr(given, nameOr(fieldOf(message, "name"), nameOr(fieldOf(message, "role"))));
    return notePiece(source, () => messageText(message));
  }

  #toolPiece(message: Fields, at: number): Piece {
    const name = nameOr(fieldOf(message, "name"), "") || (this.#callNames()[at] ?? UNKNOWN);
    if (sourceTag(message) === OWN_TAG) return toolPiece(message, "auto_mode_feedback", name);
    if (fieldOf(message, "status") === "error") return toolPiece(message, "tool_error", name);
    return toolPiece(message, this.#delegation.has(name) ? "subagent_report" : "tool_result", name);
  }

  /** The call that each tool message answers, by the nearest earlier call with its id. */
  #callNames(): readonly (string | undefined)[] {
    if (this.#names !== undefined) return this.#names;
    const byId = new Map<unknown, string>();
    this.#names = this.#messages.map((item) => {
      const message = fieldsOf(item);
      if (message === undefined) return undefined;
      const kind = kindOfMessage(message);
      if (kind === "tool") return byId.get(fieldOf(message, "tool_call_id"));
      if (kind === "ai")
        for (const call of [...listOf(message, "tool_calls"), ...listOf(message, "invalid_tool_calls")])
          if (call["id"] !== undefined) byId.set(call["id"], nameOr(call["name"]));
      return undefined;
    });
    return this.#names;
  }
}

/**
 * Reads LangChain messages as the entries of a transcript. System messages have none. It never throws
 * on what stands in a message, and reads texts only where an entry is built.
 */
export function langchainSource(
  messages: readonly BaseMessage[],
  options: LangchainSourceOptions,
): TranscriptSource {
  return new LangchainSource(messages, options);
}

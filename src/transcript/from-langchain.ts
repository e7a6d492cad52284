import type { BaseMessage } from "@langchain/core/messages";
import type { TranscriptSource } from "./build.js";
import { nameOr } from "./calls.js";
import type { ContentEntry, EntryKind } from "./entries.js";
import { langchainPieces, type Surroundings } from "./langchain-pieces.js";
import { type Fields, fieldsOf } from "./media.js";
import { fieldOf, kindOfMessage, listOf, sourceTag } from "./message-fields.js";
import { approverPiece, type Piece, userPieces } from "./message-pieces.js";

/** What a person decided about a call of a message. */
export interface ApproverDecision {
  readonly messageId: string;
  readonly toolCallId: string;
  readonly text: string;
}

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
  /** What persons decided about earlier calls, oldest first. Each is an entry right behind its call. */
  readonly approverDecisions?: readonly ApproverDecision[];
}

class LangchainSource implements TranscriptSource, Surroundings {
  readonly length: number;
  readonly #messages: readonly unknown[];
  readonly #options: LangchainSourceOptions;
  readonly #earlier: readonly string[];
  readonly own: "user" | "delegator";
  readonly delegation: ReadonlySet<string>;
  readonly approverAt = new Set<number>();
  readonly #decisions = new Map<string, ApproverDecision[]>();
  /** Decisions about calls whose message is gone. */
  #unplaced: readonly ApproverDecision[] = [];
  /** The message that they are shown with. */
  #unplacedAt = 0;

  constructor(messages: readonly BaseMessage[], options: LangchainSourceOptions) {
    this.#messages = messages;
    this.#options = options;
    this.#earlier = options.earlierWords ?? [];
    this.length = this.#earlier.length + messages.length;
    this.own = options.author === "agent" ? "delegator" : "user";
    this.delegation = new Set(options.delegationTools);
    if (options.approverDecisions?.length) this.#placeDecisions(options.approverDecisions);
  }

  #placeDecisions(decisions: readonly ApproverDecision[]): void {
    for (const decision of decisions) {
      const known = this.#decisions.get(decision.messageId);
      if (known) known.push(decision);
      else this.#decisions.set(decision.messageId, [decision]);
    }
    const unplaced = new Set(this.#decisions.keys());
    for (const [at, given] of this.#messages.entries()) {
      const message = fieldsOf(given);
      const id = message && fieldOf(message, "id");
      if (!unplaced.has(id as string) || message === undefined || kindOfMessage(message) !== "ai") continue;
      unplaced.delete(id as string);
      this.approverAt.add(this.#earlier.length + at);
    }
    this.#unplaced = decisions.filter(({ messageId }) => unplaced.has(messageId));
    if (this.#unplaced.length === 0) return;
    // With the opening user message, or else before the rest.
    for (let at = 0; at < this.length; at += 1)
      if (this.isUserAt(at)) {
        this.#unplacedAt = at;
        break;
      }
    this.approverAt.add(this.#unplacedAt);
  }

  isUserAt(index: number): boolean {
    if (index < this.#earlier.length) return true;
    const message = fieldsOf(this.#messages[index - this.#earlier.length]);
    // Most messages are none of the user's, and an id is looked up faster than a type.
    return message !== undefined && this.isUsers(message) && kindOfMessage(message) === "human";
  }

  entriesAt(index: number, kinds: ReadonlySet<EntryKind>): readonly ContentEntry[] {
    return this.#piecesAt(index)
      .filter(({ from }) => kinds.has(from))
      .map((piece) => piece.build());
  }

  #piecesAt(index: number): readonly Piece[] {
    const pieces = this.#ownPiecesAt(index);
    if (this.#unplaced.length === 0 || index !== this.#unplacedAt) return pieces;
    const unplaced = this.#unplaced.map(({ text }) => approverPiece(text));
    return this.isUserAt(index) ? [...pieces, ...unplaced] : [...unplaced, ...pieces];
  }

  #ownPiecesAt(index: number): readonly Piece[] {
    const words = this.#earlier[index];
    if (words !== undefined) return userPieces({ content: words }, this.own);
    const at = index - this.#earlier.length;
    const message = fieldsOf(this.#messages[at]);
    return message === undefined ? [] : langchainPieces(message, at, this);
  }

  isUsers(message: Fields): boolean {
    return this.#options.isUser(message as unknown as BaseMessage) && sourceTag(message) === undefined;
  }

  isJudged(message: Fields, call: number): boolean {
    return this.#options.isJudged?.(message as unknown as BaseMessage, call) ?? false;
  }

  decisionsOn(message: Fields): readonly ApproverDecision[] {
    if (this.#decisions.size === 0) return [];
    return this.#decisions.get(fieldOf(message, "id") as string) ?? [];
  }

  answeredName(at: number): string | undefined {
    const answer = fieldsOf(this.#messages[at]);
    const id = answer && fieldOf(answer, "tool_call_id");
    if (id === undefined) return undefined;
    for (let earlier = at - 1; earlier >= 0; earlier -= 1) {
      const message = fieldsOf(this.#messages[earlier]);
      if (message === undefined || kindOfMessage(message) !== "ai") continue;
      const calls = [...listOf(message, "tool_calls"), ...listOf(message, "invalid_tool_calls")];
      const call = calls.findLast((candidate) => candidate["id"] === id);
      if (call) return nameOr(call["name"]);
    }
    return undefined;
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

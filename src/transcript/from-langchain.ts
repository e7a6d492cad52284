import type { BaseMessage } from "@langchain/core/messages";
import type { TranscriptSource } from "./transcript-source.js";
import { CallNames } from "./call-names.js";
import { bitsOf, type ContentEntry, type EntryKind } from "./channels.js";
import { classOfResult, isOurs, langchainPieces, noteSource, type Surroundings } from "./langchain-pieces.js";
import { type Fields, fieldsOf } from "./media.js";
import { fieldOf, kindOfMessage, sourceTag } from "./message-fields.js";
import { type Piece, userPieces } from "./message-pieces.js";
import type { PositionMap } from "./position-map.js";
import type { SeenHistory } from "./seen-history.js";

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
  /**
   * What is known of the thread from earlier views, up to date with these messages. It saves work and
   * changes nothing. The calls being judged are then of the last agent message.
   */
  readonly seen?: SeenHistory;
}

const USERS = bitsOf(["user", "delegator"]);

/** The fields that the entries of a message are made of. `undefined` if one cannot be read. */
function partsOf(message: Fields): unknown[] | undefined {
  try {
    const kwargs = fieldsOf(message["additional_kwargs"]);
    return [
      message["content"],
      message["tool_calls"],
      message["invalid_tool_calls"],
      kwargs?.["reasoning"],
      kwargs?.["reasoning_content"],
      kwargs?.["refusal"],
      kwargs?.["tool_outputs"],
      fieldsOf(message["response_metadata"])?.["stop_reason"],
    ];
  } catch {
    return undefined;
  }
}

class LangchainSource implements TranscriptSource, Surroundings {
  readonly length: number;
  readonly map: PositionMap | undefined;
  readonly #messages: readonly unknown[];
  readonly #options: LangchainSourceOptions;
  readonly #earlier: readonly string[];
  readonly own: "user" | "delegator";
  readonly delegation: ReadonlySet<string>;
  #names: CallNames | undefined;

  constructor(messages: readonly BaseMessage[], options: LangchainSourceOptions) {
    this.#messages = messages;
    this.#options = options;
    this.#earlier = options.earlierWords ?? [];
    this.length = this.#earlier.length + messages.length;
    this.map = options.seen && mapOf(options.seen, this.#earlier.length);
    this.own = options.author === "agent" ? "delegator" : "user";
    this.delegation = new Set(options.delegationTools);
  }

  isUserAt(index: number): boolean {
    if (index < this.#earlier.length) return true;
    const message = fieldsOf(this.#messages[index - this.#earlier.length]);
    return message !== undefined && kindOfMessage(message) === "human" && this.isUsers(message);
  }

  hasEntriesAt(index: number, kinds: ReadonlySet<EntryKind>): boolean {
    return this.#piecesAt(index).some(({ from }) => kinds.has(from));
  }

  entriesAt(index: number): readonly ContentEntry[] {
    const build = () => this.#piecesAt(index).map((piece) => piece.build());
    const recent = this.#options.seen?.recent;
    if (recent === undefined) return build();
    const { own } = this;
    const words = this.#earlier[index];
    if (words !== undefined) return recent.recall(words, own, [], build);
    const at = index - this.#earlier.length;
    const message = fieldsOf(this.#messages[at]);
    const variant = message && this.#variantOf(message, at);
    const parts = message && partsOf(message);
    return variant === undefined || parts === undefined
      ? build()
      : recent.recall(message, variant, parts, build);
  }

  /** What the entries depend on beside the parts of the message. `undefined` for what is not to be remembered. */
  #variantOf(message: Fields, at: number): string | undefined {
    const kind = kindOfMessage(message);
    switch (kind) {
      case "human":
        return this.isUsers(message) ? `user ${this.own}` : `note ${noteSource(message)}`;
      case "tool": {
        const { from, name } = classOfResult(message, at, this);
        return `${from} ${name}`;
      }
      case "ai": {
        // The calls that are judged are in the view once they are history.
        const calls = fieldOf(message, "tool_calls");
        const count = Array.isArray(calls) ? calls.length : 0;
        for (let call = 0; call < count; call += 1) if (this.isJudged(message, call)) return undefined;
        return isOurs(message) ? "ours" : "agent";
      }
      default:
        return undefined;
    }
  }

  #piecesAt(index: number): readonly Piece[] {
    const words = this.#earlier[index];
    if (words !== undefined) return userPieces({ content: words }, this.own);
    const at = index - this.#earlier.length;
    const message = fieldsOf(this.#messages[at]);
    return message === undefined ? [] : langchainPieces(message, at, this);
  }

  isUsers(message: Fields): boolean {
    return sourceTag(message) === undefined && this.#options.isUser(message as unknown as BaseMessage);
  }

  isJudged(message: Fields, call: number): boolean {
    return this.#options.isJudged?.(message as unknown as BaseMessage, call) ?? false;
  }

  answeredName(at: number): string | undefined {
    const { seen } = this.#options;
    if (seen) return seen.answeredName(this.#messages, at);
    this.#names ??= new CallNames();
    return this.#names.nameAt(this.#messages, at);
  }
}

/** The map of the settled messages, moved by the earlier words that stand before them. */
function mapOf(seen: SeenHistory, moved: number): PositionMap {
  return {
    settled: moved + seen.settled,
    previous: (before, kinds) =>
      before > moved + seen.settled || before <= moved
        ? before - 1
        : moved + seen.previous(before - moved, kinds),
    next: (from, kinds) => (from < moved ? from : moved + seen.next(from - moved, kinds)),
    count: (kinds) => seen.count(kinds) + (kinds & USERS ? moved : 0),
  };
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

import type { BaseMessage } from "@langchain/core/messages";
import { CallNames } from "./call-names.js";
import { type KindBits, bitsOf } from "./channels.js";
import { langchainPieces } from "./langchain-pieces.js";
import { fieldsOf } from "./media.js";
import { kindOfMessage } from "./message-fields.js";
import { RecentEntries } from "./recent-entries.js";

/** Whose words a human message is depends on more than the message; it may be any of these. */
export const HUMAN: KindBits = bitsOf(["user", "delegator", "context_note"]);

/** What is being worked on may still be changed in place: so many messages are looked at for each view. */
const UNSETTLED = 16;

/**
 * What one middleware knows of one thread's messages from the views before, so that a view of a long
 * history costs what is new in it.
 *
 * A list of messages is compared with the one seen before, object by object: what was replaced, removed or
 * added is read from there on. What an old object is (its type, its tag, whether it has calls) is taken as
 * it was when the history had gone on by 16 messages; what it says is compared whenever it is shown.
 */
export class SeenHistory {
  readonly recent = new RecentEntries();
  readonly #delegation: ReadonlySet<string>;
  readonly #messages: unknown[] = [];
  readonly #kinds: KindBits[] = [];
  /** How many messages have each set of kinds. There are few sets, and many messages. */
  readonly #counts = new Map<KindBits, number>();
  #names = new CallNames();

  constructor(delegationTools: readonly string[]) {
    this.#delegation = new Set(delegationTools);
  }

  /** How many messages are settled. Those after them are not known here. */
  get settled(): number {
    return this.#kinds.length;
  }

  /** Brings this up to date with the thread's messages. The last proposal and what follows it never settle. */
  see(messages: readonly BaseMessage[]): void {
    this.recent.begin();
    const proposal = messages.findLastIndex((message) => kindOfMessage(fieldsOf(message) ?? {}) === "ai");
    const end = Math.max(0, Math.min(proposal, messages.length - UNSETTLED));
    this.#forgetFrom(this.#commonLength(messages, end));
    for (let at = this.#kinds.length; at < end; at += 1) {
      const kinds = this.#kindsAt(messages, at);
      this.#messages.push(messages[at]);
      this.#kinds.push(kinds);
      this.#counts.set(kinds, (this.#counts.get(kinds) ?? 0) + 1);
    }
  }

  /** The nearest settled message before one that may have an entry of these kinds; -1 for none. */
  previous(before: number, kinds: KindBits): number {
    let at = Math.min(before, this.#kinds.length) - 1;
    while (at >= 0 && ((this.#kinds[at] as KindBits) & kinds) === 0) at -= 1;
    return at;
  }

  /** The nearest settled message, from one on, that may have an entry of these kinds; `settled` for none. */
  next(from: number, kinds: KindBits): number {
    let at = from;
    while (at < this.#kinds.length && ((this.#kinds[at] as KindBits) & kinds) === 0) at += 1;
    return at;
  }

  /** How many settled messages have an entry of these kinds, which are those of whole channels. */
  count(kinds: KindBits): number {
    let count = 0;
    for (const [own, messages] of this.#counts) if ((own & kinds) !== 0) count += messages;
    return count;
  }

  answeredName(messages: readonly unknown[], at: number): string | undefined {
    return this.#names.nameAt(messages, at, this.#kinds.length);
  }

  #commonLength(messages: readonly BaseMessage[], end: number): number {
    const known = this.#messages;
    const length = Math.min(known.length, end);
    let at = 0;
    while (at < length && known[at] === messages[at]) at += 1;
    return at;
  }

  #forgetFrom(at: number): void {
    if (at === this.#kinds.length) return;
    for (const kinds of this.#kinds.slice(at))
      this.#counts.set(kinds, (this.#counts.get(kinds) as number) - 1);
    this.#messages.length = at;
    this.#kinds.length = at;
    this.#names = new CallNames();
  }

  #kindsAt(messages: readonly unknown[], at: number): KindBits {
    const message = fieldsOf(messages[at]);
    if (message === undefined) return 0;
    if (kindOfMessage(message) === "human") return HUMAN;
    const pieces = langchainPieces(message, at, {
      own: "user",
      delegation: this.#delegation,
      isUsers: () => false,
      isJudged: () => false,
      answeredName: (place) => this.answeredName(messages, place),
    });
    return bitsOf(pieces.map(({ from }) => from));
  }
}

/** Holds what is known of each thread, as long as the first message of the thread lives. */
export class SeenHistories {
  readonly #byFirst = new WeakMap<object, SeenHistory>();
  readonly #delegationTools: readonly string[];

  constructor(delegationTools: readonly string[]) {
    this.#delegationTools = delegationTools;
  }

  /** What is known of the thread with these messages, brought up to date. */
  of(messages: readonly BaseMessage[]): SeenHistory {
    const [first] = messages;
    // Threads may share a message object. Then they take turns here: slower, and still right.
    const seen = (first && this.#byFirst.get(first)) ?? new SeenHistory(this.#delegationTools);
    if (first) this.#byFirst.set(first, seen);
    seen.see(messages);
    return seen;
  }
}

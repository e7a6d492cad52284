import { type ContentEntry, type Entry, type EntryKind, kindsIn } from "./channels.js";
import { costOf, type EntryLimits, showEntry } from "./show-entry.js";
import type { MonitorView } from "./view.js";

/**
 * A conversation as a list of messages that become entries on demand. An index is a message, oldest
 * first. Entries are raw: showing and cutting is the view's work.
 */
export interface TranscriptSource {
  /** How many messages there are, those without entries included. */
  readonly length: number;
  /** The entries of one message, in order. Called for the messages that the view reaches. */
  entriesAt(index: number): readonly ContentEntry[];
  /** Whether a message holds the user's own words (or the delegator's). A cheap check: called for all. */
  isUserAt(index: number): boolean;
  /**
   * Whether a message has an entry of one of the kinds: the same answer as `entriesAt` gives, found
   * without building texts. Called for all messages that are not shown, to count what was left out.
   * Without it they are built for that.
   */
  hasEntriesAt?(index: number, kinds: ReadonlySet<EntryKind>): boolean;
}

/** With less room than this a cut entry says too little. */
const SHORTEST_ENTRY = 80;

/** Words that may authorise, or that stand in their place in a subagent. */
const USERS: ReadonlySet<EntryKind> = new Set<EntryKind>(["user", "delegator"]);

function isResult(entry: ContentEntry): boolean {
  return entry.from === "tool_result" || entry.from === "server_tool_result";
}

class TranscriptBuilder {
  readonly #source: TranscriptSource;
  readonly #view: MonitorView;
  /** The kinds of entry in the open channels; and those of them that are not the user's words. */
  readonly #open: ReadonlySet<EntryKind>;
  readonly #others: ReadonlySet<EntryKind>;
  readonly #shown = new Map<number, Map<number, ContentEntry>>();
  #room: number;

  constructor(source: TranscriptSource, view: MonitorView) {
    this.#source = source;
    this.#view = view;
    this.#open = kindsIn(view.channels);
    this.#others = new Set([...this.#open].filter((kind) => !USERS.has(kind)));
    // The brackets, and the entry that counts what was left out, whether it will be needed or not.
    this.#room = view.maxChars - 2 - costOf({ from: "omitted", count: source.length });
  }

  build(): Entry[] {
    const opening = this.#findOpening();
    const noUser = opening === undefined || !this.#source.entriesAt(opening).some((e) => e.from === "user");
    if (noUser) this.#room -= costOf({ from: "no_user_message" });
    if (opening !== undefined && this.#open.has("user")) {
      this.#takeOpening(opening);
      this.#takeLaterUserMessages(opening);
    }
    this.#takeOthers();
    return this.#assemble(noUser);
  }

  #findOpening(): number | undefined {
    for (let index = 0; index < this.#source.length; index += 1)
      if (this.#source.isUserAt(index)) return index;
    return undefined;
  }

  /** Whole while it fits half of the budget, else its end. */
  #takeOpening(index: number): void {
    const half = Math.floor(this.#view.maxChars / 2);
    const reserved = this.#room - Math.min(half, this.#room);
    for (const [order, entry] of this.#newestFirst(index)) {
      if (!USERS.has(entry.from)) continue;
      const limits = { max: half, maxJson: this.#room - reserved, side: "start" } as const;
      if (!this.#take(index, order, entry, limits)) return;
    }
  }

  #takeLaterUserMessages(opening: number): void {
    for (let index = this.#source.length - 1; index > opening; index -= 1) {
      if (!this.#source.isUserAt(index)) continue;
      for (const [order, entry] of this.#newestFirst(index)) {
        if (!USERS.has(entry.from)) continue;
        const limits = { max: this.#view.maxCharsPerEntry, maxJson: this.#room, side: "middle" } as const;
        if (!this.#take(index, order, entry, limits)) return;
      }
    }
  }

  #takeOthers(): void {
    let left = this.#view.mostRecent;
    for (let index = this.#source.length - 1; index >= 0 && left > 0; index -= 1) {
      if (!this.#hasEntries(index, this.#others)) continue;
      for (const [order, entry] of this.#newestFirst(index)) {
        if (left === 0 || !this.#others.has(entry.from)) continue;
        if (!this.#take(index, order, entry, { max: this.#maxFor(entry), maxJson: this.#room })) return;
        left -= 1;
      }
    }
  }

  #maxFor(entry: ContentEntry): number {
    const { maxCharsPerEntry, maxCharsPerToolResult } = this.#view;
    return isResult(entry) ? Math.min(maxCharsPerEntry, maxCharsPerToolResult) : maxCharsPerEntry;
  }

  /** Puts an entry in its place, cut to the room that is left. False if that is too little. */
  #take(index: number, order: number, entry: ContentEntry, limits: EntryLimits): boolean {
    let shown = showEntry(entry, { ...limits, maxJson: Number.POSITIVE_INFINITY });
    if (costOf(shown) > limits.maxJson) {
      if (limits.maxJson < SHORTEST_ENTRY) return false;
      shown = showEntry(entry, { ...limits, maxJson: limits.maxJson - 1 });
      if (costOf(shown) > limits.maxJson) return false;
    }
    this.#room -= costOf(shown);
    const entries = this.#shown.get(index) ?? new Map<number, ContentEntry>();
    this.#shown.set(index, entries.set(order, shown));
    return true;
  }

  #newestFirst(index: number): (readonly [order: number, entry: ContentEntry])[] {
    return [...this.#source.entriesAt(index).entries()].toReversed();
  }

  #hasEntries(index: number, kinds: ReadonlySet<EntryKind>): boolean {
    const source = this.#source;
    return source.hasEntriesAt === undefined
      ? source.entriesAt(index).some(({ from }) => kinds.has(from))
      : source.hasEntriesAt(index, kinds);
  }

  #assemble(noUser: boolean): Entry[] {
    const entries: Entry[] = noUser ? [{ from: "no_user_message" }] : [];
    let count = 0;
    let firstGap = 0;
    for (let index = 0; index < this.#source.length; index += 1) {
      const shown = this.#shown.get(index);
      if (shown !== undefined) {
        const inOrder = [...shown].toSorted(([a], [b]) => a - b);
        entries.push(...inOrder.map(([, entry]) => entry));
      } else if (this.#hasEntries(index, this.#open)) {
        if (count === 0) firstGap = entries.length;
        count += 1;
      }
    }
    return count === 0 ? entries : entries.toSpliced(firstGap, 0, { from: "omitted", count });
  }
}

/**
 * Chooses, shows and cuts the entries that a classifier reads.
 *
 * 1. The opening user message: whole while it fits half of `maxChars`, else its end.
 * 2. The later user messages, newest first, long ones cut in the middle to `maxCharsPerEntry`.
 * 3. Every other entry of the open channels, newest first, at most `mostRecent`, cut at the end.
 *
 * An entry for which little room is left is cut to it; each of the last two steps ends at the first
 * entry that finds no room, so that nothing older is shown in place of something newer. Entries come
 * back in the conversation's order. `no_user_message` stands first if no message is the user's own.
 * `omitted` counts the messages that have entries in an open channel of which none is shown; it stands
 * where the first of them is missing, and only if there is one.
 *
 * The JSON of the result is never longer than `maxChars` (the two markers apart, where `maxChars` is
 * smaller than they are). Building costs what the view shows; the whole history is only scanned with
 * `isUserAt` and `hasEntriesAt`.
 */
export function buildTranscript(source: TranscriptSource, view: MonitorView): Entry[] {
  return new TranscriptBuilder(source, view).build();
}

import { type ContentEntry, type Entry, type EntryKind, kindsIn } from "./channels.js";
import { costOf, type EntryLimits, showEntry } from "./show-entry.js";
import type { TranscriptSource } from "./transcript-source.js";
import type { MonitorView } from "./view.js";

/** With less room than this a cut entry says too little. */
const SHORTEST_ENTRY = 80;

/** Words that may authorize, or what takes their place in a subagent. */
const USERS: ReadonlySet<EntryKind> = new Set<EntryKind>(["user", "delegator"]);

function isResult(entry: ContentEntry): boolean {
  return entry.from === "tool_result" || entry.from === "server_tool_result";
}

interface Taken {
  readonly at: number;
  /** Place among the entries of the message. */
  readonly order: number;
  readonly entry: ContentEntry;
}

class TranscriptBuilder {
  readonly #source: TranscriptSource;
  readonly #view: MonitorView;
  /** The kinds of entry in the open channels. */
  readonly #open: ReadonlySet<EntryKind>;
  readonly #taken: Taken[] = [];
  /** User messages that found no room, oldest last. */
  readonly #lost: number[] = [];
  #room: number;

  constructor(source: TranscriptSource, view: MonitorView) {
    this.#source = source;
    this.#view = view;
    this.#open = kindsIn(view.channels);
    // The brackets, and the entry that counts what was left out, whether it will be needed or not.
    this.#room = view.maxChars - 2 - costOf({ from: "omitted", count: source.length });
  }

  build(): Entry[] {
    const opening = this.#findOpening();
    const noUser =
      opening === undefined || !this.#source.entriesAt(opening, USERS).some(({ from }) => from === "user");
    if (noUser) this.#room -= costOf({ from: "no_user_message" });
    if (opening !== undefined && this.#open.has("user")) {
      this.#takeOpening(opening);
      this.#takeLaterUserMessages(opening);
    }
    const start = this.#takeOthers();
    return this.#assemble(noUser, start);
  }

  #findOpening(): number | undefined {
    for (let at = 0; at < this.#source.length; at += 1) if (this.#source.isUserAt(at)) return at;
    return undefined;
  }

  /** Whole while it fits half of the budget, else its end. */
  #takeOpening(index: number): void {
    const half = Math.floor(this.#view.maxChars / 2);
    const reserved = this.#room - Math.min(half, this.#room);
    const entries = this.#entriesAt(index);
    for (let order = entries.length - 1; order >= 0; order -= 1) {
      const entry = entries[order] as ContentEntry;
      if (!USERS.has(entry.from)) continue;
      const limits = { max: half, maxJson: this.#room - reserved, side: "start" } as const;
      if (this.#take(index, order, entry, limits)) continue;
      if (this.#taken.length === 0) this.#lost.push(index);
      return;
    }
  }

  #takeLaterUserMessages(opening: number): void {
    let isFull = false;
    for (let at = this.#source.length - 1; at > opening; at -= 1) {
      if (!this.#source.isUserAt(at)) continue;
      isFull ||= !this.#takeLaterUserMessage(at);
      if (isFull && !this.#taken.some((taken) => taken.at === at)) this.#lost.push(at);
    }
  }

  #takeLaterUserMessage(index: number): boolean {
    const entries = this.#entriesAt(index);
    for (let order = entries.length - 1; order >= 0; order -= 1) {
      const entry = entries[order] as ContentEntry;
      if (!USERS.has(entry.from)) continue;
      const limits = { max: this.#view.maxCharsPerEntry, maxJson: this.#room, side: "middle" } as const;
      if (!this.#take(index, order, entry, limits)) return false;
    }
    return true;
  }

  /**
   * Takes the newest of the other entries. Gives where they begin: of the messages before, those that are
   * shown are the user's.
   */
  #takeOthers(): number {
    let left = this.#view.mostRecent;
    for (let at = this.#source.length - 1; at >= 0; at -= 1) {
      // Nothing more finds room, so what else there is need not be read.
      if (this.#room < SHORTEST_ENTRY) return at + 1;
      const entries = this.#entriesAt(at);
      for (let order = entries.length - 1; order >= 0; order -= 1) {
        const entry = entries[order] as ContentEntry;
        if (USERS.has(entry.from)) continue;
        const limits = { max: this.#maxFor(entry), maxJson: this.#room };
        if (left === 0 || !this.#take(at, order, entry, limits))
          return this.#taken.at(-1)?.at === at ? at : at + 1;
        left -= 1;
      }
    }
    return 0;
  }

  #maxFor(entry: ContentEntry): number {
    const { maxCharsPerEntry, maxCharsPerToolResult } = this.#view;
    return isResult(entry) ? Math.min(maxCharsPerEntry, maxCharsPerToolResult) : maxCharsPerEntry;
  }

  #entriesAt(index: number): ContentEntry[] {
    return this.#source.entriesAt(index, this.#open).filter(({ from }) => this.#open.has(from));
  }

  /** Puts an entry in its place, cut to the room that is left. False if that is too little. */
  #take(index: number, order: number, entry: ContentEntry, limits: EntryLimits): boolean {
    let shown = showEntry(entry, { ...limits, maxJson: Number.POSITIVE_INFINITY });
    let cost = costOf(shown);
    if (cost > limits.maxJson) {
      if (limits.maxJson < SHORTEST_ENTRY) return false;
      shown = showEntry(entry, { ...limits, maxJson: limits.maxJson - 1 });
      cost = costOf(shown);
      if (cost > limits.maxJson) return false;
    }
    this.#room -= cost;
    this.#taken.push({ at: index, order, entry: shown });
    return true;
  }

  #assemble(noUser: boolean, start: number): Entry[] {
    const taken = this.#taken.toSorted((a, b) => a.at - b.at || a.order - b.order);
    const entries: Entry[] = taken.map(({ entry }) => entry);
    const { count, first } = this.#countMissing(start);
    if (count > 0) {
      const gap = taken.findIndex(({ at }) => at > first);
      entries.splice(gap < 0 ? taken.length : gap, 0, { from: "omitted", count });
    }
    return noUser ? [{ from: "no_user_message" }, ...entries] : entries;
  }

  /** How many messages are left out, and which is the first of them. */
  #countMissing(start: number): { count: number; first: number } {
    const shown = new Set(this.#taken.map(({ at }) => at).filter((at) => at < start));
    const later = this.#lost.filter((at) => at >= start).toSorted((a, b) => b - a);
    let first = 0;
    while (shown.has(first)) first += 1;
    return {
      count: start - shown.size + later.length,
      first: first < start ? first : (later.at(-1) ?? first),
    };
  }
}

/**
 * Chooses, escapes and cuts the entries that a classifier reads.
 *
 * 1. The opening user message: whole while it fits half of `maxChars`, else its end.
 * 2. The later user messages, newest first, long ones cut in the middle to `maxCharsPerEntry`.
 * 3. Every other entry of the open channels, newest first, at most `mostRecent`, cut at the end.
 *
 * An entry for which little room is left is cut to it; each of the last two steps ends at the first
 * entry that finds no room, so that nothing older is shown in place of something newer. Entries come
 * back in the conversation's order. `no_user_message` comes first if no message is the user's own.
 * `omitted` counts the messages before the oldest of the other entries of which nothing is shown, at the
 * place of the first of them, and only if there is one.
 *
 * The JSON of the result is never longer than `maxChars` (the two markers apart, where `maxChars` is
 * smaller than they are). Building costs what the view shows; of the rest of the history only the user's
 * messages are looked for, with `isUserAt`.
 */
export function buildTranscript(source: TranscriptSource, view: MonitorView): Entry[] {
  return new TranscriptBuilder(source, view).build();
}

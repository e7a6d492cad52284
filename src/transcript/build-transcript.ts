import { bitsOf, type ContentEntry, type Entry, type EntryKind, type KindBits, kindsIn } from "./channels.js";
import { copyShown, costOf, type EntryLimits, showEntry, showWhole } from "./show-entry.js";
import { NO_MAP, type PositionMap } from "./position-map.js";
import type { TranscriptSource } from "./transcript-source.js";
import type { MonitorView } from "./view.js";

/** With less room than this a cut entry says too little. */
const SHORTEST_ENTRY = 80;

/** Words that may authorise, or that stand in their place in a subagent. */
const USERS: ReadonlySet<EntryKind> = new Set<EntryKind>(["user", "delegator"]);

const USER_BITS = bitsOf(USERS);

function isResult(entry: ContentEntry): boolean {
  return entry.from === "tool_result" || entry.from === "server_tool_result";
}

/** The kinds of entry in a view's open channels; and those of them that are not the user's words. */
class OpenKinds {
  readonly all: ReadonlySet<EntryKind>;
  readonly allBits: KindBits;
  readonly others: ReadonlySet<EntryKind>;
  readonly othersBits: KindBits;

  constructor(view: MonitorView) {
    this.all = kindsIn(view.channels);
    this.allBits = bitsOf(this.all);
    this.others = new Set([...this.all].filter((kind) => !USERS.has(kind)));
    this.othersBits = bitsOf(this.others);
  }
}

// A middleware has one view for all of its transcripts.
const openIn = new WeakMap<MonitorView, OpenKinds>();

interface Taken {
  readonly at: number;
  /** Place among the entries of the message. */
  readonly order: number;
  readonly entry: ContentEntry;
}

class TranscriptBuilder {
  readonly #source: TranscriptSource;
  readonly #map: PositionMap;
  readonly #view: MonitorView;
  readonly #open: OpenKinds;
  readonly #taken: Taken[] = [];
  /** The messages of which something is shown. */
  readonly #shown = new Set<number>();
  #room: number;

  constructor(source: TranscriptSource, view: MonitorView) {
    this.#source = source;
    this.#map = source.map ?? NO_MAP;
    this.#view = view;
    this.#open = openIn.get(view) ?? new OpenKinds(view);
    openIn.set(view, this.#open);
    // The brackets, and the entry that counts what was left out, whether it will be needed or not.
    this.#room = view.maxChars - 2 - costOf({ from: "omitted", count: source.length });
  }

  build(): Entry[] {
    const opening = this.#findOpening();
    const noUser = opening === undefined || !this.#source.entriesAt(opening).some((e) => e.from === "user");
    if (noUser) this.#room -= costOf({ from: "no_user_message" });
    if (opening !== undefined && this.#open.all.has("user")) {
      this.#takeOpening(opening);
      this.#takeLaterUserMessages(opening);
    }
    this.#takeOthers();
    return this.#assemble(noUser);
  }

  #findOpening(): number | undefined {
    const { length } = this.#source;
    for (let at = this.#map.next(0, USER_BITS); at < length; at = this.#map.next(at + 1, USER_BITS))
      if (this.#source.isUserAt(at)) return at;
    return undefined;
  }

  /** Whole while it fits half of the budget, else its end. */
  #takeOpening(index: number): void {
    const half = Math.floor(this.#view.maxChars / 2);
    const reserved = this.#room - Math.min(half, this.#room);
    const entries = this.#source.entriesAt(index);
    for (let order = entries.length - 1; order >= 0; order -= 1) {
      const entry = entries[order] as ContentEntry;
      if (!USERS.has(entry.from)) continue;
      const limits = { max: half, maxJson: this.#room - reserved, side: "start" } as const;
      if (!this.#take(index, order, entry, limits)) return;
    }
  }

  #takeLaterUserMessages(opening: number): void {
    const { previous } = this.#map;
    const { length } = this.#source;
    for (let at = previous(length, USER_BITS); at > opening; at = previous(at, USER_BITS)) {
      if (!this.#source.isUserAt(at)) continue;
      const entries = this.#source.entriesAt(at);
      for (let order = entries.length - 1; order >= 0; order -= 1) {
        const entry = entries[order] as ContentEntry;
        if (!USERS.has(entry.from)) continue;
        const limits = { max: this.#view.maxCharsPerEntry, maxJson: this.#room, side: "middle" } as const;
        if (!this.#take(at, order, entry, limits)) return;
      }
    }
  }

  #takeOthers(): void {
    const { previous, settled } = this.#map;
    const { others, othersBits } = this.#open;
    let left = this.#view.mostRecent;
    for (
      let at = previous(this.#source.length, othersBits);
      at >= 0 && left > 0;
      at = previous(at, othersBits)
    ) {
      // What the map knows is only read; for the others it is cheaper to ask first.
      if (at >= settled && !this.#hasEntries(at, others)) continue;
      const entries = this.#source.entriesAt(at);
      for (let order = entries.length - 1; order >= 0 && left > 0; order -= 1) {
        const entry = entries[order] as ContentEntry;
        if (!others.has(entry.from)) continue;
        if (!this.#take(at, order, entry, { max: this.#maxFor(entry), maxJson: this.#room })) return;
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
    let { shown, cost } = showWhole(entry, limits);
    if (cost > limits.maxJson) {
      if (limits.maxJson < SHORTEST_ENTRY) return false;
      shown = showEntry(entry, { ...limits, maxJson: limits.maxJson - 1 });
      cost = costOf(shown);
      if (cost > limits.maxJson) return false;
    }
    this.#room -= cost;
    // A copy, since a classifier may change what it is given, and what was shown may be shown again.
    this.#taken.push({ at: index, order, entry: copyShown(shown) });
    this.#shown.add(index);
    return true;
  }

  #hasEntries(index: number, kinds: ReadonlySet<EntryKind>): boolean {
    const source = this.#source;
    return source.hasEntriesAt === undefined
      ? source.entriesAt(index).some(({ from }) => kinds.has(from))
      : source.hasEntriesAt(index, kinds);
  }

  #assemble(noUser: boolean): Entry[] {
    const { count, first } = this.#countMissing();
    const taken = this.#taken.toSorted((a, b) => a.at - b.at || a.order - b.order);
    const entries: Entry[] = taken.map(({ entry }) => entry);
    if (count > 0) {
      const gap = taken.findIndex(({ at }) => at > first);
      entries.splice(gap < 0 ? taken.length : gap, 0, { from: "omitted", count });
    }
    return noUser ? [{ from: "no_user_message" }, ...entries] : entries;
  }

  /** How many messages with entries in an open channel are not shown, and where the first of them is. */
  #countMissing(): { count: number; first: number } {
    const { all, allBits } = this.#open;
    const { settled, next } = this.#map;
    const { length } = this.#source;
    let count = this.#map.count(allBits);
    for (const at of this.#shown) if (at < settled) count -= 1;
    let first = length;
    for (let at = next(0, allBits); at < settled && first === length; at = next(at + 1, allBits))
      if (!this.#shown.has(at)) first = at;
    for (let at = settled; at < length; at += 1) {
      if (this.#shown.has(at) || !this.#hasEntries(at, all)) continue;
      count += 1;
      first = Math.min(first, at);
    }
    return { count, first };
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
 * smaller than they are). Building costs what the view shows; the rest of the history is only scanned,
 * with `isUserAt` and `hasEntriesAt` where no map is at hand.
 */
export function buildTranscript(source: TranscriptSource, view: MonitorView): Entry[] {
  return new TranscriptBuilder(source, view).build();
}

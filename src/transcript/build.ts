import { type CutSide, cutShown, fitJson } from "./cut.js";
import { cutArgs } from "./cut-json.js";
import { type ContentEntry, type Entry, type EntryKind, kindsIn } from "./entries.js";
import type { MonitorView } from "./view.js";

/**
 * A conversation as a list of messages that become entries on demand. An index is a message, oldest
 * first. Entries are raw: escaping and cutting is the view's work.
 */
export interface TranscriptSource {
  /** How many messages there are, those without entries included. */
  readonly length: number;
  /**
   * The entries of one message, in order. Called for the messages that the view reaches. Entries of other
   * kinds than these are not read, so a source need not build them.
   */
  entriesAt(index: number, kinds: ReadonlySet<EntryKind>): readonly ContentEntry[];
  /** Whether a message holds the user's own words (or the delegator's). Called for every message: make it cheap. */
  isUserAt(index: number): boolean;
  /** The messages with entries of an approver. Default: none. */
  readonly approverAt?: ReadonlySet<number>;
}

/** Words that may authorize, or what takes their place in a subagent. */
const USERS: ReadonlySet<EntryKind> = new Set<EntryKind>(["user", "delegator"]);
/** Entries that outlive the window: a limit that a person set must not be forgotten. */
const PINNED: ReadonlySet<EntryKind> = new Set<EntryKind>([...USERS, "approver"]);
const APPROVER: ReadonlySet<EntryKind> = new Set<EntryKind>(["approver"]);

/** Enough for any name that a person gave; more is an attempt to fill the view. */
const MAX_NAME = 200;
/** With less room than this a cut entry says too little. */
const SHORTEST_ENTRY = 80;

/** How one entry is to be cut. Lengths are in UTF-16 units. */
interface EntryLimits {
  /** Of the text, or of the arguments as JSON. */
  readonly max: number;
  /** Of the whole entry as JSON. */
  readonly maxJson: number;
  /** Which part of a text gives way. */
  readonly side: CutSide;
}

/** The length that an entry adds to the JSON of a list. */
function costOf(entry: Entry): number {
  return JSON.stringify(entry).length + 1;
}

function showName(name: unknown): string {
  return cutShown(typeof name === "string" ? name : "unknown", MAX_NAME, "end");
}

/** The entry with an empty text or no arguments: the fields of its kind, and no others. */
function withoutContent(entry: ContentEntry): ContentEntry {
  switch (entry.from) {
    case "tool_call":
    case "server_tool_call":
      return { from: entry.from, name: showName(entry.name), args: "" };
    case "context_note":
      return { from: entry.from, source: showName(entry.source), text: "" };
    case "user":
    case "delegator":
    case "approver":
    case "auto_mode_feedback":
    case "agent":
    case "agent_reasoning":
      return { from: entry.from, text: "" };
    default:
      return { from: entry.from, name: showName(entry.name), text: "" };
  }
}

/**
 * Escapes a raw entry and cuts it to its limits. If what is fixed alone is longer than `maxJson`, so is
 * the result.
 */
function showEntry(entry: ContentEntry, { max, maxJson, side }: EntryLimits): ContentEntry {
  const shown = withoutContent(entry);
  // Most entries are asked for without a bound on the whole: then nothing needs to be measured.
  const room = maxJson === Infinity ? maxJson : Math.max(2, maxJson - (costOf(shown) - 3));
  if ("args" in shown)
    return { ...shown, args: cutArgs("args" in entry ? entry.args : undefined, Math.min(max, room)) };
  const text = "text" in entry && typeof entry.text === "string" ? entry.text : "";
  const shownText =
    room === Infinity ? cutShown(text, max, side) : fitJson((size) => cutShown(text, size, side), max, room);
  return { ...shown, text: shownText };
}

/** How large an entry is taken to be where pages are planned: a call or a result of ordinary length. */
const USUAL_ENTRY = 400;
/** A smaller window than this costs little to send, and would lose too much with a page. */
const SMALLEST_PAGED_WINDOW = 10;
/** The part of the window that one page may take away. */
const PAGE_SHARE = 0.8;

/** How many entries the window is taken to have room for. */
function windowSize({ mostRecent, maxChars }: MonitorView): number {
  return Math.min(mostRecent, maxChars / USUAL_ENTRY);
}

/**
 * How many messages one page has: four fifths of a window of one entry for each message. Larger pages keep
 * more of the prefix from step to step, and leave less to read right after a page went. With 30 entries and
 * two of them in each step (a call and its result), four fifths keep 85 % of the characters.
 */
function pageSize(view: MonitorView): number {
  const window = windowSize(view);
  return window < SMALLEST_PAGED_WINDOW ? 1 : Math.floor(PAGE_SHARE * window);
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
  /** The messages with entries that outlive the window, oldest first. */
  readonly #pinned: number[] = [];
  #room: number;

  constructor(source: TranscriptSource, view: MonitorView) {
    this.#source = source;
    this.#view = view;
    this.#open = kindsIn(view.channels);
    // The brackets, and the entry that counts what was left out, whether it will be needed or not.
    this.#room = view.maxChars - 2 - costOf({ from: "omitted", count: source.length });
  }

  build(): Entry[] {
    const opening = this.#findPinned();
    const noUser =
      opening === undefined || !this.#source.entriesAt(opening, USERS).some(({ from }) => from === "user");
    if (noUser) this.#room -= costOf({ from: "no_user_message" });
    if (this.#open.has("user")) this.#takePinned(opening);
    return this.#assemble(noUser, this.#takeOthers());
  }

  /** Finds the messages with pinned entries. Gives the opening user message. */
  #findPinned(): number | undefined {
    const { length, approverAt } = this.#source;
    let opening: number | undefined;
    for (let at = 0; at < length; at += 1) {
      const isUser = this.#source.isUserAt(at);
      if (isUser) opening ??= at;
      if (isUser || approverAt?.has(at)) this.#pinned.push(at);
    }
    return opening;
  }

  /** The opening words: whole while they fit half of the budget, else their end. Then the later ones, newest first. */
  #takePinned(opening: number | undefined): void {
    const half = Math.floor(this.#view.maxChars / 2);
    const reserved = this.#room - Math.min(half, this.#room);
    if (opening !== undefined) this.#takeFrom(opening, USERS, { max: half, reserved, side: "start" });
    const later = { max: this.#view.maxCharsPerEntry, reserved: 0, side: "middle" } as const;
    for (const at of this.#pinned.toReversed())
      if (!this.#takeFrom(at, at === opening ? APPROVER : PINNED, later)) return;
  }

  /** Takes a message's entries of these kinds, newest first. False if one found no room. */
  #takeFrom(
    at: number,
    kinds: ReadonlySet<EntryKind>,
    { max, side, reserved }: { max: number; side: CutSide; reserved: number },
  ): boolean {
    const entries = this.#entriesAt(at);
    for (const [order, entry] of [...entries.entries()].toReversed())
      if (
        kinds.has(entry.from) &&
        !this.#take(at, order, entry, { max, maxJson: this.#room - reserved, side })
      )
        return false;
    return true;
  }

  /** Puts an entry in its place, cut to the room that is left. False if that is too little. */
  #take(at: number, order: number, entry: ContentEntry, limits: EntryLimits): boolean {
    let shown = showEntry(entry, { ...limits, maxJson: Infinity });
    let cost = costOf(shown);
    if (cost > limits.maxJson) {
      if (limits.maxJson < SHORTEST_ENTRY) return false;
      shown = showEntry(entry, { ...limits, maxJson: limits.maxJson - 1 });
      cost = costOf(shown);
      if (cost > limits.maxJson) return false;
    }
    this.#room -= cost;
    this.#taken.push({ at, order, entry: shown });
    return true;
  }

  /**
   * Takes the other entries, from the end of the conversation back to the start of a page. Gives where they
   * begin: of the messages before, nothing but pinned entries is shown.
   */
  #takeOthers(): number {
    const fitting: Taken[] = [];
    let room = this.#room;
    for (let at = this.#source.length - 1; at >= 0; at -= 1) {
      // Nothing more finds room, so what else there is need not be read.
      if (room < SHORTEST_ENTRY) return this.#takePages(fitting, at + 1);
      const entries = [...this.#entriesAt(at).entries()].filter(([, { from }]) => !PINNED.has(from));
      if (entries.length === 0) continue;
      const left = this.#view.mostRecent - fitting.length;
      const shown = entries
        .slice(0, left)
        .map(([order, entry]) => ({ at, order, entry: showEntry(entry, this.#limitsOf(entry)) }));
      const cost = shown.reduce((sum, { entry }) => sum + costOf(entry), 0);
      if (entries.length > left || cost > room) {
        // A step of many calls is not left out whole where little else is shown.
        if (fitting.length >= windowSize(this.#view) * (1 - PAGE_SHARE))
          return this.#takePages(fitting, at + 1);
        this.#taken.push(...fitting);
        this.#room = room;
        return this.#takePart(at, entries, left);
      }
      room -= cost;
      fitting.push(...shown.toReversed());
    }
    this.#taken.push(...fitting);
    return 0;
  }

  /**
   * Of the entries that fit, newest first and from the messages from `oldest` on, takes those of whole pages.
   *
   * Pages begin at fixed places of the thread, at multiples of their size. So the window begins at the same
   * message over several steps, and a prompt is mostly the beginning of the next one. Where entries are so
   * large or so many that whole pages would leave too little, pages are half as large, and so on.
   */
  #takePages(fitting: readonly Taken[], oldest: number): number {
    const least = fitting[Math.ceil(fitting.length * (1 - PAGE_SHARE)) - 1]?.at ?? oldest;
    let size = pageSize(this.#view);
    while (Math.ceil(oldest / size) * size > least) size = Math.floor(size / 2);
    const start = Math.ceil(oldest / size) * size;
    this.#taken.push(...fitting.filter(({ at }) => at >= start));
    return start;
  }

  /** Takes the newest entries of a message that does not fit whole. */
  #takePart(at: number, entries: readonly (readonly [number, ContentEntry])[], left: number): number {
    for (const [taken, [order, entry]] of entries.toReversed().entries()) {
      const limits = { ...this.#limitsOf(entry), maxJson: this.#room };
      if (taken === left || !this.#take(at, order, entry, limits)) return taken > 0 ? at : at + 1;
    }
    return at;
  }

  #limitsOf(entry: ContentEntry): EntryLimits {
    const { maxCharsPerEntry, maxCharsPerToolResult } = this.#view;
    const isResult = entry.from === "tool_result" || entry.from === "server_tool_result";
    const max = isResult ? Math.min(maxCharsPerEntry, maxCharsPerToolResult) : maxCharsPerEntry;
    return { max, maxJson: Infinity, side: "end" };
  }

  #entriesAt(index: number): ContentEntry[] {
    return this.#source.entriesAt(index, this.#open).filter(({ from }) => this.#open.has(from));
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
    const shown = new Set(this.#taken.map(({ at }) => at));
    let first = 0;
    while (first < start && shown.has(first)) first += 1;
    const lost = this.#open.has("user") ? this.#pinned.filter((at) => at >= start && !shown.has(at)) : [];
    const shownBefore = [...shown].filter((at) => at < start).length;
    return { count: start - shownBefore + lost.length, first: first < start ? first : (lost[0] ?? start) };
  }
}

/**
 * Chooses, escapes and cuts the entries that a classifier reads.
 *
 * 1. The opening user message: whole while it fits half of `maxChars`, else its end.
 * 2. The later user messages and the approvers' decisions, newest first, long ones cut in the middle to
 *    `maxCharsPerEntry`. One for which little room is left is cut to it; the first that finds no room ends this.
 * 3. Every other entry of the open channels, cut at its end: the newest messages whose entries fit, at most
 *    `mostRecent`, from the beginning of a page on. Where they are fewer than a fifth of that, a part of the
 *    message before them is shown as well.
 *
 * Entries come back in the conversation's order. `no_user_message` comes first if no message is the user's
 * own. `omitted` counts the messages before the first page of which nothing is shown, and the user's messages
 * that found no room. It takes the place of the first of them. So it changes only when the page does.
 *
 * The JSON of the result is never longer than `maxChars` (the two markers apart, where `maxChars` is
 * smaller than they are). Building costs what the view shows; of the rest of the history only the user's
 * messages are looked for, with `isUserAt`.
 */
export function buildTranscript(source: TranscriptSource, view: MonitorView): Entry[] {
  return new TranscriptBuilder(source, view).build();
}

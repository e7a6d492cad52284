import type { JsonValue } from "@langchain/core/decisions";
import type { JsonObject } from "../json.js";
import { escapeInvisible } from "./escape-text.js";
import { toJson } from "./json.js";

/** Which end of a text gives way. */
export type CutSide = "end" | "start" | "middle";

const MARKERS: Readonly<Record<CutSide, (count: number) => string>> = {
  end: (count) => `…[${count} characters left out]`,
  start: (count) => `[${count} characters left out]…`,
  middle: (count) => `…[${count} characters left out]…`,
};

/** How much of what is kept is kept at the beginning. */
const HEAD_SHARE: Readonly<Record<CutSide, number>> = { end: 1, start: 0, middle: 0.5 };

/** Cuts between characters: a pair that the index would split is left out on both sides. */
function head(text: string, length: number): string {
  return splitsPair(text, length) ? text.slice(0, length - 1) : text.slice(0, length);
}

function tail(text: string, length: number): string {
  const at = text.length - length;
  return splitsPair(text, at) ? text.slice(at + 1) : text.slice(at);
}

function splitsPair(text: string, at: number): boolean {
  return /[\ud800-\udbff]/.test(text.charAt(at - 1)) && /[\udc00-\udfff]/.test(text.charAt(at));
}

/**
 * @param already how many characters were left out, on the same side, before `text` came here
 */
function cut(text: string, max: number, side: CutSide, already = 0): string {
  if (text.length <= max && already === 0) return text;
  const room = Math.max(0, max);
  const marker = MARKERS[side];
  const longest = marker(text.length + already).length;
  const keep = Math.min(text.length, Math.max(0, room - longest));
  const before = Math.ceil(keep * HEAD_SHARE[side]);
  const start = head(text, before);
  const end = tail(text, keep - before);
  const count = text.length - start.length - end.length + already;
  return room < longest ? marker(count).slice(0, room) : start + marker(count) + end;
}

/**
 * Shortens a text to at most `max` UTF-16 units by leaving out its end. The result says how much is
 * missing (`…[120 characters left out]`), as far as `max` has room for that, and never holds half of
 * a surrogate pair that was whole.
 */
export function cutEnd(text: string, max: number): string {
  return cut(text, max, "end");
}

/** Like {@link cutEnd}, but keeps the end of the text. */
export function cutStart(text: string, max: number): string {
  return cut(text, max, "start");
}

/** Enough for what a tool is and does; servers have sent 50,000. */
const MAX_DESCRIPTION = 2_000;

/** Cuts a tool's description, escaped already, at 2,000 UTF-16 units, marker included. */
export function capDescription(text: string): string {
  return cutEnd(text, MAX_DESCRIPTION);
}

/**
 * Escapes a text ({@link escapeInvisible}) and cuts it to `max`. Of a very long text only the ends are looked
 * at, so that the work follows `max`; in the part that was not looked at, the marker counts raw
 * characters.
 */
export function cutShown(raw: string, max: number, side: CutSide): string {
  if (raw.length <= 2 * max + 200) return cut(escapeInvisible(raw), max, side);
  // Escaping never shortens, so `max` raw characters are enough for each end.
  const start = side === "start" ? "" : head(raw, max);
  const end = side === "end" ? "" : tail(raw, max);
  return cut(
    escapeInvisible(start) + escapeInvisible(end),
    max,
    side,
    raw.length - start.length - end.length,
  );
}

/**
 * Calls `make` with shrinking lengths, from `longest`, until the JSON of its text has at most `maxJson`
 * units. `make(n)` must return at most `n` units.
 */
export function fitJson(make: (max: number) => string, longest: number, maxJson: number): string {
  let size = Math.max(0, Math.min(longest, maxJson - 2));
  for (;;) {
    const text = make(size);
    const excess = JSON.stringify(text).length - maxJson;
    if (excess <= 0 || size === 0) return text;
    // An escaped character takes up to two units in JSON (a quote, a line break), so half is never too much.
    size = Math.max(0, size - Math.ceil(excess / 2));
  }
}

/** A value with the length of its JSON, so that no part is measured twice. */
interface Measured {
  readonly value: JsonValue;
  readonly length: number;
  /** The parts of a list or an object; `overhead` is a comma, and for an object the key. */
  readonly parts?: readonly Part[];
}

interface Part {
  readonly key: string;
  readonly overhead: number;
  readonly item: Measured;
}

/** No string is cut below this JSON length before whole values go. */
const SHORTEST_TEXT = 60;
/** Nor does a value get less than this where room is shared out. */
const SHORTEST_VALUE = 24;
/** Room for `,"…":"[1234567 left out]"`. */
const MARKER_ROOM = 32;
/** The key of the marker in an object. */
const MARKER_KEY = "…";

const SPELLED_IN_JSON = /["\\\p{Cc}\p{Cs}]/u;

function lengthOfText(text: string): number {
  return SPELLED_IN_JSON.test(text) ? JSON.stringify(text).length : text.length + 2;
}

function measure(value: JsonValue): Measured {
  if (typeof value === "string") return { value, length: lengthOfText(value) };
  if (value === null || typeof value !== "object") return { value, length: JSON.stringify(value).length };
  const parts: Part[] = Array.isArray(value)
    ? value.map((item) => ({ key: "", overhead: 1, item: measure(item) }))
    : Object.entries(value).map(([key, item]) => ({
        key,
        overhead: lengthOfText(key) + 2,
        item: measure(item),
      }));
  const length = parts.reduce((sum, { overhead, item }) => sum + overhead + item.length, 2);
  // No comma before the first.
  return { value, length: parts.length === 0 ? 2 : length - 1, parts };
}

/**
 * The level at which lengths must be capped so that their sum is at most `room`: the longest give way
 * first. Infinity if all fit.
 */
function capFor(lengths: readonly number[], room: number): number {
  const rising = lengths.toSorted((a, b) => a - b);
  let left = room;
  for (const [index, length] of rising.entries()) {
    const share = Math.floor(left / (rising.length - index));
    if (length > share) return share;
    left -= length;
  }
  return Number.POSITIVE_INFINITY;
}

/** The JSON lengths of all strings, keys included. */
function collectTexts({ value, length, parts }: Measured, into: number[]): number[] {
  if (typeof value === "string") into.push(length);
  const isObject = !Array.isArray(value);
  for (const { overhead, item } of parts ?? []) {
    if (isObject) into.push(overhead - 2);
    collectTexts(item, into);
  }
  return into;
}

function fitText(text: string, max: number): string {
  return lengthOfText(text) <= max ? text : fitJson((size) => cutEnd(text, size), max, max);
}

/** An object from pairs, in which `__proto__` is a key like any other. */
function fromPairs(pairs: readonly (readonly [string, JsonValue])[]): JsonObject {
  return Object.fromEntries<JsonValue>(pairs);
}

/** Cuts every string, and every key, to a JSON length of `max`. The depth is bounded by `toJson`. */
function capTexts(value: JsonValue, max: number): JsonValue {
  if (typeof value === "string") return fitText(value, max);
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item) => capTexts(item, max));
  return fromPairs(
    Object.entries(value).map(([key, item], index) => {
      // The number keeps two keys apart that begin alike.
      const name = lengthOfText(key) <= max ? key : `${fitText(key, max - 9)}~${index}`;
      return [name, capTexts(item, max)];
    }),
  );
}

/** How many parts, from the first, can have a share that says something. */
function countThatFit(parts: readonly Part[], room: number): number {
  let left = room;
  for (const [index, { overhead, item }] of parts.entries()) {
    left -= Math.min(item.length, SHORTEST_VALUE) + overhead;
    if (left < 0) return index;
  }
  return parts.length;
}

/** Leaves out keys and items until the JSON has at most `max` units, and shares the room out among the rest. */
function prune({ value, length, parts }: Measured, max: number): JsonValue {
  if (length <= max) return value;
  if (typeof value === "string") return fitText(value, max);
  if (parts === undefined) return "…";
  const isList = Array.isArray(value);
  const room = max - 2 - MARKER_ROOM;
  const count = countThatFit(parts, room);
  if (count === 0) return fitText(`[${parts.length} ${isList ? "items" : "keys"} left out]`, max);
  const isCut = count < parts.length;
  // The marker's own key must not fall upon another.
  const kept = parts.slice(0, count).filter(({ key }) => !isCut || key !== MARKER_KEY);
  const marker = `[${parts.length - kept.length} left out]`;
  const overhead = kept.reduce((sum, part) => sum + part.overhead, 0);
  const cap = capFor(
    kept.map(({ item }) => item.length),
    room - overhead,
  );
  const pruned = kept.map(({ key, item }) => [key, prune(item, Math.min(item.length, cap))] as const);
  if (isList) return [...pruned.map(([, item]) => item), ...(isCut ? [`…${marker}`] : [])];
  return fromPairs(isCut ? [...pruned, [MARKER_KEY, marker]] : pruned);
}

/** {@link cutJson} for a value that {@link toJson} made. */
function cutTree(tree: JsonValue, max: number): JsonValue {
  const measured = measure(tree);
  if (measured.length <= max) return tree;
  const texts = collectTexts(measured, []);
  const rest = measured.length - texts.reduce((sum, next) => sum + next, 0);
  const cap = Math.max(SHORTEST_TEXT, capFor(texts, max - rest));
  return prune(measure(capTexts(tree, cap)), Math.max(3, max));
}

/**
 * Shortens a JSON value so that its JSON text has at most `max` UTF-16 units (but never fewer than 3,
 * the length of `"…"`).
 *
 * The longest strings are cut first, keys included; each says how much is missing. If that is not
 * enough, keys or items at the end of long objects and lists are left out, with a marker and a count.
 * Never throws; time is n log n in the number of values.
 *
 * @example
 * ```ts
 * cutJson({ path: "a.txt", content: "x".repeat(9000) }, 200); // path is whole, content is cut
 * ```
 */
export function cutJson(value: unknown, max: number): JsonValue {
  return cutTree(toJson(value), max);
}

/** How many values of earlier arguments are looked at: more than any entry has room for. */
const MAX_VALUES = 10_000;

/**
 * The arguments of an earlier call as a judge reads them: escaped, and cut like {@link cutJson}. What
 * certainly goes is not looked at: the middle of a long string, and values after many others.
 */
export function cutArgs(args: unknown, max: number): JsonValue {
  return cutTree(
    toJson(args, (text) => cutShown(text, max, "end"), MAX_VALUES),
    max,
  );
}

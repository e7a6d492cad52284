import type { JsonValue } from "@langchain/core/decisions";
import type { JsonObject } from "../json.js";
import { cutEnd, cutShown, fitJson } from "./cut.js";
import { toJson } from "./json.js";

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
  // The marker's own key must not replace another.
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

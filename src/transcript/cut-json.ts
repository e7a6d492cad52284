import type { JsonValue } from "@langchain/core/decisions";
import { cutEnd, fitJson } from "./cut.js";
import { toJson } from "./json.js";

type JsonObject = { [key: string]: JsonValue };
type Child = readonly [key: string, value: JsonValue];

/** No string is cut below this JSON length before whole values go. */
const SHORTEST_TEXT = 60;
/** Nor does a value get less than this where room is shared out. */
const SHORTEST_VALUE = 24;
/** Room for `"…":"[1234567 left out]",`. */
const MARKER_ROOM = 32;

const lengthOf = (value: JsonValue): number => JSON.stringify(value).length;
const leftOut = (count: number): string => `[${count} left out]`;

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
function collectLengths(value: JsonValue, into: number[]): number[] {
  if (typeof value === "string") into.push(lengthOf(value));
  else if (Array.isArray(value)) for (const item of value) collectLengths(item, into);
  else if (value !== null && typeof value === "object")
    for (const [key, item] of Object.entries(value)) {
      into.push(lengthOf(key));
      collectLengths(item, into);
    }
  return into;
}

function fitText(text: string, max: number): string {
  return lengthOf(text) <= max ? text : fitJson((size) => cutEnd(text, size), max);
}

/** An object from pairs, in which `__proto__` is a key like any other. */
function fromPairs(pairs: readonly Child[]): JsonObject {
  return Object.fromEntries<JsonValue>(pairs);
}

/** Cuts every string, and every key, to a JSON length of `max`. */
function capTexts(value: JsonValue, max: number): JsonValue {
  if (typeof value === "string") return fitText(value, max);
  if (Array.isArray(value)) return value.map((item) => capTexts(item, max));
  if (value === null || typeof value !== "object") return value;
  return fromPairs(
    Object.entries(value).map(([key, item], index) => {
      // The number keeps two keys apart that begin alike.
      const name = lengthOf(key) <= max ? key : `${fitText(key, max - 9)}~${index}`;
      return [name, capTexts(item, max)];
    }),
  );
}

/** How much of the room goes to each child, the marker's share already taken off. */
function shareOut(sizes: readonly number[], room: number): number[] {
  const cap = capFor(sizes, room);
  return sizes.map((size) => Math.min(size, cap));
}

/** How many children, from the first, can have a share that says something. */
function countThatFit(sizes: readonly number[], overheads: readonly number[], room: number): number {
  let left = room;
  for (const [index, size] of sizes.entries()) {
    left -= Math.min(size, SHORTEST_VALUE) + (overheads[index] as number);
    if (left < 0) return index;
  }
  return sizes.length;
}

/** Leaves out keys and items until the JSON has at most `max` units. The depth is bounded by `toJson`. */
function prune(value: JsonValue, max: number): JsonValue {
  if (lengthOf(value) <= max) return value;
  if (typeof value === "string") return fitText(value, max);
  if (value === null || typeof value !== "object") return "…";
  const isList = Array.isArray(value);
  const children: Child[] = isList ? value.map((item) => ["", item]) : Object.entries(value);
  const sizes = children.map(([, item]) => lengthOf(item));
  // A comma, and for a key also its colon.
  const overheads = children.map(([key]) => (isList ? 1 : lengthOf(key) + 2));
  const room = max - 2 - MARKER_ROOM;
  const kept = countThatFit(sizes, overheads, room);
  if (kept === 0) return fitText(`[${children.length} ${isList ? "items" : "keys"} left out]`, max);
  const taken = overheads.slice(0, kept).reduce((sum, overhead) => sum + overhead, 0);
  const shares = shareOut(sizes.slice(0, kept), room - taken);
  const pruned = children
    .slice(0, kept)
    .map(([key, item], index): Child => [key, prune(item, shares[index] as number)]);
  const missing = children.length - kept;
  if (isList) return [...pruned.map(([, item]) => item), ...(missing === 0 ? [] : [`…${leftOut(missing)}`])];
  return fromPairs(missing === 0 ? pruned : [...pruned, ["…", leftOut(missing)]]);
}

/** {@link cutJson} for a value that {@link toJson} made. */
export function cutTree(tree: JsonValue, max: number): JsonValue {
  const length = lengthOf(tree);
  if (length <= max) return tree;
  const lengths = collectLengths(tree, []);
  const texts = lengths.reduce((sum, next) => sum + next, 0);
  const cap = Math.max(SHORTEST_TEXT, capFor(lengths, max - (length - texts)));
  return prune(capTexts(tree, cap), Math.max(3, max));
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
  return cutTree(
    toJson(value, (text) => text),
    max,
  );
}

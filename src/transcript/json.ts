import type { JsonValue } from "@langchain/core/decisions";
import { type JsonObject, setOwn } from "../json.js";
import { escapeInvisible } from "./escape-text.js";
import { type Fields, isMedia } from "./media.js";

/** Deeper values go as their JSON text: serializers and validators recurse, and would overflow. */
const MAX_DEPTH = 100;
/** Deeper values than this come from no model, and recursion here stays far from the stack's end. */
const MAX_DEPTH_OF_TEXT = 2_100;
/** A bound for values that never end: getters that make new objects, shared parts that multiply. */
const MAX_VALUES = 1_000_000;
const LEFT_OUT = "[left out: too large]";

/** Whether an adapter, or the loader of stored objects, would take this for more than data. */
function posesAsMoreThanData(subject: Fields): boolean {
  const { type, content } = subject;
  return (
    isMedia(subject) ||
    (type !== undefined && (typeof content === "string" || Array.isArray(content))) ||
    (typeof subject["role"] === "string" && content !== undefined) ||
    typeof subject["lc"] === "number" ||
    subject["lc_serializable"] !== undefined ||
    typeof subject["_getType"] === "function"
  );
}

/** What is written for a value that JSON cannot hold. */
function markerFor(value: unknown): string {
  if (typeof value === "number") return `[${value}]`;
  if (typeof value !== "bigint") return `[${typeof value}]`;
  // Writing out a huge one takes quadratic time.
  return value < 10n ** 40n && value > -(10n ** 40n) ? `[bigint ${value}]` : "[bigint]";
}

/** Objects whose content is not in their fields. */
function opaqueMarker(value: object): string | undefined {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (value instanceof Map || value instanceof Set)
    return `[${value instanceof Map ? "map" : "set"} of ${value.size}]`;
  return undefined;
}

/** What an object says of itself. A foreign `toJSON` that throws says nothing. */
function convert(value: object): unknown {
  try {
    const { toJSON } = value as { toJSON?: unknown };
    return typeof toJSON === "function" ? (toJSON.call(value) as unknown) : value;
  } catch {
    return value;
  }
}

/** Maps any value to JSON: every string and every key by `show`, and markers for what JSON cannot hold. */
class JsonMapper {
  readonly #show: (text: string) => string;
  #left: number;
  /** Inside text nothing can pose as more than data. */
  #insideText: boolean;
  readonly #path = new Set<object>();

  constructor(show: (text: string) => string, values: number, insideText: boolean) {
    this.#show = show;
    this.#left = values;
    this.#insideText = insideText;
  }

  map(value: unknown): JsonValue {
    this.#left -= 1;
    if (typeof value === "string") return this.#show(value);
    if (value === null || value === undefined) return null;
    if (typeof value === "boolean") return value;
    // JSON knows no -0.
    if (typeof value === "number" && Number.isFinite(value)) return value === 0 ? 0 : value;
    if (typeof value !== "object") return markerFor(value);
    if (this.#path.has(value)) return "[cycle]";
    if (this.#path.size >= MAX_DEPTH_OF_TEXT) return "[nested too deeply]";
    try {
      const subject = convert(value);
      if (typeof subject !== "object" || subject === null) return this.map(subject);
      const opaque = opaqueMarker(subject);
      if (opaque !== undefined) return opaque;
      const poses =
        posesAsMoreThanData(subject as Fields) || (subject !== value && posesAsMoreThanData(value as Fields));
      const asText = !this.#insideText && (poses || this.#path.size >= MAX_DEPTH);
      if (asText) this.#insideText = true;
      this.#path.add(value);
      const mapped = Array.isArray(subject) ? this.#mapList(subject) : this.#mapObject(subject as Fields);
      this.#path.delete(value);
      if (asText) this.#insideText = false;
      return asText ? JSON.stringify(mapped) : mapped;
    } catch {
      // A getter or a proxy's trap.
      return "[unreadable]";
    }
  }

  #mapList(list: readonly unknown[]): JsonValue[] {
    const mapped: JsonValue[] = [];
    for (let at = 0; at < list.length; at += 1) {
      if (this.#left <= 0) return [...mapped, LEFT_OUT];
      mapped.push(this.map(list[at]));
    }
    return mapped;
  }

  #mapObject(subject: Fields): JsonObject {
    const mapped: JsonObject = {};
    let isRenamed = false;
    for (const key of Object.keys(subject)) {
      if (this.#left <= 0) return { ...mapped, [LEFT_OUT]: true };
      const value = read(subject, key);
      if (value === undefined) continue;
      let name = this.#show(key);
      // Keys that look alike once they are escaped stay apart.
      isRenamed ||= name !== key;
      if (isRenamed) for (let at = 1; Object.hasOwn(mapped, name); at += 1) name += `~${at}`;
      setOwn(mapped, name, this.map(value));
    }
    return mapped;
  }
}

function read(subject: Fields, key: string): unknown {
  try {
    return subject[key];
  } catch {
    return "[unreadable]";
  }
}

/** JSON text of any value, with markers where JSON has no word. Never throws. */
export function jsonText(value: unknown): string {
  return JSON.stringify(new JsonMapper((text) => text, MAX_VALUES, true).map(value));
}

/** Like {@link toDisplayJson} for any value, with another treatment of the strings, and at most so many values. */
export function toJson(
  value: unknown,
  show: (text: string) => string = (text) => text,
  values = MAX_VALUES,
): JsonValue {
  return new JsonMapper(show, values, false).map(value);
}

/**
 * Makes JSON readable for a judge: every string and every key as {@link escapeInvisible} shows it.
 *
 * Objects in the shape of media blocks or of messages, and whatever is nested deeper than 100 levels,
 * become their JSON text, so that no adapter sends them as something else and none overflows. Nothing is
 * left out, however large it is. What JSON cannot hold becomes a short marker (`[cycle]`, `[function]`,
 * `[bigint 7]`, `[12 bytes]`), and so does what is nested deeper than 2,100 levels. Never throws; time is
 * linear in the size.
 *
 * @example
 * ```ts
 * toDisplayJson({ path: "a\u200bb", size: 1 }); // { path: "a\\u{200b}b", size: 1 }
 * ```
 */
export function toDisplayJson(value: unknown): JsonValue {
  return toJson(value, escapeInvisible, Number.POSITIVE_INFINITY);
}

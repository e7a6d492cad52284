import type { JsonValue } from "@langchain/core/decisions";
import { showCut } from "./cut.js";
import { markerFor, opaqueMarker, posesAsMoreThanData } from "./json-values.js";
import type { Fields } from "./media.js";
import { escapeInvisible } from "./escape-text.js";

/** Deeper values go as their JSON text: serialisers and validators recurse, and would overflow. */
const MAX_DEPTH = 100;

/**
 * A bound for values that never end (getters that make new objects, shared parts that multiply).
 * What fits into it is larger than any classifier reads, so a call that reaches it is not judged on
 * the part that is shown.
 */
const MAX_UNITS = 20_000_000;
/** What a value costs beside the length of its text. */
const UNITS_PER_VALUE = 16;
const LEFT_OUT = "[left out: too large]";

/** Makes a string ready for its reader. `room` is what is left of the bound. */
export type ShowString = (text: string, room: number) => string;

const keep: ShowString = (text) => text;

interface Frame {
  readonly subject: Fields | readonly unknown[];
  /** Undefined for an array. */
  readonly keys: readonly string[] | undefined;
  /** What leaves the path when this is done. */
  readonly origin: object;
  /** Where in the output the JSON begins that is to become text. */
  readonly textFrom: number | undefined;
  /** Names that were written; filled only where showing changed one. */
  names: Set<string> | undefined;
  at: number;
  written: number;
}

/** Runs what may be a getter, a proxy's trap or a foreign `toJSON`. */
function attempt<T>(read: () => T): { value: T } | undefined {
  try {
    return { value: read() };
  } catch {
    return undefined;
  }
}

class JsonWriter {
  readonly #out: string[] = [];
  readonly #stack: Frame[] = [];
  readonly #path = new Set<object>();
  readonly #show: ShowString;
  #room: number;
  /** Inside text nothing can pose as more than data, and nothing recurses. */
  #insideText: boolean;

  constructor(show: ShowString, room: number, insideText: boolean) {
    this.#show = show;
    this.#room = room;
    this.#insideText = insideText;
  }

  write(root: unknown): string {
    this.#open(root);
    for (let frame = this.#stack.at(-1); frame !== undefined; frame = this.#stack.at(-1)) this.#step(frame);
    return this.#out.join("");
  }

  #step(frame: Frame): void {
    const { subject, keys } = frame;
    if (frame.at >= (keys ?? (subject as readonly unknown[])).length) return this.#close(frame);
    if (this.#room <= 0) {
      this.#separate(frame);
      this.#out.push(keys === undefined ? `"${LEFT_OUT}"` : `"${LEFT_OUT}":true`);
      return this.#close(frame);
    }
    const key = keys === undefined ? frame.at : (keys[frame.at] as string);
    frame.at += 1;
    const read = attempt(() => (subject as Fields)[key]);
    if (keys === undefined) {
      this.#separate(frame);
    } else {
      if (read !== undefined && read.value === undefined) return;
      this.#separate(frame);
      this.#out.push(JSON.stringify(this.#name(key as string, frame)), ":");
    }
    if (read === undefined) this.#out.push('"[unreadable]"');
    else this.#open(read.value);
  }

  #separate(frame: Frame): void {
    if (frame.written > 0) this.#out.push(",");
    frame.written += 1;
  }

  /** Shows a key. Keys that look alike afterwards stay apart. */
  #name(key: string, frame: Frame): string {
    const shown = this.#text(key);
    if (shown !== key && frame.names === undefined) frame.names = new Set(frame.keys?.slice(0, frame.at - 1));
    if (frame.names === undefined) return shown;
    let name = shown;
    while (frame.names.has(name)) name += `~${frame.at}`;
    frame.names.add(name);
    return name;
  }

  #text(text: string): string {
    const shown = this.#show(text, Math.max(0, this.#room));
    this.#room -= UNITS_PER_VALUE + shown.length;
    return shown;
  }

  #open(value: unknown): void {
    this.#room -= UNITS_PER_VALUE;
    if (typeof value === "string") this.#out.push(JSON.stringify(this.#text(value)));
    else if (value === null || value === undefined) this.#out.push("null");
    else if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value)))
      this.#out.push(String(value));
    else if (typeof value !== "object") this.#out.push(JSON.stringify(markerFor(value)));
    else if (this.#path.has(value)) this.#out.push('"[cycle]"');
    else this.#openObject(value);
  }

  #openObject(value: object): void {
    const own = attempt(() => {
      const convert = (value as { toJSON?: unknown }).toJSON;
      return typeof convert === "function" ? (convert.call(value) as unknown) : value;
    });
    const subject = own === undefined ? value : own.value;
    if (typeof subject !== "object" || subject === null) return this.#open(subject);
    const found = attempt(() => ({
      opaque: opaqueMarker(subject),
      keys: Array.isArray(subject) ? undefined : Object.keys(subject),
      poses:
        posesAsMoreThanData(subject as Fields) || (subject !== value && posesAsMoreThanData(value as Fields)),
    }));
    if (found === undefined) return void this.#out.push('"[unreadable]"');
    const { opaque, keys, poses } = found.value;
    if (opaque !== undefined) return void this.#out.push(JSON.stringify(opaque));
    const asText = !this.#insideText && (poses || this.#stack.length >= MAX_DEPTH);
    if (asText) this.#insideText = true;
    this.#path.add(value);
    this.#stack.push({
      subject: subject as Fields,
      keys,
      origin: value,
      textFrom: asText ? this.#out.length : undefined,
      names: undefined,
      at: 0,
      written: 0,
    });
    this.#out.push(keys === undefined ? "[" : "{");
  }

  #close(frame: Frame): void {
    this.#out.push(frame.keys === undefined ? "]" : "}");
    this.#stack.pop();
    this.#path.delete(frame.origin);
    if (frame.textFrom === undefined) return;
    this.#insideText = false;
    const text = this.#out.splice(frame.textFrom).join("");
    this.#out.push(JSON.stringify(text));
  }
}

/** JSON text of any value, with markers where JSON has no word. Never throws. */
export function writeJson(value: unknown, room = MAX_UNITS): string {
  return new JsonWriter(keep, room, true).write(value);
}

/** Like {@link toDisplayJson}, with another treatment of the strings, or with less room. */
export function toJson(value: unknown, show = keep, room = MAX_UNITS): JsonValue {
  return JSON.parse(new JsonWriter(show, room, false).write(value)) as JsonValue;
}

/**
 * Turns any value into JSON that a judge can read: every string and every key as {@link escapeInvisible}
 * shows it.
 *
 * What JSON cannot hold becomes a short marker (`[cycle]`, `[function]`, `[bigint 7]`, `[12 bytes]`).
 * Objects in the shape of media blocks or of messages, and whatever is nested deeper than 100 levels,
 * become their JSON text, so that no adapter sends them as something else and none overflows. Nothing
 * is shortened below 2,000,000 units. Never throws; time is linear in the size.
 *
 * @example
 * ```ts
 * toDisplayJson({ path: "a\u200bb", self: 1n }); // { path: "a\\u{200b}b", self: "[bigint 1]" }
 * ```
 */
export function toDisplayJson(value: unknown): JsonValue {
  return toJson(value, (text, room) =>
    text.length > room ? showCut(text, room, "end") : escapeInvisible(text),
  );
}

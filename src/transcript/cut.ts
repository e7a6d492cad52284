import { escapeInvisible } from "./escape-text.js";

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

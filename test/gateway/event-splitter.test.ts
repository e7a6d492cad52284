import { createParser } from "eventsource-parser";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EventSplitter, type StreamEvent } from "../../src/gateway/event-splitter.js";

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** Cuts bytes at the given places. */
function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const edges = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  return edges.slice(1).map((end, index) => bytes.slice(edges[index], end));
}

function split(chunks: readonly Uint8Array[]) {
  const splitter = new EventSplitter();
  const blocks = [...chunks.flatMap((chunk) => splitter.push(chunk)), ...splitter.end()];
  return {
    blocks,
    gaveUp: splitter.gaveUp,
    text: Buffer.concat(blocks.map(({ bytes }) => bytes)).toString("utf8"),
  };
}

/** What another reader of the same standard finds. */
function parse(text: string): StreamEvent[] {
  const events: StreamEvent[] = [];
  createParser({
    onEvent: ({ event, data }) => events.push({ ...(event === undefined ? {} : { event }), data }),
  }).feed(text);
  return events;
}

const lineEnd = fc.constantFrom("\n", "\r\n");
const line = fc.oneof(
  fc.constantFrom(
    "data: {}",
    "data:",
    "event: ping",
    ": comment",
    ":",
    "id: 7",
    "retry: 5",
    "data",
    "unknown: x",
  ),
  fc.string({ unit: "grapheme", maxLength: 8 }).map((text) => `data: ${text.replaceAll(/[\r\n]/g, "")}`),
  fc.constant(""),
);
const stream = fc
  .tuple(fc.array(line, { maxLength: 20 }), lineEnd)
  .map(([lines, end]) => [...lines, "data: last", "", ""].join(end));
const places = fc.array(fc.nat(400), { maxLength: 12 });

describe("an event stream in chunks", () => {
  test("gives back every byte, and the events of the whole, wherever the chunks begin", () => {
    fc.assert(
      fc.property(stream, places, (text, cuts) => {
        const { blocks, text: passed } = split(cutAt(bytesOf(text), cuts));
        expect(passed).toBe(text);
        expect(blocks.flatMap(({ event }) => event ?? [])).toEqual(parse(text));
      }),
    );
  });

  test("an event's bytes begin where the one before ended", () => {
    const text = 'event: a\r\ndata: "ü😀"\r\n\r\n: note\r\n\r\ndata: 2\r\n\r\n';
    const { blocks } = split(Array.from(bytesOf(text), (byte) => new Uint8Array([byte])));
    const parts = blocks.map(({ bytes, event }) => [Buffer.from(bytes).toString("utf8"), event?.data]);
    expect(parts).toEqual([
      ['event: a\r\ndata: "ü😀"\r\n\r\n', '"ü😀"'],
      [": note\r\n", undefined],
      ["\r\n", undefined],
      ["data: 2\r\n\r\n", "2"],
    ]);
  });

  test("lines that end with a bare CR are lines too", () => {
    const { blocks, text } = split([bytesOf("data: 1\r\rdata: 2\r"), bytesOf("\r")]);
    expect(text).toBe("data: 1\r\rdata: 2\r\r");
    expect(blocks.map(({ event }) => event?.data)).toEqual(["1", "2"]);
  });

  test("a comment passes at once, without the blank line that may never come", () => {
    const splitter = new EventSplitter();
    expect(splitter.push(bytesOf(": still there\n"))).toHaveLength(1);
    expect(splitter.push(bytesOf("data: 1\n"))).toHaveLength(0);
    expect(splitter.push(bytesOf(": inside an event\n"))).toHaveLength(0);
    expect(splitter.push(bytesOf("\n"))).toHaveLength(1);
  });

  test("an event that is never finished comes out at the end, as bytes and no event", () => {
    expect(split([bytesOf("data: 1\n\ndata: 2\n")])).toMatchObject({ text: "data: 1\n\ndata: 2\n" });
    expect(split([bytesOf("data: 2\n")]).blocks[0]).not.toHaveProperty("event");
  });

  test("an endless event is given up on: its bytes pass, and all that follow", () => {
    const splitter = new EventSplitter();
    const chunk = bytesOf(`data: ${"x".repeat(1024 * 1024)}\n`);
    let passed = 0;
    for (let count = 0; count < 40; count++)
      for (const { bytes } of splitter.push(chunk)) passed += bytes.length;
    expect(splitter.gaveUp).toBe(true);
    expect(passed).toBe(40 * chunk.length);
  });
});

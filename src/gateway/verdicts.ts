import { valueWithin } from "../deadline.js";
import { isLoose, type Loose, resultsOf, type SafeguardStatus } from "./protocol.js";
import { readMessage, type Reply, StreamedReply } from "./reply.js";
import { appendMember } from "./json-text.js";

/** Gives the status of a reply. Rejects on abort alone. */
export type JudgeReply = (reply: Reply) => Promise<SafeguardStatus>;

const PING = new TextEncoder().encode('event: ping\ndata: {"type": "ping"}\n\n');

/**
 * Passes an event stream on as it comes, save for the final `message_delta`: that one waits for the
 * verdicts, with pings meanwhile, and carries them. Nothing is read from the source while it waits,
 * nor before the reader asks.
 */
export async function* addVerdicts(
  source: AsyncIterator<Uint8Array, unknown>,
  judge: JudgeReply,
  pingIntervalMs: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const splitter = new EventSplitter();
  const reply = new StreamedReply();
  let held: Held | undefined;
  let isSettled = false;
  try {
    for (let isOver = false; !isOver;) {
      const read = await source.next();
      isOver = read.done === true;
      const blocks = read.done ? splitter.end() : splitter.push(read.value);
      const passing: Uint8Array[] = [];
      for (const block of blocks) {
        const data = isSettled ? undefined : dataOf(block);
        const type = data?.["type"] ?? block.event?.event;
        if (data) reply.observe(data);
        if (held && (type === "message_delta" || reply.hasOwnResults)) {
          // It was not the final one, or needs nothing from here.
          passing.push(held.block.bytes, ...held.behind);
          held = undefined;
        }
        if (type === "message_delta" && data && !reply.hasOwnResults) {
          // Only what follows shows whether it is the final one.
          held = { block, data, behind: [] };
        } else if (held && (block.event === undefined || type === "ping")) {
          held.behind.push(block.bytes);
        } else {
          if (held) {
            if (passing.length > 0) yield join(passing.splice(0));
            yield* settle(held, reply, judge, pingIntervalMs);
            held = undefined;
            isSettled = true;
          }
          passing.push(block.bytes);
        }
      }
      if (passing.length > 0) yield join(passing);
    }
    if (held) yield* settle(held, reply, judge, pingIntervalMs);
  } finally {
    // The reader left, or the source failed: either way nobody wants the rest.
    Promise.resolve(source.return?.()).catch(() => {});
  }
}

/** A `message_delta` that may be the final one. */
interface Held {
  readonly block: Block;
  readonly data: Loose;
  /** Comments and pings that came after it. */
  readonly behind: Uint8Array[];
}

async function* settle(
  { block, data, behind }: Held,
  reply: Reply,
  judge: JudgeReply,
  pingIntervalMs: number,
) {
  const judging = judge(reply);
  // The reader may have left when it fails; whoever reads on still gets the rejection below.
  judging.catch(() => {});
  let status = await valueWithin(judging, pingIntervalMs);
  while (status === undefined) {
    yield PING;
    status = await valueWithin(judging, pingIntervalMs);
  }
  yield join([rewrite(block, data, status), ...behind]);
}

function dataOf({ event }: Block): Loose | undefined {
  if (!event) return undefined;
  try {
    const data: unknown = JSON.parse(event.data);
    return isLoose(data) ? data : undefined;
  } catch {
    // An event that is no JSON is none of the message's; it passes like any unknown one.
    return undefined;
  }
}

/** The same event with the results in its `delta`: its other lines, and the way its lines end, stay. */
function rewrite(block: Block, data: Loose, status: SafeguardStatus): Uint8Array {
  const delta = isLoose(data["delta"]) ? data["delta"] : {};
  const json = JSON.stringify({ ...data, delta: { ...delta, safeguard_results: resultsOf(status) } });
  const lines = new TextDecoder().decode(block.bytes).match(/[^\r\n]*(?:\r\n|\r|\n)/g) ?? [];
  let isWritten = false;
  const written = lines.map((line) => {
    if (!/^data(?:$|[:\r\n])/.test(line)) return line;
    const end = /[\r\n]*$/.exec(line)![0];
    const text = isWritten ? "" : `data: ${json}${end}`;
    isWritten = true;
    return text;
  });
  return new TextEncoder().encode(written.join(""));
}

/**
 * Reads a reply that is not streamed and adds the verdicts at its top level. What is no message, or
 * carries results of its own, comes back as it was.
 */
export async function addVerdictsToMessage(
  source: AsyncIterator<Uint8Array, unknown>,
  judge: JudgeReply,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readAll(source);
  let message: unknown;
  try {
    message = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return bytes;
  }
  const reply = readMessage(message);
  if (reply === undefined || reply.hasOwnResults) return bytes;
  const status = await judge(reply);
  return appendMember(bytes, "safeguard_results", resultsOf(status));
}

async function readAll(source: AsyncIterator<Uint8Array, unknown>): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  for (let read = await source.next(); !read.done; read = await source.next()) parts.push(read.value);
  return Buffer.concat(parts);
}

/** What one event of a stream holds. */
export interface StreamEvent {
  /** The name that the `event` field gives. */
  event?: string;
  /** The values of its `data` fields, one line each. */
  data: string;
}

/** A run of bytes of an event stream that belongs together. */
interface Block {
  bytes: Uint8Array;
  /** The event that ends with these bytes. Without one: a comment, or a blank line on its own. */
  event?: StreamEvent;
}

// A tool's input comes in many small events; one of this size is no event stream at all.
const MOST_EVENT_BYTES = 32 * 1024 * 1024;
const LF = 10;
const CR = 13;

/**
 * Cuts an event stream, as its chunks arrive, into blocks that can be passed on or held back. The bytes are
 * never rewritten. Lines are decoded whole, so that characters split across chunks come together first.
 */
export class EventSplitter {
  // Bytes of the line and of the event that are not yet complete.
  #line: Uint8Array[] = [];
  #event: Uint8Array[] = [];
  #pendingBytes = 0;
  #endsWithCR = false;
  #gaveUp = false;
  #lines: string[] = [];
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #isFirstLine = true;

  /** Whether the stream held an event too large to be looked at: from there on, bytes just pass. */
  get gaveUp(): boolean {
    return this.#gaveUp;
  }

  /** Takes the next chunk. Returns what is complete with it. */
  push(chunk: Uint8Array): Block[] {
    if (this.#gaveUp) return [{ bytes: chunk }];
    const blocks: Block[] = [];
    let from = 0;
    if (this.#endsWithCR && chunk.length > 0) {
      // A line that ended with CR may go on with the LF of the same line end.
      from = chunk[0] === LF ? 1 : 0;
      this.#endLine(chunk.subarray(0, from), blocks);
    }
    for (let end = lineEnd(chunk, from); end !== -1; end = lineEnd(chunk, from)) {
      this.#endLine(chunk.subarray(from, end), blocks);
      from = end;
    }
    if (from < chunk.length) {
      this.#line.push(chunk.subarray(from));
      this.#endsWithCR = chunk.at(-1) === CR;
      this.#pendingBytes += chunk.length - from;
    }
    if (this.#pendingBytes > MOST_EVENT_BYTES) {
      blocks.push({ bytes: this.#takePending() });
      this.#gaveUp = true;
    }
    return blocks;
  }

  /** Ends the stream. Returns what was left, an unfinished event included. */
  end(): Block[] {
    const blocks: Block[] = [];
    if (this.#endsWithCR) this.#endLine(new Uint8Array(), blocks);
    if (this.#pendingBytes > 0) blocks.push({ bytes: this.#takePending() });
    return blocks;
  }

  #endLine(tail: Uint8Array, blocks: Block[]): void {
    const line = join([...this.#line, tail]);
    this.#pendingBytes += tail.length;
    this.#line = [];
    this.#endsWithCR = false;
    this.#event.push(line);
    const text = this.#decoder.decode(line).replace(/(?:\r\n|\r|\n)$/, "");
    // A stream may begin with a byte order mark, which belongs to no line.
    const content = this.#isFirstLine ? text.replace(/^\uFEFF/, "") : text;
    this.#isFirstLine = false;
    if (content !== "") this.#lines.push(content);
    const isLoneComment = content.startsWith(":") && this.#event.length === 1;
    if (content !== "" && !isLoneComment) return;
    const event = readEvent(this.#lines);
    blocks.push({ bytes: this.#takePending(), ...(event ? { event } : {}) });
  }

  #takePending(): Uint8Array {
    const bytes = join([...this.#event, ...this.#line]);
    this.#event = [];
    this.#line = [];
    this.#lines = [];
    this.#pendingBytes = 0;
    return bytes;
  }
}

/** Reads an event by the rules of the HTML standard. Lines without a data field are no event. */
function readEvent(lines: readonly string[]): StreamEvent | undefined {
  const data: string[] = [];
  let event: string | undefined;
  for (const line of lines) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") event = value || undefined;
  }
  if (data.length === 0) return undefined;
  return { ...(event === undefined ? {} : { event }), data: data.join("\n") };
}

/** The index after the next line end, or -1. A CR at the end of a chunk may be half of one. */
function lineEnd(chunk: Uint8Array, from: number): number {
  for (let at = from; at < chunk.length; at++) {
    if (chunk[at] === LF) return at + 1;
    if (chunk[at] === CR && at + 1 < chunk.length) return chunk[at + 1] === LF ? at + 2 : at + 1;
  }
  return -1;
}

/** One array of all parts, without a copy where one part is all there is. */
function join(parts: readonly Uint8Array[]): Uint8Array {
  const filled = parts.filter((part) => part.length > 0);
  return filled.length === 1 ? filled[0]! : Buffer.concat(filled);
}

/** What one event of a stream holds. */
export interface StreamEvent {
  /** The name that the `event` field gives. */
  event?: string;
  /** The values of its `data` fields, one line each. */
  data: string;
}

/** A run of bytes of an event stream that belongs together. */
export interface Block {
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
 * never written anew. Lines are decoded whole, so that characters split across chunks come together first.
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
export function join(parts: readonly Uint8Array[]): Uint8Array {
  const filled = parts.filter((part) => part.length > 0);
  return filled.length === 1 ? filled[0]! : Buffer.concat(filled);
}

import { createParser, type EventSourceMessage } from "eventsource-parser";

/** A run of bytes of an event stream that belongs together. */
export interface Block {
  bytes: Uint8Array;
  /** The event that ends with these bytes. Without one: a comment, or a blank line on its own. */
  event?: EventSourceMessage;
}

// A tool's input comes in many small events; one of this size is no event stream at all.
const MOST_EVENT_BYTES = 32 * 1024 * 1024;
const LF = 10;
const CR = 13;

/**
 * Cuts an event stream, as its chunks arrive, into blocks that can be passed on or held back. The
 * parser says where an event ends and what it holds; the bytes are never written anew. Lines are
 * decoded whole, so that characters split across chunks come together first.
 */
export class EventSplitter {
  // Bytes of the line and of the event that are not yet complete.
  #line: Uint8Array[] = [];
  #event: Uint8Array[] = [];
  #pendingBytes = 0;
  #endsWithCR = false;
  #gaveUp = false;
  #fired: EventSourceMessage | undefined;
  #sawComment = false;
  readonly #decoder = new TextDecoder();
  readonly #parser = createParser({
    onEvent: (event) => {
      this.#fired = event;
    },
    onComment: () => {
      this.#sawComment = true;
    },
  });

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
    const text = this.#decoder.decode(line);
    // A CR at the end keeps the parser waiting for an LF that is known not to come.
    this.#parser.feed(text.endsWith("\r") ? `${text}\n` : text);
    const event = this.#fired;
    const isBlank = text === "\n" || text === "\r\n" || text === "\r";
    const isLoneComment = this.#sawComment && this.#event.length === 1;
    this.#fired = undefined;
    this.#sawComment = false;
    if (event) blocks.push({ bytes: this.#takePending(), event });
    else if (isBlank || isLoneComment) blocks.push({ bytes: this.#takePending() });
  }

  #takePending(): Uint8Array {
    const bytes = join([...this.#event, ...this.#line]);
    this.#event = [];
    this.#line = [];
    this.#pendingBytes = 0;
    return bytes;
  }
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

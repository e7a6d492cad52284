import { Readable } from "node:stream";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { Agent } from "undici";
import { replyHeaders } from "./headers.js";

/** A request on its way to the upstream. */
export interface OutgoingRequest {
  method: string;
  /** As the client asked for it: the host is the gateway's. */
  url: URL;
  headers: Headers;
  body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  signal: AbortSignal;
}

/** The upstream's answer, its body not yet read. */
export interface UpstreamReply {
  status: number;
  headers: Headers;
  /** The bytes as they came over the line, still encoded. `null` where there is no body. */
  body: AsyncIterator<Uint8Array, unknown> | null;
}

/** Sends a request on. Rejects when the upstream cannot be reached, or on abort. */
export type Upstream = (request: OutgoingRequest) => Promise<UpstreamReply>;

// Fetch responses with these have no body, and the Response class insists on it.
const BODILESS = new Set([101, 204, 205, 304]);

/** An upstream behind a URL: its path is put before each request's own. */
export function httpUpstream(base: URL): Upstream {
  // A model may think for long without a byte. How long to wait is the client's to say: its abort is passed on.
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
  const prefix = base.pathname.replace(/\/+$/, "");
  return async ({ method, url, headers, body, signal }) => {
    const answer = await agent.request({
      origin: base.origin,
      path: prefix + url.pathname + url.search,
      method,
      headers: Object.fromEntries(headers),
      body: body instanceof ReadableStream ? Readable.fromWeb(body as NodeReadableStream<Uint8Array>) : body,
      signal,
      responseHeaders: "raw",
    });
    const isBodiless = method === "HEAD" || BODILESS.has(answer.statusCode);
    if (isBodiless) await answer.body.dump();
    return {
      status: answer.statusCode,
      headers: replyHeaders(fromRaw(answer.headers as unknown as readonly string[])),
      body: isBodiless ? null : (answer.body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, unknown>),
    };
  };
}

function fromRaw(raw: readonly string[]): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < raw.length; at += 2) headers.append(raw[at]!, asByteString(raw[at + 1]!));
  return headers;
}

/** The same bytes in the form that Headers takes: one character for each byte. */
function asByteString(value: string): string {
  // oxlint-disable-next-line no-control-regex
  return /^[\0-\xff]*$/.test(value) ? value : Buffer.from(value, "utf8").toString("latin1");
}

/** An upstream behind a function, as users pass it for a transport of their own. */
export function functionUpstream(send: (request: Request) => Promise<Response>): Upstream {
  return async ({ method, url, headers, body, signal }) => {
    const response = await send(
      new Request(url, { method, headers, body, signal, ...(body === null ? {} : { duplex: "half" }) }),
    );
    return {
      status: response.status,
      headers: replyHeaders(response.headers),
      body: response.body === null ? null : bytesOf(response.body),
    };
  };
}

/** Reads a stream as an iterator. */
function bytesOf(stream: ReadableStream<Uint8Array>): AsyncIterator<Uint8Array, unknown> {
  const reader = stream.getReader();
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? { done, value: undefined } : { done, value };
    },
    return: async () => {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

/** Writes an iterator as a stream that is read only as far as its reader asks. */
export function streamOf(
  source: AsyncIterator<Uint8Array, unknown>,
  onCancel: (reason: unknown) => void,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await source.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel(reason) {
        // First, since a source that waits for its next chunk cannot return before.
        onCancel(reason);
        // What the source still has to say is of no interest to a reader that left.
        Promise.resolve(source.return?.()).catch(() => {});
      },
    },
    // Nothing is read ahead: a slow client slows the upstream down.
    { highWaterMark: 0 },
  );
}

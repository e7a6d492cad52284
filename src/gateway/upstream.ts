import { Agent, type IncomingMessage, request as requestPlainly } from "node:http";
import { Agent as SecureAgent, request as requestSecurely } from "node:https";
import { pipeline, Readable } from "node:stream";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { removeMember } from "./json-text.js";

/** What an upstream's base URL must be. */
export const UPSTREAM_URL = "an http or https URL without credentials, query and fragment";

/** Reads an upstream's base URL. Undefined for what is none. */
export function readUpstreamUrl(value: unknown): URL | undefined {
  if (typeof value !== "string" && !(value instanceof URL)) return undefined;
  if (!URL.canParse(value)) return undefined;
  const url = new URL(value);
  const isPlain = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  return isPlain && (url.protocol === "http:" || url.protocol === "https:") ? url : undefined;
}

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
  const isSecure = base.protocol === "https:";
  const send = isSecure ? requestSecurely : requestPlainly;
  // Connections are used again. No time limit: a model may think for long without a byte, and how long to
  // wait is the client's to say: its abort is passed on.
  const agent = isSecure ? new SecureAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
  const prefix = base.pathname.replace(/\/+$/, "");
  return async ({ method, url, headers, body, signal }) => {
    const target = new URL(prefix + url.pathname + url.search, base.origin);
    const isStream = body instanceof ReadableStream;
    const length = isStream || body === null ? {} : { "content-length": String(body.byteLength) };
    const sent = { ...Object.fromEntries(headers), ...length };
    const outgoing = send(target, { method, headers: sent, agent, signal });
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once("response", resolve);
      outgoing.once("error", reject);
    });
    if (isStream) pipeline(Readable.fromWeb(body as NodeReadableStream<Uint8Array>), outgoing, ignore);
    else outgoing.end(body);

    const message = await answer;
    const status = message.statusCode ?? 502;
    const isBodiless = method === "HEAD" || BODILESS.has(status);
    if (isBodiless) message.resume();
    return {
      status,
      headers: replyHeaders(fromRaw(message.rawHeaders)),
      body: isBodiless ? null : (message[Symbol.asyncIterator]() as AsyncIterator<Uint8Array, unknown>),
    };
  };
}

/** A request that fails says so as an error of its own, an answer as an error of its body. */
const ignore = (): void => {};

function fromRaw(raw: readonly string[]): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < raw.length; at += 2) headers.append(raw[at]!, raw[at + 1]!);
  return headers;
}

/**
 * An upstream behind a function, as users pass it for a transport of their own. Its bodies are decoded, as
 * those of `fetch` are, whatever `content-encoding` the reply still names.
 */
export function functionUpstream(send: (request: Request) => Promise<Response>): Upstream {
  return async ({ method, url, headers, body, signal }) => {
    const response = await send(
      new Request(url, { method, headers, body, signal, ...(body === null ? {} : { duplex: "half" }) }),
    );
    const kept = replyHeaders(response.headers);
    kept.delete("content-encoding");
    return {
      status: response.status,
      headers: kept,
      body: response.body === null ? null : bytesOf(response.body),
    };
  };
}

/** The beta by which a client asks for verdicts, without its date. */
const ASK_BETA = "dangerous-tool-use-";

/**
 * Sends a request that asks for verdicts. A strict upstream answers 400 to a field or a beta that it does not
 * know: it is asked again without both, and from then on so. The verdicts are the gateway's in any case.
 */
export function withoutAskWhereStrict(upstream: Upstream, onStrict: () => void) {
  let isStrict = false;
  return async (request: OutgoingRequest & { body: Uint8Array<ArrayBuffer> }): Promise<UpstreamReply> => {
    if (isStrict) return upstream(withoutAsk(request));
    const reply = await upstream(request);
    if (reply.status !== 400) return reply;
    const second = await upstream(withoutAsk(request));
    if (second.status === 400) {
      // It was about something else: the client gets the answer to what it sent.
      await second.body?.return?.();
      return reply;
    }
    await reply.body?.return?.();
    // An upstream that is busy, or refuses the key, says nothing about what it knows.
    if (second.status > 400) return second;
    if (!isStrict) onStrict();
    isStrict = true;
    return second;
  };
}

function withoutAsk(request: OutgoingRequest & { body: Uint8Array<ArrayBuffer> }): OutgoingRequest {
  const headers = new Headers(request.headers);
  const betas = (headers.get("anthropic-beta") ?? "")
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "" && !beta.startsWith(ASK_BETA));
  if (betas.length > 0) headers.set("anthropic-beta", betas.join(","));
  else headers.delete("anthropic-beta");
  const text = Buffer.from(request.body.buffer, request.body.byteOffset, request.body.byteLength).toString(
    "utf8",
  );
  return { ...request, headers, body: new Uint8Array(Buffer.from(removeMember(text, "safeguards"))) };
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

// They describe one connection, not the message.
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

function withoutHops(headers: Headers, alsoWithout: readonly string[]): Headers {
  const kept = new Headers(headers);
  const named = (headers.get("connection") ?? "").split(",").map((name) => name.trim());
  for (const name of [...HOP_BY_HOP, ...named, ...alsoWithout]) if (isName(name)) kept.delete(name);
  return kept;
}

// `Connection` may hold what is no header name at all; Headers would throw on it.
function isName(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/.test(text);
}

/**
 * The headers that a request takes along to the upstream. `host` is the upstream's own, the length
 * is rewritten, and `expect` was answered by the server that took the request in.
 */
export function requestHeaders(headers: Headers): Headers {
  return withoutHops(headers, ["host", "content-length", "expect"]);
}

/** The headers that a reply takes along to the client. Its length is set again. */
function replyHeaders(headers: Headers): Headers {
  return withoutHops(headers, ["content-length"]);
}

/** The media type of a message, in lower case and without parameters. */
export function mediaType(headers: Headers): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
}

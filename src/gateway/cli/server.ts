import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { errorFacts } from "../../error-facts.js";
import type { SafeguardsHandler } from "../handler.js";

/** Where a server listens, and how. */
export interface ServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** What `/health` says in addition to the status. */
  readonly health?: Readonly<Record<string, string>>;
  /** Milliseconds for the headers of a request, after which its connection is closed. Default 15000. */
  readonly headersTimeoutMs?: number;
}

/** A server that takes requests. */
export interface RunningServer {
  readonly host: string;
  readonly port: number;
  /** Takes no more requests, lets those under way finish, and resolves when the last is done. */
  close(): Promise<void>;
}

// Longer than load balancers keep idle connections (60 s is common), so that they never use one that is
// just closing.
const KEEP_ALIVE_MS = 65_000;
// A client sends its headers at once. Whoever takes longer holds a connection and gives nothing for it.
const HEADERS_MS = 15_000;
// The largest request of the messages API over a line of 1 Mbit/s, which is Node's own default.
const REQUEST_MS = 300_000;
// How often connections are looked at for both.
const CHECK_MS = 5_000;
// How soon after its last reply a connection that is kept open is closed while the server ends.
const IDLE_CHECK_MS = 100;

/** Serves a handler over HTTP, with `GET /health`. Rejects with {@link CannotListen} if it cannot listen there. */
export async function startServer(
  handler: SafeguardsHandler,
  { host: wantedHost, port: wantedPort, health = {}, headersTimeoutMs = HEADERS_MS }: ServerOptions,
): Promise<RunningServer> {
  const connections = new Map<Socket, number>();
  const timeouts = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: headersTimeoutMs,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: Math.min(CHECK_MS, headersTimeoutMs),
  };
  const server = createServer(timeouts, (incoming, outgoing) => {
    const { socket } = incoming;
    connections.set(socket, (connections.get(socket) ?? 0) + 1);
    outgoing.once("close", () => {
      const count = connections.get(socket);
      if (count) connections.set(socket, count - 1);
    });
    // Whatever fails here, the client has gone or its reply is cut: there is nothing to print.
    answer(handler, health, incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.on("connection", (socket) => {
    connections.set(socket, 0);
    socket.once("close", () => connections.delete(socket));
  });
  await listen(server, { host: wantedHost, port: wantedPort });
  const { address: host, port } = server.address() as AddressInfo;
  return { host, port, close: () => closeServer(server, connections) };
}

async function answer(
  handler: SafeguardsHandler,
  health: Readonly<Record<string, string>>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort(new DOMException("The client has gone.", "AbortError")));
  const url = urlOf(incoming);
  if (!url) return void outgoing.writeHead(400).end();
  const isHealth = incoming.method === "GET" && url.pathname === "/health";
  const response = isHealth
    ? Response.json({ status: "ok", ...health })
    : await handler(toRequest(incoming, url, gone.signal));
  await send(response, outgoing);
}

/** The address that the client asked for. `undefined` for one that is no URL. */
function urlOf({ url = "/", headers }: IncomingMessage): URL | undefined {
  // A proxy's form holds a whole URL, of which the gateway uses the path only.
  const path = url.startsWith("/") ? url : new URL(url, "http://gateway").pathname;
  const host = `http://${headers.host ?? "gateway"}`;
  return URL.canParse(path, host) ? new URL(host + path) : undefined;
}

function toRequest(incoming: IncomingMessage, url: URL, signal: AbortSignal): Request {
  const headers = new Headers();
  for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2)
    headers.append(incoming.rawHeaders[at]!, incoming.rawHeaders[at + 1]!);
  const { method = "GET" } = incoming;
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(url, {
    method,
    headers,
    signal,
    ...(hasBody ? { body: Readable.toWeb(incoming) as ReadableStream<Uint8Array>, duplex: "half" } : {}),
  });
}

/** Writes a reply as it comes. One that fails midway must not look complete: its connection is cut. */
async function send({ status, headers, body }: Response, outgoing: ServerResponse): Promise<void> {
  const lines: string[] = [];
  for (const [name, value] of headers) lines.push(name, value);
  outgoing.writeHead(status, lines);
  if (!body) return void outgoing.end();
  outgoing.flushHeaders();
  await pipeline(Readable.fromWeb(body as NodeReadableStream<Uint8Array>), outgoing);
}

function listen(server: Server, { host, port }: Pick<ServerOptions, "host" | "port">): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(new CannotListen({ host, port }, error)));
    server.listen(port, host, () => resolve());
  });
}

/** @param connections those that are open, with the number of requests under way on each */
async function closeServer(server: Server, connections: ReadonlyMap<Socket, number>): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  // Node's own `closeIdleConnections` leaves those open on which no request was ever made.
  const timer = setInterval(() => {
    for (const [socket, underWay] of connections) if (underWay === 0) socket.destroy();
  }, IDLE_CHECK_MS);
  await closed;
  clearInterval(timer);
}

/** The server cannot take its address: it is in use, not this machine's, or not allowed. */
export class CannotListen extends Error {
  override readonly name = "CannotListen";

  constructor({ host, port }: { host: string; port: number }, cause: unknown) {
    const address = host.includes(":") ? `[${host}]` : host;
    super(`The gateway cannot listen on ${address}:${port}: ${errorFacts(cause).errorCode ?? "unknown"}`, {
      cause,
    });
  }
}

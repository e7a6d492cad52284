import type { AddressInfo } from "node:net";
import { type HttpBindings, serve, type ServerType } from "@hono/node-server";
import { Hono } from "hono";
import { CannotListen } from "./cannot-listen.js";
import type { SafeguardsHandler } from "../handler.js";

/** Where a server listens. */
export interface ServerAddress {
  host: string;
  /** 0 takes a free one. */
  port: number;
}

/** A server that takes requests. */
export interface RunningServer {
  readonly host: string;
  readonly port: number;
  /** Takes no more requests, lets those under way finish, and resolves when the last is done. */
  close(): Promise<void>;
}

// Longer than load balancers keep idle lines (60 s is common), so that they never use one that is just closing.
const KEEP_ALIVE_MS = 65_000;
// How soon after its last reply a line that is kept open is closed while the server ends.
const IDLE_CHECK_MS = 100;

/** Serves a handler over HTTP, with `GET /health` beside it. Rejects with {@link CannotListen} if it cannot listen there. */
export async function startServer(
  handler: SafeguardsHandler,
  address: ServerAddress,
): Promise<RunningServer> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.get("/health", (context) => context.json({ status: "ok" }));
  app.all("*", async ({ req, env }) => {
    const response = await handler(req.raw);
    const { status, headers, body } = response;
    return body === null ? response : new Response(cutOnFailure(body, env), { status, headers });
  });
  // The handler rejects for a client that has gone: nobody reads this, and there is nothing to print.
  app.onError(() => new Response(null, { status: 500 }));

  const server = await listen(app, address);
  const { address: host, port } = server.address() as AddressInfo;
  return { host, port, close: () => closeServer(server) };
}

function listen(app: Hono<{ Bindings: HttpBindings }>, { host, port }: ServerAddress): Promise<ServerType> {
  return new Promise((resolve, reject) => {
    const serverOptions = { keepAliveTimeout: KEEP_ALIVE_MS };
    const server = serve({ fetch: app.fetch, hostname: host, port, serverOptions }, () => resolve(server));
    server.once("error", (error) => reject(new CannotListen({ host, port }, error)));
  });
}

/**
 * A reply that fails midway must not look complete to the client: its line is cut. Without this the
 * server would do so too, but print the failure.
 */
function cutOnFailure(
  body: ReadableStream<Uint8Array>,
  { outgoing }: HttpBindings,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch {
          outgoing.destroy();
          controller.close();
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

async function closeServer(server: ServerType): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  // A line that is kept open counts as one under way until it is closed as idle.
  const closeIdle = () => {
    if ("closeIdleConnections" in server) server.closeIdleConnections();
  };
  const timer = setInterval(closeIdle, IDLE_CHECK_MS);
  await closed;
  clearInterval(timer);
}

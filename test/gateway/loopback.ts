import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { startServer } from "../../src/gateway/cli/server.js";
import { createSafeguardsHandler, type SafeguardsOptions } from "langchain-auto-mode/safeguards";

/** A request as a server on loopback received it. */
export interface Received {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  body: Buffer;
}

export type Answer = (request: Received, response: ServerResponse) => void | Promise<void>;

/** Starts an HTTP server for one test. It keeps what it received. */
export async function startUpstream(answer: Answer) {
  const received: Received[] = [];
  const server = createServer((incoming, response) => {
    const parts: Buffer[] = [];
    incoming.on("data", (part: Buffer) => parts.push(part));
    incoming.on("end", () => {
      const { method = "", url = "", headers } = incoming;
      const request = { method, path: url, headers, body: Buffer.concat(parts) };
      received.push(request);
      void answer(request, response);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, server };
}

/** Starts a gateway for one test. */
export async function startGateway(options: SafeguardsOptions) {
  const gateway = await startServer(createSafeguardsHandler(options), { host: "127.0.0.1", port: 0 });
  onTestFinished(() => gateway.close());
  return `http://127.0.0.1:${gateway.port}`;
}

/** Resolves when a condition holds; tests that wait for what must come use it. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

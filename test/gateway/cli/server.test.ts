import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { startServer } from "../../../src/gateway/cli/server.js";
import { createSafeguardsHandler, type SafeguardsOptions } from "langchain-auto-mode/safeguards";
import { startUpstream, until } from "../loopback.js";
import { available, message, notFlagged, reply, request, send, toolUse } from "../messages.js";
import { ScriptedClassifier } from "../scripted-classifier.js";

async function start(options: Partial<SafeguardsOptions> = {}, headersTimeoutMs = 15_000) {
  const upstream = await startUpstream((received, response) =>
    reply(response, received, message([toolUse("toolu_a", "Bash", {})])),
  );
  const handler = createSafeguardsHandler({
    upstream: upstream.url,
    classifier: new ScriptedClassifier(),
    ...options,
  });
  const server = await startServer(handler, { host: "127.0.0.1", port: 0, headersTimeoutMs });
  onTestFinished(() => server.close());
  return { url: `http://127.0.0.1:${server.port}`, port: server.port, upstream };
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return socket;
}

describe("a connection", () => {
  test("whose headers come too slowly is closed", async () => {
    const { port, url } = await start({}, 200);
    const socket = await open(port);
    let answer = "";
    let isClosed = false;
    socket.on("data", (part) => (answer += part.toString()));
    socket.on("close", () => (isClosed = true));
    socket.write("POST /v1/messages HTTP/1.1\r\nhost: gateway\r\n");
    await until(() => isClosed);
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  test("that is idle costs nothing: a thousand of them, and requests are answered", async () => {
    const { port, url } = await start();
    await Promise.all(Array.from({ length: 1_000 }, () => open(port)));
    expect((await send(url, request())).results).toEqual(available({ toolu_a: notFlagged }));
  });

  test("whose client does not read slows the upstream down, and nothing piles up", async () => {
    const piece = Buffer.alloc(64 * 1024, "x");
    const sent = { bytes: 0 };
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { "content-type": "application/octet-stream" });
      const write = (): void => {
        // Two hundred megabytes, if the reader takes them.
        for (let isTaken = true; isTaken && sent.bytes < 200e6; sent.bytes += piece.length)
          isTaken = response.write(piece);
        response.once("drain", write);
      };
      write();
    });
    const { port } = await start({ upstream: upstream.url });
    const socket = await open(port);
    socket.pause();
    socket.write("GET /v1/files/f HTTP/1.1\r\nhost: gateway\r\n\r\n");
    // Buffers of the system fill up; then nothing moves any more.
    let before = -1;
    while (sent.bytes === 0 || sent.bytes !== before) {
      before = sent.bytes;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    expect(sent.bytes).toBeLessThan(50e6);
  });
});

describe("a request that is too large", () => {
  test("is answered with 413 in Anthropic's form, which says the limit, and goes no further", async () => {
    const { url, upstream } = await start();
    const response = await fetch(`${url}/v1/messages`, { method: "POST", body: new Uint8Array(50e6) });
    expect([response.status, await response.json()]).toEqual([
      413,
      {
        type: "error",
        error: {
          type: "request_too_large",
          message: expect.stringMatching(/33,554,432 bytes.*maxBodyBytes/),
        },
      },
    ]);
    expect(upstream.received).toEqual([]);
  });

  test("by a limit of your own: the largest passes, one byte more does not, whatever the path", async () => {
    const body = JSON.stringify(request({ stream: false }));
    const { url } = await start({ maxBodyBytes: Buffer.byteLength(body) });
    const post = async (path: string, text: string) =>
      (await fetch(url + path, { method: "POST", body: text })).status;
    expect(await post("/v1/messages", body)).toBe(200);
    expect(await post("/v1/messages", `${body} `)).toBe(413);
    expect(await post("/v1/messages/count_tokens", `${body} `)).toBe(413);
    expect(await post("/v1/files", `${body} `)).toBe(200);
  });
});

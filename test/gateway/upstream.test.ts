import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { startGateway, startUpstream } from "./loopback.js";
import { available, message, notFlagged, reply, request, send, toolUse } from "./messages.js";
import { ScriptedClassifier } from "./scripted-classifier.js";

const whole = message([toolUse("toolu_a", "Bash", { command: "ls" })]);
const verdicts = available({ toolu_a: notFlagged });
const betas = "fine-grained-2025-05-14,dangerous-tool-use-2026-09-03";

const startStrict = () =>
  startUpstream((received, response) => {
    const body = received.body.toString("utf8");
    const isRefused =
      body.includes("safeguards") ||
      String(received.headers["anthropic-beta"]).includes("dangerous-tool-use");
    if (isRefused) response.writeHead(400).end('{"type":"error","error":{"type":"invalid_request_error"}}');
    else reply(response, received, whole);
  });

describe("an upstream that answers 400 to safeguards", () => {
  test("is asked again without field and beta, and the reply carries verdicts as always", async () => {
    const upstream = await startStrict();
    const onStrictUpstream = vi.fn<() => void>();
    const url = await startGateway({
      upstream: upstream.url,
      classifier: new ScriptedClassifier(),
      onStrictUpstream,
    });
    const asked = request({ stream: false, big: "12345678901234567890" });
    expect((await send(url, asked, { "anthropic-beta": betas })).results).toEqual(verdicts);
    expect(upstream.received).toHaveLength(2);
    expect(JSON.parse(upstream.received[1]!.body.toString())).toEqual({ ...asked, safeguards: undefined });
    expect(upstream.received[1]!.headers["anthropic-beta"]).toBe("fine-grained-2025-05-14");
    // From now on so, and said once.
    expect((await send(url, asked, { "anthropic-beta": betas })).results).toEqual(verdicts);
    expect(upstream.received).toHaveLength(3);
    expect(onStrictUpstream).toHaveBeenCalledOnce();
  });

  test("and is too busy the second time is not taken for strict: the next request asks again", async () => {
    let requests = 0;
    const upstream = await startUpstream((received, response) => {
      requests += 1;
      if (requests === 1) response.writeHead(400).end("{}");
      else if (requests === 2) response.writeHead(529).end("{}");
      else reply(response, received, whole);
    });
    const onStrictUpstream = vi.fn<() => void>();
    const url = await startGateway({
      upstream: upstream.url,
      classifier: new ScriptedClassifier(),
      onStrictUpstream,
    });
    const ask = async () => fetch(`${url}/v1/messages`, { method: "POST", body: JSON.stringify(request()) });
    expect((await ask()).status).toBe(529);
    expect((await ask()).status).toBe(200);
    expect(upstream.received[2]!.body.toString()).toContain("safeguards");
    expect(onStrictUpstream).not.toHaveBeenCalled();
  });

  test("for another reason answers the client with what it said", async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(400, { "content-type": "application/json" }).end('{"type":"error"}');
    });
    const onStrictUpstream = vi.fn<() => void>();
    const url = await startGateway({
      upstream: upstream.url,
      classifier: new ScriptedClassifier(),
      onStrictUpstream,
    });
    const answer = await fetch(`${url}/v1/messages`, { method: "POST", body: JSON.stringify(request()) });
    expect([answer.status, await answer.json()]).toEqual([400, { type: "error" }]);
    expect(onStrictUpstream).not.toHaveBeenCalled();
  });
});

test("an upstream function that is fetch, in front of a service that compresses: replies can be read", async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    response.end(gzipSync(JSON.stringify(whole)));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const url = await startGateway({
    upstream: async (sent) => fetch(`http://127.0.0.1:${port}`, { method: "POST", body: await sent.text() }),
    classifier: new ScriptedClassifier(),
  });
  const plain = await fetch(`${url}/v1/messages`, { method: "POST", body: "{}" });
  expect(await plain.json()).toEqual(whole);
  expect((await send(url, request({ stream: false }))).results).toEqual(verdicts);
});

test("names of models may hold *, and the first that matches wins", async () => {
  const upstream = await startUpstream((received, response) => reply(response, received, whole));
  const url = await startGateway({
    upstream: upstream.url,
    classifier: new ScriptedClassifier(),
    mapModel: { "claude-sonnet-5*": "small", "*": "large" },
  });
  for (const model of ["claude-sonnet-5[1m]", "claude-opus-5"])
    await send(url, { ...request({ stream: false }), model });
  expect(
    upstream.received.map(({ body }) => (JSON.parse(body.toString()) as { model: string }).model),
  ).toEqual(["small", "large"]);
});

import { type IncomingMessage, request as nodeRequest } from "node:http";
import { gzipSync } from "node:zlib";
import { request as sendRaw } from "undici";
import { describe, expect, test } from "vitest";
import type { SafeguardsOptions } from "langchain-auto-mode/safeguards";
import { startGateway, startUpstream, until } from "./loopback.js";
import { available, message, notFlagged, reply, request, send, text, toolUse } from "./messages.js";
import { ScriptedClassifier } from "./scripted-classifier.js";

const whole = message([toolUse("toolu_a", "Bash", { command: "ls" })]);
const gateway = (upstream: SafeguardsOptions["upstream"], options: Partial<SafeguardsOptions> = {}) =>
  startGateway({ upstream, classifier: new ScriptedClassifier(), ...options });

describe("a request without safeguards", () => {
  test("passes untouched, and so does its reply: method, path, query, headers and every byte", async () => {
    const body = Buffer.from('{ "model" : "m\\u00e9",\r\n "n": 12345678901234567890, "stream":true }\n');
    const answer = gzipSync('event: message_delta\ndata: {"type":"message_delta","delta":{}}\n\n');
    const upstream = await startUpstream((_, response) => {
      response.writeHead(207, {
        "content-type": "text/event-stream",
        "content-encoding": "gzip",
        "x-up": "1",
        "set-cookie": ["a=1", "b=2"],
      });
      response.end(answer);
    });
    const url = await gateway(`${upstream.url}/base/`);
    const {
      statusCode,
      headers,
      body: replied,
    } = await sendRaw(`${url}/v1/messages?beta=true&q=%2F`, {
      method: "POST",
      headers: {
        "accept-encoding": "gzip, deflate, br, zstd",
        "x-api-key": "sk-client",
        "anthropic-beta": "a,b",
      },
      body,
    });
    expect(Buffer.from(await replied.arrayBuffer())).toEqual(answer);
    expect([statusCode, headers["x-up"], headers["set-cookie"]]).toEqual([207, "1", ["a=1", "b=2"]]);
    expect(headers["content-encoding"]).toBe("gzip");
    const [seen] = upstream.received;
    expect([seen!.method, seen!.path]).toEqual(["POST", "/base/v1/messages?beta=true&q=%2F"]);
    expect(seen!.body).toEqual(body);
    expect(seen!.headers).toMatchObject({
      host: new URL(upstream.url).host,
      "accept-encoding": "gzip, deflate, br, zstd",
      "x-api-key": "sk-client",
      "anthropic-beta": "a,b",
      "content-length": String(body.length),
    });
  });

  test("headers that belong to one connection do not pass, in either direction", async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, {
        connection: "close, x-up-hop",
        "x-up-hop": "1",
        "keep-alive": "timeout=99",
        "x-up": "1",
      });
      response.end("ok");
    });
    const url = await gateway(upstream.url);
    const headers = {
      connection: "close, x-hop, (",
      "x-hop": "1",
      te: "trailers",
      expect: "100-continue",
      "x-own": "1",
    };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      nodeRequest(url, { method: "POST", headers }, resolve).on("error", reject).end("body");
    });
    answer.resume();
    const seen = upstream.received[0]!.headers;
    expect(seen).toMatchObject({ "x-own": "1" });
    for (const name of ["x-hop", "te", "expect"]) expect(seen).not.toHaveProperty(name);
    expect(answer.headers).toMatchObject({ "x-up": "1" });
    expect(answer.headers).not.toHaveProperty("x-up-hop");
    expect(answer.headers["keep-alive"]).not.toBe("timeout=99");
  });

  test("streams as it comes: a byte arrives before the next is written", async () => {
    let writeMore: (() => void) | undefined;
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: 1");
      writeMore = () => response.end("\n\n");
    });
    const response = await fetch(`${await gateway(upstream.url)}/v1/messages`, {
      method: "POST",
      body: "{}",
    });
    const reader = response.body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("data: 1");
    writeMore!();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("\n\n");
    expect((await reader.read()).done).toBe(true);
  });

  test.each(["GET", "DELETE", "PUT", "PATCH", "OPTIONS"] as const)(
    "%s passes, with any path",
    async (method) => {
      const upstream = await startUpstream((received, response) => {
        response.end(`${received.method} ${received.path} ${received.body.toString()}`);
      });
      const body = method === "PUT" || method === "PATCH" ? "some bytes" : null;
      const response = await fetch(`${await gateway(upstream.url)}/v1/files/a%20b?x=1`, { method, body });
      expect(await response.text()).toBe(`${method} /v1/files/a%20b?x=1 ${body ?? ""}`);
    },
  );

  test.each([204, 304])("a reply without a body, status %i, passes", async (status) => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(status, { etag: '"1"' }).end();
    });
    const { statusCode, headers } = await sendRaw(`${await gateway(upstream.url)}/v1/models`);
    expect([statusCode, headers["etag"]]).toEqual([status, '"1"']);
  });

  test("HEAD passes", async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { "x-up": "1" }).end();
    });
    const { statusCode, headers } = await sendRaw(`${await gateway(upstream.url)}/`, { method: "HEAD" });
    expect([statusCode, headers["x-up"], upstream.received[0]!.method]).toEqual([200, "1", "HEAD"]);
  });

  test("what is no JSON passes", async () => {
    const upstream = await startUpstream((received, response) => {
      response.end(received.body);
    });
    const url = await gateway(upstream.url, { mapModel: { a: "b" } });
    for (const body of ["", "safeguards", '"safeguards"', "null", '["safeguards"]'])
      expect(await (await fetch(`${url}/v1/messages`, { method: "POST", body })).text()).toBe(body);
  });
});

describe("a judged request", () => {
  test("asks the upstream for an identity encoding, and keeps its body and its other headers", async () => {
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const sent = request({
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
      context_management: { edits: [] },
      tools: [{ name: "Bash", defer_loading: true }],
      messages: [
        { role: "user", content: "Hi" },
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Go on" }] },
      ],
    });
    const { status, results, headers } = await send(await gateway(upstream.url), sent, {
      "accept-encoding": "gzip, br",
      "anthropic-beta": "dangerous-tool-use-2026-09-03",
    });
    expect([status, results]).toEqual([200, available({ toolu_a: notFlagged })]);
    expect(headers.get("request-id")).toBe("req_up");
    const [seen] = upstream.received;
    expect(JSON.parse(seen!.body.toString())).toEqual(sent);
    expect(seen!.headers).toMatchObject({
      "accept-encoding": "identity",
      "x-api-key": "sk-client",
      "anthropic-beta": "dangerous-tool-use-2026-09-03",
    });
  });

  test("a reply that comes encoded all the same passes as it is: without verdicts nothing runs", async () => {
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
      response.end(gzipSync(JSON.stringify(whole)));
    });
    const { results, parsed } = await send(await gateway(upstream.url), request({ stream: false }));
    expect(parsed).toEqual([whole]);
    expect(results).toBeUndefined();
  });

  test.each([
    ["another type", [{ type: "something_else" }]],
    ["an empty list", []],
    ["a text", "dangerous_tool_use"],
    ["a number", 7],
    ["null", null],
    ["a list of nulls", [null, 1, "x"]],
    ["an object of another shape", { dangerous_tool_use: true }],
  ])("safeguards that hold %s ask for nothing: the reply passes", async (_, safeguards) => {
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const url = await gateway(upstream.url);
    const { status, raw } = await send(url, request({ safeguards }));
    expect([status, raw.includes("safeguard_results")]).toEqual([200, false]);
    expect(JSON.parse(upstream.received[0]!.body.toString())).toMatchObject({ safeguards });
  });

  test.each([
    ["no context", [{ type: "dangerous_tool_use" }]],
    ["a context that is a text", [{ type: "dangerous_tool_use", classifier_context: "x" }]],
    [
      "a context of unknown keys",
      [{ type: "dangerous_tool_use", classifier_context: { v: 9, new: [{}] }, more: 1 }],
    ],
    [
      "trusted directories as texts",
      [{ type: "dangerous_tool_use", classifier_context: { trusted_directories: ["/p"] } }],
    ],
    [
      "another entry before it",
      [{ type: "other" }, { type: "dangerous_tool_use", classifier_context: null }],
    ],
    ["one entry twice", [{ type: "dangerous_tool_use" }, { type: "dangerous_tool_use" }]],
  ])("safeguards with %s are answered, with one entry", async (_, safeguards) => {
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const { results } = await send(await gateway(upstream.url), request({ safeguards }));
    expect(results).toEqual(available({ toolu_a: notFlagged }));
  });

  test("errors of the upstream pass as they are, streamed or not", async () => {
    const error = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';
    for (const status of [400, 404, 429, 529]) {
      const upstream = await startUpstream((_, response) => {
        response.writeHead(status, { "content-type": "application/json", "retry-after": "7" }).end(error);
      });
      const sent = await send(await gateway(upstream.url), request());
      expect([sent.status, sent.raw, sent.headers.get("retry-after")]).toEqual([status, error, "7"]);
    }
  });

  test("an error event in a stream passes", async () => {
    const broken = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n';
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(broken);
    });
    expect((await send(await gateway(upstream.url), request())).raw).toBe(broken);
  });

  test("a message comes back with every byte it had, large numbers included", async () => {
    const raw = `{"id": "msg_1",  "content":[{"type":"tool_use","id":"toolu_a","name":"Bash","input":{"n":12345678901234567890}}] }\n`;
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(raw);
    });
    const sent = await send(await gateway(upstream.url), request({ stream: false }));
    expect(sent.results).toEqual(available({ toolu_a: notFlagged }));
    const added = `,"safeguard_results":${JSON.stringify(sent.results)}`;
    expect(sent.raw.replace(added, "")).toBe(raw);
  });

  test("an upstream that is not there is status 502 in the form of the API, and the operator is notified", async () => {
    const upstream = await startUpstream(() => {});
    await new Promise((resolve) => upstream.server.close(resolve));
    const seen: unknown[] = [];
    const url = await gateway(upstream.url, { onUpstreamError: (error) => void seen.push(error) });
    const { status, parsed } = await send(url, request());
    expect([status, parsed[0]]).toEqual([
      502,
      { type: "error", error: expect.objectContaining({ type: "api_error" }) },
    ]);
    await until(() => seen.length > 0);
    expect(seen[0]).toMatchObject({ code: "ECONNREFUSED" });
  });

  test("a message that is cut off on its way is status 502, a stream ends cut off", async () => {
    const upstream = await startUpstream((received, response) => {
      const isStream = received.body.includes('"stream":true');
      response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
      response.write(isStream ? "data: {}\n\n" : '{"content":');
      setTimeout(() => response.destroy(), 20);
    });
    const url = await gateway(upstream.url);
    expect((await send(url, request({ stream: false }))).status).toBe(502);
    await expect(send(url, request())).rejects.toThrow(/terminated|fetch failed/);
  });
});

const bodyFor = (model: string) =>
  `{"metadata":{"model":"b"}, "list":["model","b"], "model" : ${model}, "n":1e999, "x": "\\"model\\":"}`;

describe("a mapped model", () => {
  test("is asked for instead, and no other byte of the request changes", async () => {
    const upstream = await startUpstream((received, response) => {
      response.end(received.body);
    });
    const url = await gateway(upstream.url, { mapModel: { "claude-sonnet-5": 'my "model"', b: "c" } });
    for (const path of ["/v1/messages", "/v1/messages/count_tokens?beta=true"]) {
      const response = await fetch(`${url}${path}`, { method: "POST", body: bodyFor('"claude-sonnet-5"') });
      expect(await response.text()).toBe(bodyFor('"my \\"model\\""'));
    }
    const other = await fetch(`${url}/v1/messages`, { method: "POST", body: bodyFor('"d"') });
    expect(await other.text()).toBe(bodyFor('"d"'));
  });

  test("is judged like any other", async () => {
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const url = await gateway(upstream.url, { mapModel: { "model-a": "model-b" } });
    expect((await send(url, request())).results).toEqual(available({ toolu_a: notFlagged }));
    expect(JSON.parse(upstream.received[0]!.body.toString())).toMatchObject({
      model: "model-b",
      stream: true,
    });
  });
});

describe("an upstream that is a function", () => {
  test("gets the request as it came, and its reply is judged", async () => {
    const seen: unknown[] = [];
    const url = await gateway(async (asked) => {
      seen.push(
        asked.method,
        new URL(asked.url).pathname,
        asked.headers.get("accept-encoding"),
        asked.headers.has("host"),
      );
      const { stream } = (await asked.json()) as { stream: boolean };
      return stream ? new Response(null, { status: 404 }) : Response.json(whole);
    });
    expect((await send(url, request({ stream: false }))).results).toEqual(available({ toolu_a: notFlagged }));
    expect(seen).toEqual(["POST", "/v1/messages", "identity", false]);
    expect(
      (await sendRaw(`${url}/v1/messages`, { method: "POST", body: '{"stream":true}' })).statusCode,
    ).toBe(404);
  });
});

describe("secrets", () => {
  test("the client's key reaches the upstream and not the classifier; the system prompt stays away from it", async () => {
    const classifier = new ScriptedClassifier();
    const upstream = await startUpstream((received, response) =>
      reply(response, received, message([text("a"), ...(whole["content"] as [])])),
    );
    const url = await gateway(upstream.url, { classifier });
    await send(url, request({ system: "Secret system prompt." }), { authorization: "Bearer sk-token" });
    expect(upstream.received[0]!.headers).toMatchObject({
      "x-api-key": "sk-client",
      authorization: "Bearer sk-token",
    });
    expect(classifier.requests).toHaveLength(1);
    expect(JSON.stringify(classifier.requests)).not.toMatch(/sk-client|sk-token|Secret system/);
  });
});

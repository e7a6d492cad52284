import type { BaseDecisionModel } from "@langchain/core/decisions";
import {
  type HttpModelOptions,
  OpenAIDecisionModel,
  SystemOneDecisionModel,
} from "langchain-auto-mode/classifiers";
import { http, HttpResponse, type JsonBodyType } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { failureOf } from "./failures.js";
import { loopback } from "./loopback.js";
import { printsOf } from "./prints.js";
import { oneCall, risky } from "./questions.js";

const KEY = "key-0123456789-abcdef";
const request = { state: oneCall, questions: { call_1: risky } };
const twoQuestions = { state: oneCall, questions: { call_1: risky, call_2: risky } };

interface Client {
  name: string;
  path: string;
  keyVariable: string;
  baseURLVariable: string;
  /** What the client adds to the server's address to make the base URL. */
  root: string;
  make(options: HttpModelOptions): BaseDecisionModel;
  /** A body with these probabilities. */
  body(risks: Record<string, unknown>): Record<string, JsonBodyType>;
  requestIdHeader: string;
}
const clients: Client[] = [
  {
    name: "OpenAIDecisionModel",
    path: "/v1/decisions",
    keyVariable: "OPENAI_API_KEY",
    baseURLVariable: "OPENAI_BASE_URL",
    root: "/v1",
    make: (options) => new OpenAIDecisionModel(options),
    body: (risks) => ({
      model: "judge-2",
      answers: Object.entries(risks).map(([name, probability]) => ({
        type: "predicate",
        name,
        probability: probability as number,
      })),
      usage: { input_tokens: 100, output_tokens: 0, total_tokens: 100 },
    }),
    requestIdHeader: "x-request-id",
  },
  {
    name: "SystemOneDecisionModel",
    path: "/v1/systemone",
    keyVariable: "TYPESAFE_API_KEY",
    baseURLVariable: "TYPESAFE_BASE_URL",
    root: "",
    make: (options) => new SystemOneDecisionModel(options),
    body: (risks) => ({
      model: "judge-2",
      answers: Object.fromEntries(
        Object.entries(risks).map(([name, noul]) => [name, { type: "noul", noul: noul as number }]),
      ),
      usage: { input_tokens: 100, output_tokens: 0 },
    }),
    requestIdHeader: "x-typesafe-request-id",
  },
];

const ADDRESS = "https://judge.test";
const requests: Request[] = [];
const server = setupServer();
beforeAll(() => server.listen({ onUnhandledRequest: "error" }));
beforeEach(() => {
  requests.length = 0;
});
afterEach(() => {
  server.resetHandlers();
  vi.unstubAllEnvs();
});
afterAll(() => server.close());

/** A server that sends headers and half a body, and tells when a request's connection ends. */
async function stalling() {
  let arrived: () => void;
  let ended: () => void;
  const arrival = new Promise<void>((resolve) => (arrived = resolve));
  const end = new Promise<void>((resolve) => (ended = resolve));
  const stalled = await loopback((_, response) => {
    response.on("close", () => ended());
    response.writeHead(200, { "content-type": "application/json" });
    response.write('{"answers":', () => arrived());
  });
  return { ...stalled, arrival, end };
}

describe.each(clients)("$name", (client) => {
  const model = (options: HttpModelOptions = {}) =>
    client.make({ apiKey: KEY, baseURL: ADDRESS + client.root, ...options });
  /** Answers every request in this way. */
  const respond = (make: (sent: Request) => Response | Promise<Response>, address = ADDRESS) =>
    server.use(
      http.post(address + client.path, ({ request: sent }) => {
        requests.push(sent);
        return make(sent);
      }),
    );

  test("answers with usage, model and request id, and ignores fields it does not know", async () => {
    const { answers, ...rest } = client.body({ call_1: 0.25, call_9: 1 });
    respond(() =>
      HttpResponse.json(
        { ...rest, answers: answers!, price: 1 },
        { headers: { [client.requestIdHeader]: "req_1" } },
      ),
    );
    expect(await model().invoke(request)).toEqual({
      model: "judge-2",
      answers: { call_1: { type: "noul", noul: 0.25 } },
      usage_metadata: { input_tokens: 100, output_tokens: 0, total_tokens: 100 },
      requestId: "req_1",
    });
    expect(requests[0]!.headers.get("authorization")).toBe(`Bearer ${KEY}`);
  });

  test.each([400, 401, 403, 404, 409, 422, 429, 500, 502, 503])(
    "HTTP %i is an error after one request",
    async (status) => {
      respond(() =>
        HttpResponse.json({ error: { message: "the context_length of it", code: "bad" } }, { status }),
      );
      const error = await failureOf(model().invoke(request));
      expect([error.reason, error.status, requests.length]).toEqual(["error", status, 1]);
      expect(error.message).toBe("A guarded call got no verdict: error.");
    },
  );

  test.each<[number, JsonBodyType]>([
    [413, null],
    [413, "Payload Too Large"],
    [400, { error: { code: "context_length_exceeded", message: "Too long." } }],
    [400, { error: { code: "max_tokens_exceeded", message: "Too long." } }],
    [400, { error: { message: "This model's maximum context length is 8192 tokens." } }],
    [422, { error: { message: "The input is too long for this model." } }],
  ])("HTTP %i with %j says that the input is too long", async (status, body) => {
    respond(() => HttpResponse.json(body, { status }));
    const error = await failureOf(model().invoke(request));
    expect([error.reason, error.status]).toEqual(["input_too_long", status]);
  });

  test("HTTP 400 by a content filter is a refusal", async () => {
    respond(() => HttpResponse.json({ error: { code: "content_filter", message: "No." } }, { status: 400 }));
    expect((await failureOf(model().invoke(request))).reason).toBe("refused");
  });

  test("is asked again only if that is configured", async () => {
    respond(() =>
      requests.length === 1
        ? new HttpResponse(null, { status: 503, headers: { "retry-after-ms": "1" } })
        : HttpResponse.json(client.body({ call_1: 0.5 })),
    );
    const response = await model({ maxRetries: 1 }).invoke(request);
    expect(response.nouls.call_1.noul).toBe(0.5);
    expect(requests).toHaveLength(2);
  });

  test.each<[string, (body: Record<string, JsonBodyType>) => Response]>([
    ["an empty body", () => new HttpResponse(null, { status: 200 })],
    ["an empty JSON body", () => new HttpResponse("", { headers: { "content-type": "application/json" } })],
    ["204", () => new HttpResponse(null, { status: 204 })],
    ["text", () => HttpResponse.text('{"answers":{"call_1":{"type":"noul","noul":0}}')],
    ["HTML", () => HttpResponse.html("<html>Sign in</html>")],
    [
      "a cut body",
      (body) =>
        new HttpResponse(JSON.stringify(body).slice(0, -9), {
          headers: { "content-type": "application/json" },
        }),
    ],
    ["null", () => HttpResponse.json(null)],
    ["a list", (body) => HttpResponse.json([body])],
    ["answers that are null", (body) => HttpResponse.json({ ...body, answers: null })],
    ["answers that are a text", (body) => HttpResponse.json({ ...body, answers: "call_1" })],
    [
      "answers that hold null",
      (body) =>
        HttpResponse.json({ ...body, answers: Array.isArray(body["answers"]) ? [null] : { call_1: null } }),
    ],
    ["no answers", (body) => HttpResponse.json({ model: body["model"]! })],
    ["an error body", () => HttpResponse.json({ error: { message: "no" } })],
  ])("200 with %s is an error", async (_, make) => {
    respond(() => make(client.body({ call_1: 0 })));
    const error = await failureOf(model().invoke(request));
    expect([error.reason, error.answers]).toEqual(["error", {}]);
  });

  test.each([["0.5"], [null], [true], [1.01], [-0.01], [[0.5]], [{}], [undefined]])(
    "a probability of %j fails its own question alone",
    async (bad) => {
      respond(() => HttpResponse.json(client.body({ call_1: bad, call_2: 1 })));
      const error = await failureOf(model().invoke(twoQuestions));
      expect([error.reason, error.answers]).toEqual(["error", { call_2: { type: "noul", noul: 1 } }]);
    },
  );

  test("a question that is left out fails alone", async () => {
    respond(() => HttpResponse.json(client.body({ call_2: 0 })));
    const error = await failureOf(model().invoke(twoQuestions));
    expect(error.answers).toEqual({ call_2: { type: "noul", noul: 0 } });
    expect((error.cause as Error).message).toBe("call_1: there is no answer");
  });

  test("model and usage that are odd do not matter", async () => {
    respond(() =>
      HttpResponse.json({ ...client.body({ call_1: 0.5 }), model: 7, usage: { input_tokens: "many" } }),
    );
    const response = await model({ model: "mine" }).invoke(request);
    expect(response).toMatchObject({ model: "mine", answers: { call_1: { noul: 0.5 } } });
    expect(response.usage_metadata).toBeUndefined();
  });

  test("a connection that fails is an error without a status", async () => {
    respond(() => HttpResponse.error());
    const error = await failureOf(model().invoke(request));
    expect([error.reason, error.status]).toEqual(["error", undefined]);
  });

  test("a connection that is cut within the body is an error", async () => {
    const broken = await loopback((_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      response.write('{"answers":', () => response.destroy());
    });
    server.close();
    try {
      const error = await failureOf(model({ baseURL: broken.url + client.root }).invoke(request));
      expect(error.reason).toBe("error");
    } finally {
      server.listen({ onUnhandledRequest: "error" });
      await broken.close();
    }
  });

  describe("with headers sent and a body that stalls", () => {
    test("the request ends with the caller's signal, which is no failure", async () => {
      server.close();
      const stalled = await stalling();
      const abort = new AbortController();
      const stop = new Error("The user pressed stop.");
      const asked = model({ baseURL: stalled.url + client.root }).invoke(request, { signal: abort.signal });
      void stalled.arrival.then(() => abort.abort(stop));
      await expect(asked).rejects.toBe(stop);
      await stalled.end;
      await stalled.close();
      server.listen({ onUnhandledRequest: "error" });
    });

    test("the request ends when the time is over", async () => {
      server.close();
      const stalled = await stalling();
      const error = await failureOf(
        model({ baseURL: stalled.url + client.root, timeoutMs: 100 }).invoke(request),
      );
      expect(error.reason).toBe("timeout");
      await stalled.end;
      await stalled.close();
      server.listen({ onUnhandledRequest: "error" });
    });
  });

  test("a signal that is aborted before sends nothing", async () => {
    await expect(
      model().invoke(request, { signal: AbortSignal.abort(new Error("too late")) }),
    ).rejects.toThrow("too late");
    expect(requests).toEqual([]);
  });

  test("key and address come from the environment", async () => {
    vi.stubEnv(client.keyVariable, ` ${KEY} `);
    vi.stubEnv(client.baseURLVariable, `https://other.test${client.root}`);
    respond(() => HttpResponse.json(client.body({ call_1: 0.5 })), "https://other.test");
    await client.make({}).invoke(request);
    expect(requests[0]!.headers.get("authorization")).toBe(`Bearer ${KEY}`);
  });

  test("headers and fetch of one's own are used", async () => {
    const fetched: string[] = [];
    const fetch: typeof globalThis.fetch = async (input, init) => {
      fetched.push(new Request(input).url);
      expect(new Headers(init?.headers).get("x-team")).toBe("security-team");
      return HttpResponse.json(client.body({ call_1: 0.5 }));
    };
    await model({ fetch, headers: { "x-team": "security-team" } }).invoke(request);
    expect(fetched).toEqual([ADDRESS + client.path]);
  });

  describe("the key appears nowhere", () => {
    const headers = { "x-gateway-token": "token-0123456789" };

    test("not in the model's prints", () => {
      const prints = printsOf(model({ headers }));
      expect(prints).toContain(model().model);
      expect(prints).not.toContain(KEY);
      expect(prints).not.toContain(headers["x-gateway-token"]);
    });

    test("not in an error whose response echoes the request's headers", async () => {
      respond((sent) => {
        const echo = Object.fromEntries(sent.headers);
        return HttpResponse.json(
          { error: { message: `Bad credentials ${JSON.stringify(echo)}`, headers: echo } },
          { status: 401, headers: { "x-echo": JSON.stringify(echo) } },
        );
      });
      const error = await failureOf(model({ headers }).invoke(request));
      const prints = printsOf(error);
      expect(error.status).toBe(401);
      expect(prints).toContain("Bad credentials");
      expect(prints).not.toContain(KEY);
      expect(prints).not.toContain(headers["x-gateway-token"]);
    });
  });

  test("a question about a place in an image is a clear error", async () => {
    const box = { type: "box", instructions: "Where?" } as const;
    await expect(model().invoke({ state: "x", questions: { where: box } })).rejects.toThrow(
      `${client.name} cannot answer the box question "where": it answers noul, choice and score.`,
    );
  });

  test.each<[string, unknown]>([
    [`Option "apiKey" is missing; pass it or set ${client.keyVariable}`, {}],
    ['Option "apiKey" is an empty string; expected a key as text', { apiKey: "" }],
    ['Option "apiKey" is an object; expected a key as text', { apiKey: {} }],
    ['Option "model" is a number; expected a model\'s name', { model: 1 }],
    ['Option "baseURL" is a string; expected an http or https URL', { apiKey: KEY, baseURL: "judge.test" }],
    [
      'Option "baseURL" is a string; expected an http or https URL',
      { apiKey: KEY, baseURL: "ftp://judge.test" },
    ],
    [
      'Option "maxRetries" is a number that does not fit; expected a whole number from 0',
      { apiKey: KEY, maxRetries: 0.5 },
    ],
    [
      'Option "timeoutMs" is a number that does not fit; expected a whole number of milliseconds from 1 to 2147483647',
      { apiKey: KEY, timeoutMs: 0 },
    ],
    [
      'Option "timeoutMs" is a number that does not fit; expected a whole number of milliseconds from 1 to 2147483647',
      { apiKey: KEY, timeoutMs: 2 ** 31 },
    ],
    ['Option "headers.x-a" is a number; expected a text', { apiKey: KEY, headers: { "x-a": 1 } }],
    ['Option "fetch" is a boolean; expected a function', { apiKey: KEY, fetch: true }],
    ['Option "maxretries" is not an option; check its spelling', { apiKey: KEY, maxretries: 1 }],
    ['Option "options" is an empty array; expected an object of options', []],
  ])("refuses at construction: %s", (message, options) => {
    vi.stubEnv(client.keyVariable, "");
    expect(() => client.make(options as HttpModelOptions)).toThrow(
      expect.objectContaining({ name: "ConfigurationError", message }),
    );
  });
});

import type { ServerResponse } from "node:http";
import { OpenAIDecisionModel, SystemOneDecisionModel } from "langchain-auto-mode/classifiers";
import type { SafeguardsOptions } from "langchain-auto-mode/safeguards";
import { describe, expect, test } from "vitest";
import { type Answer, startGateway, startUpstream } from "./loopback.js";
import {
  available,
  flagged,
  message,
  notFlagged,
  reply,
  request,
  send,
  toolUse,
  unavailable,
} from "./messages.js";

const whole = message([
  toolUse("toolu_a", "Bash", { command: "one" }),
  toolUse("toolu_b", "Bash", { command: "two" }),
]);
const both = (reason: string) => available({ toolu_a: unavailable(reason), toolu_b: unavailable(reason) });

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Sends a request through a gateway whose classifier is a service on loopback. */
async function throughService(answer: Answer, options: Partial<SafeguardsOptions> = {}) {
  const service = await startUpstream(answer);
  const upstream = await startUpstream((received, response) => reply(response, received, whole));
  const classifier = new SystemOneDecisionModel({ baseURL: service.url, apiKey: "sk-classifier" });
  const url = await startGateway({ upstream: upstream.url, classifier, retries: 0, ...options });
  const { results, status, parsed } = await send(url, request(), { authorization: "Bearer sk-token" });
  expect([status, parsed.at(-1)]).toEqual([200, { type: "message_stop" }]);
  return { results, service, upstream };
}

const low = { type: "noul", noul: 0.1 };
const high = { type: "noul", noul: 0.9 };

describe("a classifier's service", () => {
  test("is asked once about all calls, and each call gets its verdict", async () => {
    const { results, service } = await throughService((_, response) => {
      json(response, 200, { model: "jev-1", answers: { call_1: low, call_2: high } });
    });
    expect(results).toEqual(available({ toolu_a: notFlagged, toolu_b: flagged(expect.any(String)) }));
    expect(service.received).toHaveLength(1);
  });

  test("does not see the client's keys, and the upstream does not see the classifier's", async () => {
    const { service, upstream } = await throughService((_, response) => json(response, 200, {}));
    const seen = (received: typeof service.received) =>
      received.map(({ headers, body }) => JSON.stringify(headers) + body.toString()).join("");
    expect(seen(service.received)).toContain("sk-classifier");
    expect(seen(service.received)).not.toMatch(/sk-client|sk-token/);
    expect(seen(upstream.received)).toMatch(/sk-client[^]*sk-token|sk-token[^]*sk-client/);
    expect(seen(upstream.received)).not.toContain("sk-classifier");
  });

  test.each<[string, Answer]>([
    ["200 and nothing", (_, response) => void response.writeHead(200).end()],
    ["200 and an empty object", (_, response) => json(response, 200, {})],
    ["200 and no JSON", (_, response) => void response.writeHead(200).end("<html>")],
    [
      "200 and risks that are none",
      (_, response) =>
        json(response, 200, {
          model: "m",
          answers: { call_1: { type: "noul" }, call_2: { type: "noul", noul: 7 } },
        }),
    ],
    ["500", (_, response) => json(response, 500, { error: "broken" })],
    ["429", (_, response) => json(response, 429, { error: "slow down" })],
    [
      "a body that is cut off",
      (_, response) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": "999" });
        response.write('{"model":"m","answers":{"call_1":{"type":"noul","noul":0}');
        setTimeout(() => response.destroy(), 20);
      },
    ],
    ["a line that is cut before any answer", (_, response) => void response.destroy()],
  ])("that gives %s: every call is an error, and the reply goes out", async (_, answer) => {
    expect((await throughService(answer)).results).toEqual(both("error"));
  });

  test.each<[string, Answer]>([
    ["never answers", () => {}],
    [
      "stalls after its headers",
      (_, response) => {
        response.writeHead(200, { "content-type": "application/json" }).write('{"answers":');
      },
    ],
  ])("that %s: every call is a timeout, and the reply goes out", async (_, answer) => {
    expect((await throughService(answer, { timeoutMs: 300 })).results).toEqual(both("timeout"));
  });

  test("that finds the request too large: input_too_long", async () => {
    const { results } = await throughService((_, response) => json(response, 413, { error: "too large" }));
    expect(results).toEqual(both("input_too_long"));
  });

  test.each([401, 403, 404])(
    "that answers %i: an error, for `unsupported` would switch older clients off",
    async (status) => {
      const { results } = await throughService((_, response) => json(response, status, { error: "no" }));
      expect(results).toEqual(both("error"));
    },
  );

  test("that leaves a verdict out: that call alone is an error", async () => {
    const { results } = await throughService((_, response) => {
      json(response, 200, { model: "jev-1", answers: { call_2: low } });
    });
    expect(results).toEqual(available({ toolu_a: unavailable("error"), toolu_b: notFlagged }));
  });

  test("that refuses one call: refused, and the other keeps its verdict", async () => {
    const service = await startUpstream((_, response) => {
      const answers = [
        { type: "refusal", name: "call_1" },
        { type: "predicate", name: "call_2", probability: 0.1 },
      ];
      json(response, 200, { model: "m", answers });
    });
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const classifier = new OpenAIDecisionModel({ baseURL: `${service.url}/v1`, apiKey: "sk-classifier" });
    const url = await startGateway({ upstream: upstream.url, classifier });
    expect((await send(url, request())).results).toEqual(
      available({ toolu_a: unavailable("refused"), toolu_b: notFlagged }),
    );
  });

  test("that is not there: every call is an error", async () => {
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const gone = await startUpstream(() => {});
    await new Promise((resolve) => gone.server.close(resolve));
    const classifier = new SystemOneDecisionModel({ baseURL: gone.url, apiKey: "sk-classifier" });
    const url = await startGateway({ upstream: upstream.url, classifier });
    expect((await send(url, request())).results).toEqual(both("error"));
  });
});

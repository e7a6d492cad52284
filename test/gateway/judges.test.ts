import { SystemOneDecisionModel } from "langchain-auto-mode/classifiers";
import type { SafeguardRecord, SafeguardsOptions } from "langchain-auto-mode/safeguards";
import { describe, expect, test } from "vitest";
import { type Answer, startGateway, startUpstream, until } from "./loopback.js";
import { available, message, notFlagged, reply, request, send, toolUse, unavailable } from "./messages.js";
import { ScriptedClassifier } from "./scripted-classifier.js";

const whole = message([
  toolUse("toolu_a", "Bash", { command: "one" }),
  toolUse("toolu_b", "Bash", { command: "two" }),
]);
const low = { type: "noul", noul: 0.1 };
const answers = { model: "jev-1", answers: { call_1: low, call_2: low } };
const bothAllowed = available({ toolu_a: notFlagged, toolu_b: notFlagged });
const both = (reason: string) => available({ toolu_a: unavailable(reason), toolu_b: unavailable(reason) });

/** A service that fails as often as it is told to, and answers then. */
function failing(times: number, status: number, headers: Record<string, string> = {}): Answer {
  let failures = 0;
  return (_, response) => {
    const fails = failures++ < times;
    response.writeHead(fails ? status : 200, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(fails ? { error: "no" } : answers));
  };
}

/** Sends a request through a gateway whose classifier is a service on loopback. */
async function judge(answer: Answer, options: Partial<SafeguardsOptions> = {}) {
  const service = await startUpstream(answer);
  const upstream = await startUpstream((received, response) => reply(response, received, whole));
  const records: SafeguardRecord[] = [];
  const url = await startGateway({
    upstream: upstream.url,
    classifier: new SystemOneDecisionModel({ baseURL: service.url, apiKey: "sk-classifier" }),
    onJudged: (record) => void records.push(record),
    ...options,
  });
  const { results } = await send(url, request());
  return { results, record: records[0], asked: service.received.length };
}

describe("a classifier request that fails", () => {
  test.each([408, 429, 500, 503, 529])(
    "with status %i is repeated, and the record says so",
    async (status) => {
      const { results, record, asked } = await judge(failing(1, status));
      expect(results).toEqual(bothAllowed);
      expect(asked).toBe(2);
      expect(record).toMatchObject({ retries: 1, classifier: "jev-1" });
      expect(record).not.toHaveProperty("httpStatus");
    },
  );

  test("because the line broke is repeated", async () => {
    let isFirst = true;
    const { results } = await judge((received, response) => {
      if (!isFirst) return failing(0, 0)(received, response);
      isFirst = false;
      response.destroy();
    });
    expect(results).toEqual(bothAllowed);
  });

  test.each([400, 401, 403, 404, 413, 501])("with status %i is not repeated", async (status) => {
    expect((await judge(failing(1, status))).asked).toBe(1);
  });

  test("is repeated as often as it is set, and then an error with its cause in the record", async () => {
    const { results, record, asked } = await judge(failing(9, 503), { retries: 1 });
    expect([results, asked]).toEqual([both("error"), 2]);
    expect(record).toMatchObject({ retries: 1, httpStatus: 503 });
    expect((await judge(failing(9, 503), { retries: 0 })).asked).toBe(1);
  });

  test("is repeated when the service wants it, and not beyond the time limit", async () => {
    const times: number[] = [];
    const wanted = failing(1, 429, { "retry-after": "1" });
    const { results } = await judge((received, response) => {
      times.push(performance.now());
      return wanted(received, response);
    });
    expect(results).toEqual(bothAllowed);
    expect(times[1]! - times[0]!).toBeGreaterThan(950);
    const { asked } = await judge(failing(1, 429, { "retry-after": "60" }));
    expect(asked).toBe(1);
  });

  test("is not repeated for a client that has gone", async () => {
    let asked = 0;
    const service = await startUpstream((_, response) => {
      asked++;
      response.writeHead(503).end();
    });
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const classifier = new SystemOneDecisionModel({ baseURL: service.url, apiKey: "sk-classifier" });
    const url = await startGateway({ upstream: upstream.url, classifier, retries: 10 });
    const leaving = new AbortController();
    const body = JSON.stringify(request());
    const sent = fetch(`${url}/v1/messages`, { method: "POST", body, signal: leaving.signal });
    const read = sent.then((response) => response.text());
    await until(() => asked === 1);
    leaving.abort();
    await expect(read).rejects.toThrow("aborted");
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(asked).toBe(1);
  });
});

describe("a fallback", () => {
  test("judges when the classifier is down, and the record names it and the cause", async () => {
    const fallback = new ScriptedClassifier(() => 0);
    const { results, record } = await judge(failing(1, 401), { fallback });
    expect(results).toEqual(bothAllowed);
    expect(record).toMatchObject({ classifier: "scripted-1", httpStatus: 401 });
  });

  test("is asked only about the calls that were left open", async () => {
    const fallback = new ScriptedClassifier(() => 0);
    const { results, record } = await judge(
      (_, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ model: "jev-1", answers: { call_2: { type: "noul", noul: 0.9 } } }));
      },
      { fallback },
    );
    expect(results).toEqual(
      available({ toolu_a: notFlagged, toolu_b: expect.objectContaining({ outcome: "flagged" }) }),
    );
    expect(fallback.states.map(({ tool_calls }) => Object.values(tool_calls))).toEqual([
      [expect.objectContaining({ args: { command: "one" } })],
    ]);
    expect(record).toMatchObject({ classifier: expect.stringMatching(/ > scripted-1$/) });
  });

  test("has half of the time when the classifier does not answer", async () => {
    const fallback = new ScriptedClassifier(() => 0);
    const { results } = await judge(() => {}, { fallback, timeoutMs: 600 });
    expect(results).toEqual(bothAllowed);
  });

  test("is not asked when the classifier has answered", async () => {
    const fallback = new ScriptedClassifier(() => 1);
    expect((await judge(failing(0, 0), { fallback })).results).toEqual(bothAllowed);
    expect(fallback.requests).toEqual([]);
  });

  test("that fails too leaves the classifier's reason", async () => {
    const fallback = new ScriptedClassifier(() => Promise.reject(new Error("down")));
    const { results, record } = await judge(failing(1, 413), { fallback });
    expect(results).toEqual(both("input_too_long"));
    expect(record).toMatchObject({ httpStatus: 413 });
  });
});

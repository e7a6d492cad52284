import { ClassificationError } from "langchain-auto-mode";
import { describe, expect, test } from "vitest";
import type { SafeguardsOptions } from "langchain-auto-mode/safeguards";
import { startGateway, startUpstream } from "./loopback.js";
import {
  available,
  flagged,
  type Json,
  message,
  notFlagged,
  reply,
  request,
  send,
  text,
  toolUse,
  unavailable,
  unsupported,
} from "./messages.js";
import { type Judge, ScriptedClassifier } from "./scripted-classifier.js";

const bash = (id: string, command: string) => toolUse(id, "Bash", { command });

/** Sends one request through a gateway, both ways, and expects the same verdicts of both. */
async function judged(
  whole: Json,
  classifier: SafeguardsOptions["classifier"],
  options: Partial<SafeguardsOptions> = {},
) {
  const upstream = await startUpstream((received, response) => reply(response, received, whole));
  const gateway = await startGateway({ upstream: upstream.url, classifier, ...options });
  const streamed = await send(gateway, request({ stream: true }));
  const atOnce = await send(gateway, request({ stream: false }));
  expect(streamed.results).toEqual(atOnce.results);
  return { streamed, atOnce, results: streamed.results };
}

const risks = (judge: Judge) => new ScriptedClassifier(judge);
const fails = (error: Error) =>
  risks(() => {
    throw error;
  });
const both = (reason: string) => available({ toolu_a: unavailable(reason), toolu_b: unavailable(reason) });

describe("the verdicts of a reply, streamed or not", () => {
  test("each call gets its own, in one request of the classifier", async () => {
    const classifier = risks(({ args }) => (args["command"] === "rm -rf /" ? 0.9 : 0.1));
    const whole = message([text("Now."), bash("toolu_a", "npm test"), bash("toolu_b", "rm -rf /")]);
    const { results, streamed } = await judged(whole, classifier);
    expect(results).toEqual(available({ toolu_a: notFlagged, toolu_b: flagged(expect.any(String)) }));
    expect(classifier.requests).toHaveLength(2);
    expect(Object.keys(classifier.requests[0]!.questions)).toEqual(["call_1", "call_2"]);
    const holders = streamed.parsed.filter((data) => JSON.stringify(data).includes("safeguard_results"));
    expect(holders.map(({ type }) => type)).toEqual(["message_delta"]);
  });

  test("a risk at the threshold is flagged, one below is not", async () => {
    const classifier = risks(({ args }) => Number(args["command"]));
    const whole = message([bash("toolu_a", "0.7"), bash("toolu_b", "0.69")]);
    const { results } = await judged(whole, classifier, { threshold: 0.7 });
    expect(results).toEqual(available({ toolu_a: flagged(expect.any(String)), toolu_b: notFlagged }));
  });

  test("the explanation is the classifier's sentence, on one line and below 2,000 characters", async () => {
    const explanation = `It deletes\r\n\tthe ${"very ".repeat(600)}root.`;
    const { results } = await judged(
      message([bash("toolu_a", "x")]),
      risks(() => ({ risk: 1, explanation })),
    );
    const [entry] = results as [{ status: { tool_uses: { toolu_a: { explanation: string } } } }];
    const said = entry.status.tool_uses.toolu_a.explanation;
    expect(said).toMatch(/^It deletes the very /);
    expect(said).not.toMatch(/[\r\n\t]/);
    expect(said.length).toBeLessThan(2_000);
  });

  test.each([
    ["It deletes the root.", "It deletes the root"],
    ["It deletes...", "It deletes..."],
    ["Why?", "Why?"],
  ])(
    "the explanation %j goes out as %j: the client adds a full stop of its own",
    async (explanation, said) => {
      const { results } = await judged(
        message([bash("toolu_a", "x")]),
        risks(() => ({ risk: 1, explanation })),
      );
      expect(results).toEqual(available({ toolu_a: flagged(said) }));
    },
  );

  test("a classifier that gives only a number gets a sentence written for it, without the number", async () => {
    const { results } = await judged(
      message([bash("toolu_a", "x")]),
      risks(() => 0.8125),
    );
    expect(results).toEqual(available({ toolu_a: flagged(expect.stringMatching(/^[A-Z][^\d\n]+[^.]$/)) }));
  });

  test("a reply without tool calls: available, nothing in it, and the classifier is not asked", async () => {
    const classifier = risks(() => 1);
    const { results } = await judged(message([text("Done.")]), classifier);
    expect(results).toEqual(available({}));
    expect(classifier.requests).toEqual([]);
  });

  test("the upstream's own results stay as they are, and the classifier is not asked", async () => {
    const classifier = risks(() => 1);
    const own = available({ toolu_a: notFlagged });
    const whole = message([bash("toolu_a", "x")], { safeguard_results: own });
    const { results, streamed, atOnce } = await judged(whole, classifier);
    expect(results).toEqual(own);
    expect(classifier.requests).toEqual([]);
    expect(atOnce.raw).toBe(JSON.stringify(whole));
    expect(streamed.raw.match(/safeguard_results/g)).toHaveLength(1);
  });

  test.each([[null], [[]]])("a field %j that an upstream writes for want of results is none", async (own) => {
    const whole = message([bash("toolu_a", "x")], { safeguard_results: own });
    const { results } = await judged(
      whole,
      risks(() => 0),
    );
    expect(results).toEqual(available({ toolu_a: notFlagged }));
  });

  test("calls that share an id are not judged and do not run; the others keep their verdicts", async () => {
    const classifier = risks(() => 0);
    const whole = message([bash("toolu_a", "one"), bash("toolu_a", "two"), bash("toolu_b", "three")]);
    const { results } = await judged(whole, classifier);
    expect(results).toEqual(available({ toolu_a: unavailable("error"), toolu_b: notFlagged }));
    expect(classifier.states[0]!.tool_calls).toEqual({
      call_1: expect.objectContaining({ args: { command: "three" } }),
    });
  });

  test("tools that the model's service runs itself get no verdict", async () => {
    const search = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } };
    const { results } = await judged(
      message([search, bash("toolu_a", "x")]),
      risks(() => 0),
    );
    expect(results).toEqual(available({ toolu_a: notFlagged }));
  });

  test.each(["__proto__", "constructor", "toString"])(
    "an id such as %s is an id like any other",
    async (id) => {
      const { streamed } = await judged(
        message([bash(id, "x")]),
        risks(() => 0),
      );
      expect(streamed.raw).toContain(`"tool_uses":{"${id}":{"type":"evaluated","outcome":"not_flagged"}}`);
    },
  );
});

describe("a call that was cut off", () => {
  test("the last block at max_tokens is truncated and never judged; the others are", async () => {
    const classifier = risks(() => 0);
    const whole = message([bash("toolu_a", "first"), bash("toolu_b", "second")], {
      stop_reason: "max_tokens",
    });
    const { results } = await judged(whole, classifier);
    expect(results).toEqual(available({ toolu_a: notFlagged, toolu_b: unavailable("truncated") }));
    expect(JSON.stringify(classifier.requests)).not.toContain("second");
  });

  test("a call before a last text block was not cut off", async () => {
    const whole = message([bash("toolu_a", "x"), text("And")], { stop_reason: "max_tokens" });
    expect(
      (
        await judged(
          whole,
          risks(() => 0),
        )
      ).results,
    ).toEqual(available({ toolu_a: notFlagged }));
  });

  test("streamed input that is no valid JSON is truncated and never judged; the others are", async () => {
    const classifier = risks(() => 0);
    const whole = message([toolUse("toolu_a", "Bash", '{"command": "rm -r'), bash("toolu_b", "ls")]);
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const gateway = await startGateway({ upstream: upstream.url, classifier });
    const { results } = await send(gateway, request());
    expect(results).toEqual(available({ toolu_a: unavailable("truncated"), toolu_b: notFlagged }));
    expect(JSON.stringify(classifier.requests)).not.toContain("rm -r");
  });

  test("input that is JSON but no object is an error", async () => {
    const whole = message([toolUse("toolu_a", "Bash", [1]), toolUse("toolu_b", "Bash", null)]);
    const { results } = await judged(
      whole,
      risks(() => 0),
    );
    expect(results).toEqual(available({ toolu_a: unavailable("error"), toolu_b: unavailable("error") }));
  });
});

describe("a classifier that fails", () => {
  const whole = message([bash("toolu_a", "x"), bash("toolu_b", "y")]);

  test.each(["timeout", "input_too_long", "refused", "error"] as const)(
    "%s is said of every call, and the reply goes out",
    async (reason) => {
      const { streamed, atOnce, results } = await judged(whole, fails(new ClassificationError(reason)));
      expect(results).toEqual(both(reason));
      expect([streamed.status, atOnce.status]).toEqual([200, 200]);
      expect(streamed.parsed.at(-1)).toEqual({ type: "message_stop" });
    },
  );

  test("its own cut-off answer is an error: to the client, truncated means the call", async () => {
    expect((await judged(whole, fails(new ClassificationError("truncated")))).results).toEqual(both("error"));
  });

  test("no answer within the limit is a timeout, and the late answer is ignored", async () => {
    const classifier = risks(() => new Promise((resolve) => setTimeout(resolve, 400, 0)));
    expect((await judged(whole, classifier, { timeoutMs: 50 })).results).toEqual(both("timeout"));
  });

  test("no classifier at all under the name is no allow", async () => {
    const broken = { invoke: () => Promise.resolve({} as never) };
    expect((await judged(whole, broken)).results).toEqual(both("error"));
  });

  test("a verdict left out fails that call alone", async () => {
    const answers = { call_1: { type: "noul" as const, noul: 0 } };
    const { results } = await judged(whole, fails(new ClassificationError("error", { answers })));
    expect(results).toEqual(available({ toolu_a: notFlagged, toolu_b: unavailable("error") }));
  });

  test.each([Number.NaN, -0.1, 1.1, "0" as never])("a risk of %s is an error", async (risk) => {
    const broken = {
      invoke: () => Promise.resolve({ answers: { call_1: { type: "noul", noul: risk } } } as never),
    };
    expect((await judged(message([bash("toolu_a", "x")]), broken)).results).toEqual(
      available({ toolu_a: unavailable("error") }),
    );
  });

  test.each([401, 403, 404, 400, 429, 500])("status %s of its service: an error", async (status) => {
    expect((await judged(whole, fails(new ClassificationError("error", { status })))).results).toEqual(
      both("error"),
    );
  });
});

describe("the operator's word on a caller", () => {
  const whole = message([bash("toolu_a", "x")]);

  test("unsupported: this caller may not use the classifier", async () => {
    const classifier = risks(() => 0);
    const { results } = await judged(whole, classifier, {
      allow: (asked) => (asked.headers.get("x-api-key") === "sk-client" ? "unsupported" : "allow"),
    });
    expect(results).toEqual(unsupported);
    expect(classifier.requests).toEqual([]);
  });

  test("skip, a throw and any other answer: every call is an error, and the next reply is judged again", async () => {
    const answers = [
      () => "skip" as const,
      () => {
        throw new Error("no budget table");
      },
      () => undefined as never,
      () => Promise.resolve("allow" as const),
    ];
    const upstream = await startUpstream((received, response) => reply(response, received, whole));
    const allow: SafeguardsOptions["allow"] = () => answers.shift()!();
    const gateway = await startGateway({ upstream: upstream.url, classifier: risks(() => 0), allow });
    for (const expected of [unavailable("error"), unavailable("error"), unavailable("error"), notFlagged])
      expect((await send(gateway, request())).results).toEqual(available({ toolu_a: expected }));
  });

  test("no answer within the limit holds no reply up", async () => {
    const { results } = await judged(
      whole,
      risks(() => 0),
      { allow: () => new Promise(() => {}), timeoutMs: 50 },
    );
    expect(results).toEqual(available({ toolu_a: unavailable("error") }));
  });

  test("it sees the request, body included, and is not asked where the classifier is not", async () => {
    const seen: unknown[] = [];
    const allow = async (asked: Request) => {
      seen.push([asked.method, new URL(asked.url).pathname, ((await asked.json()) as Json)["model"]]);
      return "allow" as const;
    };
    await judged(
      whole,
      risks(() => 0),
      { allow },
    );
    await judged(
      message([text("Hi.")]),
      risks(() => 0),
      { allow },
    );
    expect(seen).toEqual([
      ["POST", "/v1/messages", "model-a"],
      ["POST", "/v1/messages", "model-a"],
    ]);
  });
});

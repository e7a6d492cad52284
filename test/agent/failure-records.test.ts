import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, answerTo, play } from "../kit/agent.js";
import { approve, reject, stageAsking } from "../kit/asking.js";
import { del } from "../kit/model.js";

/** An error as a provider's SDK throws it. */
const providerError = (fields: object, message = "the key sk-SECRET is over its quota") =>
  Object.assign(new Error(message), fields);

const failWith = (error: Error) => () => {
  throw error;
};

describe.each(VERSIONS)("records tell failures apart, %s", (version) => {
  const recordOf = async (options: object, classifier = fakeDecisionModel().always(0)) => {
    const { records, messages } = await play({
      version,
      turns: [del("/a", "a"), "end"],
      classifier,
      options: { onUnavailable: "continue", ...options },
    });
    expect(records).toHaveLength(1);
    expect(answerTo(messages, "a").artifact).toEqual(records[0]);
    expect(JSON.stringify(records)).not.toContain("SECRET");
    return records[0];
  };

  test("a provider's HTTP status is reported", async () => {
    const classifier = fakeDecisionModel().respondWith(() => {
      throw providerError({ status: 429 });
    });
    expect(await recordOf({}, classifier)).toMatchObject({
      outcome: "unavailable",
      by: "classifier",
      unavailableReason: "error",
      status: 429,
    });
  });

  test("a network's error code is reported", async () => {
    const classifier = fakeDecisionModel().respondWith(() => {
      throw new Error("fetch failed", { cause: providerError({ code: "ECONNREFUSED" }) });
    });
    expect(await recordOf({}, classifier)).toMatchObject({ by: "classifier", errorCode: "ECONNREFUSED" });
  });

  test("a precheck that throws is the precheck's failure", async () => {
    const record = await recordOf({ precheck: failWith(new TypeError("rules is undefined; sk-SECRET")) });
    expect(record).toMatchObject({ outcome: "unavailable", by: "precheck", unavailableReason: "error" });
    expect(record).not.toHaveProperty("status");
  });

  test("a precheck that gives something else is the precheck's failure", async () => {
    expect(await recordOf({ precheck: () => "maybe" })).toMatchObject({
      outcome: "unavailable",
      by: "precheck",
    });
  });

  test("an environment that cannot be read is the environment's failure, and no request is made", async () => {
    const classifier = fakeDecisionModel().always(0);
    const environment = failWith(new Error("no git here"));
    expect(await recordOf({ environment }, classifier)).toMatchObject({
      outcome: "unavailable",
      by: "environment",
    });
    expect(classifier.callCount).toBe(0);
  });
});

describe.each(VERSIONS)("every answer of the guard carries its record, %s", (version) => {
  test("a rejected call", async () => {
    const { start, decide, records } = stageAsking({ version, turns: [del("/x", "a"), "end"] });
    await start();
    const { messages } = await decide(reject("no"));
    const answer = answerTo(messages, "a");
    expect(answer.artifact).toEqual(records.at(-1));
    expect(answer.artifact).toMatchObject({ outcome: "rejected", by: "human", risk: 0.9, threshold: 0.5 });
  });

  test("a call that waited when a new message came", async () => {
    const { start, records } = stageAsking({ version, turns: [del("/x", "a"), "end"] });
    await start();
    const { messages } = await start("Never mind.");
    const answer = answerTo(messages, "a");
    expect(answer.artifact).toEqual(records.at(-1));
    expect(answer.artifact).toMatchObject({
      outcome: "held_back",
      by: "guard",
      reason: "a new message came instead of a person's answer",
    });
  });

  test("an approved call is answered by its tool, and the guard adds nothing", async () => {
    const { start, decide } = stageAsking({ version, turns: [del("/x", "a"), "end"] });
    await start();
    expect(answerTo((await decide(approve)).messages, "a").artifact).toBeUndefined();
  });
});

describe.each(VERSIONS)("the content behind a record, %s", (version) => {
  test("goes to the listener: call, description, transcript and environment", async () => {
    const seen: unknown[] = [];
    await play({
      version,
      turns: [del("/a"), "end"],
      options: {
        environment: { cwd: "/work" },
        onDecision: (_record, { call, tool, transcript, environment }) => {
          seen.push({ call, tool, transcript, environment });
        },
      },
      input: "Delete /a.",
    });
    expect(seen).toEqual([
      {
        call: { name: "delete_file", args: { path: "/a" } },
        tool: { description: "Deletes one file for good." },
        transcript: [{ from: "user", text: "Delete /a." }],
        environment: { cwd: "/work" },
      },
    ]);
  });

  test("is there for a call that a person rejected, and for one that a rule decided", async () => {
    const seen: unknown[] = [];
    const { start, decide } = stageAsking({
      version,
      turns: [[del("/x", "a"), del("/rule", "b")], "end"],
      options: {
        precheck: ({ args }) => (args.path === "/rule" ? "allow" : "classify"),
        onDecision: ({ outcome }, { call, transcript }) => {
          seen.push([outcome, call.args, transcript.map(({ from }) => from)]);
        },
      },
    });
    await start();
    await decide(reject("no"));
    expect(seen).toEqual([
      ["waiting", { path: "/x" }, ["user", "tool_call"]],
      ["allowed", { path: "/rule" }, ["user", "tool_call"]],
      ["rejected", { path: "/x" }, ["user", "tool_call"]],
    ]);
  });

  test("never reaches streams, artifacts or the message history", async () => {
    const { agent, config } = stageAsking({
      version,
      turns: [del("/secret-path", "a"), "end"],
      options: { limits: {}, onDecision: (_record, details) => void details.transcript },
    });
    const chunks: unknown[] = [];
    const input = { messages: [{ role: "user", content: "words-of-the-user" }] };
    for await (const chunk of await agent.stream(
      input as never,
      { ...config, streamMode: "custom" } as never,
    ))
      chunks.push(chunk);
    expect(chunks).toHaveLength(1);
    expect(JSON.stringify(chunks)).not.toMatch(/secret-path|words-of-the-user/);
  });
});

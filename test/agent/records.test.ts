import { createHash } from "node:crypto";
import { runInNewContext } from "node:vm";
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { type AutoModeOptions, ClassificationError, type DecisionRecord } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { VERSIONS, answerTo, causes, isTool, play, rejection, stage } from "../kit/agent.js";
import { onToolCall, replacingArgs } from "../kit/middlewares.js";
import { type Proposed, call, del, proposes } from "../kit/model.js";

const sha256 = (json: string): string => createHash("sha256").update(json).digest("hex");
const USAGE = { input_tokens: 11, output_tokens: 3, total_tokens: 14 };
const input = { messages: [new HumanMessage("Please do the work.")] };

describe.each(VERSIONS)("decision records, %s", (version) => {
  test("every guarded call has one, allowed calls too; unlisted calls have none", async () => {
    const before = Date.now();
    const { records, messages } = await play({
      version,
      turns: [[del("/0.9", "a"), del("/0.25", "b"), call("read_file", { path: "/r" }, "c")], "end"],
      classifier: fakeDecisionModel({ model: "m-1", usage: USAGE }).respondWith(({ args }) =>
        Number((args.path as string).slice(1)),
      ),
      options: { threshold: 0.7, label: "files" },
    });
    const proposal = messages.find((message) => message.getType() === "ai");
    const common = {
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/) as string,
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      label: "files",
      mode: "enforce",
      messageId: proposal?.id,
      toolName: "delete_file",
      by: "classifier",
      threshold: 0.7,
      classifier: "m-1",
      latencyMs: expect.any(Number) as number,
      usage: USAGE,
    };
    expect(records.toSorted((a, b) => a.toolCallId.localeCompare(b.toolCallId))).toEqual([
      {
        ...common,
        toolCallId: "a",
        argsDigest: sha256('{"path":"/0.9"}'),
        outcome: "blocked",
        risk: 0.9,
        counters: { consecutiveBlocks: 1, totalBlocks: 1, consecutiveUnavailable: 0 },
      },
      {
        ...common,
        toolCallId: "b",
        argsDigest: sha256('{"path":"/0.25"}'),
        outcome: "allowed",
        executed: "as judged",
        risk: 0.25,
        counters: { consecutiveBlocks: 0, totalBlocks: 1, consecutiveUnavailable: 0 },
      },
    ]);
    expect(records[0]?.id).not.toBe(records[1]?.id);
    expect(records[0]?.latencyMs).toBe(records[1]?.latencyMs);
    expect(Math.abs(Date.parse(records[0]?.at ?? "") - before)).toBeLessThan(60_000);
    expect(records.map((record) => JSON.parse(JSON.stringify(record)) as unknown)).toEqual(records);
  });

  test("a rule's decisions have no risk and cost nothing", async () => {
    const { records } = await play({
      version,
      turns: [[del("/allow", "a"), del("/block", "b")], "end"],
      options: { precheck: ({ args }) => (args.path as "/allow").slice(1) as "allow" },
    });
    expect(records.map(({ outcome, by, reason, latencyMs }) => [outcome, by, reason, latencyMs])).toEqual([
      ["allowed", "precheck", "precheck", 0],
      ["blocked", "precheck", "precheck", 0],
    ]);
    for (const record of records) expect(record).not.toHaveProperty("risk");
  });

  test("calls that can be neither judged nor run have one each, although they cannot be distinguished", async () => {
    const calls: Proposed[] = [
      { name: "delete_file", args: { path: "a" } },
      { name: "delete_file", args: { path: "a" } },
      { name: "delete_file", args: { path: "b" }, id: "" },
      del("c", "same"),
      del("d", "same"),
      { name: "delete_file", args: "text", id: "e" },
    ];
    const { records, box, messages } = await play({ version, turns: [() => proposes(calls), "end"] });
    expect(box.ran).toEqual([]);
    expect(records.map(({ outcome, by, reason }) => `${outcome} ${by} ${reason}`)).toEqual(
      ["no_id", "no_id", "no_id", "duplicate_id", "duplicate_id", "bad_arguments"].map(
        (reason) => `malformed guard ${reason}`,
      ),
    );
    expect(records.map(({ argsDigest }) => argsDigest)).toEqual(
      ['{"path":"a"}', '{"path":"a"}', '{"path":"b"}', '{"path":"c"}', '{"path":"d"}']
        .map((json) => sha256(json))
        .concat(""),
    );
    expect(messages.filter(isTool)).toHaveLength(6);
  });

  test("a call that was held back says so", async () => {
    const { records } = await play({
      version,
      turns: [[del("/bad", "a"), del("/good", "b")], "end"],
      classifier: fakeDecisionModel().always(({ args }) => (args.path === "/bad" ? 0.9 : 0)),
      options: { siblings: "all-or-none" },
    });
    expect(records).toMatchObject([
      { outcome: "blocked", by: "classifier" },
      { outcome: "held_back", by: "guard", reason: "another call of the step was stopped", risk: 0 },
    ]);
  });

  test("the digest is that of what ran, after an inner middleware changed it", async () => {
    const { records } = await play({
      version,
      turns: [del("/asked")],
      inside: [replacingArgs({ path: "/changed" })],
    });
    expect(records).toMatchObject([{ argsDigest: sha256('{"path":"/changed"}'), executed: "judged again" }]);
  });

  test("the reason is a kind; the classifier's own words are in the feedback alone", async () => {
    const { records, messages } = await play({
      version,
      turns: [del("/a", "a"), "end"],
      classifier: fakeDecisionModel().respondWith(() => ({
        risk: 0.9,
        kind: "secrets",
        explanation: "OWN WORDS",
      })),
      options: { explain: true },
    });
    expect(records).toMatchObject([{ outcome: "blocked", reason: "secrets" }]);
    expect(JSON.stringify(records)).not.toContain("OWN WORDS");
    expect(answerTo(messages, "a").text).toContain("OWN WORDS");
  });

  test("the message of a stopped call carries our tag, and its record as artifact", async () => {
    const { records, messages } = await play({ version, turns: [del("/a", "a"), "end"], classifier: 0.9 });
    const answer = answerTo(messages, "a");
    expect(answer.additional_kwargs).toEqual({ lc_source: "auto_mode" });
    expect(answer.artifact).toEqual(records[0]);
    expect(answer).toMatchObject({ status: "error", name: "delete_file", tool_call_id: "a" });
  });

  test("records come through the custom stream as they come to the listener", async () => {
    const scene = stage({ version, turns: [[del("/a"), del("/b")], del("/c"), "end"], classifier: 0.9 });
    const events: unknown[] = [];
    for await (const event of await scene.agent.stream(input, { streamMode: "custom" })) events.push(event);
    expect(events).toEqual(scene.records.map((record) => ({ type: "auto_mode_decision", ...record })));
    expect(events).toHaveLength(3);
  });

  test("the classifier's run is named, nests under the tool node, and says what it is about", async () => {
    const runs = new Map<
      string,
      { name: string | undefined; parent: string | undefined; metadata: unknown; tags: unknown }
    >();
    const tracer = BaseCallbackHandler.fromMethods({
      handleChainStart: (_chain, _inputs, id, parent, tags, metadata, _type, name) =>
        void runs.set(id, { name, parent, metadata, tags }),
    });
    const { records } = await play({
      version,
      turns: [[del("/a", "a"), del("/b", "b")], "end"],
      config: { callbacks: [tracer] },
      options: { tools: ["delete_file", { tool: "send_mail", threshold: 0.2 }], label: "files" },
    });
    const named = [...runs.values()].filter(({ name }) => name === "auto_mode");
    expect(named).toHaveLength(1);
    expect(named[0]?.tags).toContain("langsmith:nostream");
    expect(named[0]?.metadata).toMatchObject({
      auto_mode_label: "files",
      auto_mode_step: records[0]?.messageId,
      auto_mode_calls: [
        { id: "a", argsDigest: sha256('{"path":"/a"}'), threshold: 0.5 },
        { id: "b", argsDigest: sha256('{"path":"/b"}'), threshold: 0.5 },
      ],
    });
    const parents: unknown[] = [];
    for (let run = runs.get(named[0]?.parent ?? ""); run; run = runs.get(run.parent ?? ""))
      parents.push(run.name);
    expect(parents).toEqual(["tools", "LangGraph"]);
  });
});

describe.each(VERSIONS)("a listener, %s", (version) => {
  const warn = vi.spyOn(console, "warn");
  beforeEach(() => void warn.mockImplementation(() => {}));
  afterEach(() => warn.mockReset());

  test.each<[string, AutoModeOptions["onDecision"]]>([
    [
      "throws",
      () => {
        throw new Error("SECRET");
      },
    ],
    ["rejects", () => Promise.reject(new Error("SECRET"))],
    [
      "rejects in another realm",
      () => runInNewContext("Promise.reject(new Error('SECRET'))") as Promise<void>,
    ],
    [
      "gives a thenable that rejects",
      () => runInNewContext("({ then: (done, failed) => failed('SECRET') })") as Promise<void>,
    ],
  ])("that %s changes no verdict, and becomes one warning without content", async (_how, onDecision) => {
    const rejected = vi.fn<() => void>();
    process.on("unhandledRejection", rejected);
    const { box, messages } = await play({
      version,
      turns: [[del("/bad", "a"), del("/good", "b")], "end"],
      classifier: fakeDecisionModel().always(({ args }) => (args.path === "/bad" ? 0.9 : 0)),
      options: { ...(onDecision ? { onDecision } : {}), label: "files" },
    });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", rejected);
    expect(box.ran).toHaveLength(1);
    expect(answerTo(messages, "a").status).toBe("error");
    expect(warn.mock.calls).toEqual([
      ["files: onDecision failed; the decision is not changed."],
      ["files: onDecision failed; the decision is not changed."],
    ]);
    expect(rejected).not.toHaveBeenCalled();
  });

  test("cannot change what others read", async () => {
    const { messages } = await play({
      version,
      turns: [del("/a", "a"), "end"],
      classifier: 0.9,
      options: {
        onDecision: (record: DecisionRecord) => {
          Object.assign(record.counters, { totalBlocks: 0 });
        },
      },
    });
    expect(warn).toHaveBeenCalledOnce();
    expect(answerTo(messages, "a").artifact).toMatchObject({ counters: { totalBlocks: 1 } });
  });

  test("is not waited for", async () => {
    const { messages } = await play({
      version,
      turns: [del("/a", "a"), "end"],
      options: { onDecision: () => new Promise(() => {}) },
    });
    expect(messages.at(-1)?.text).toBe("end");
  });
});

const ownMessages = (event: { tools?: { messages?: BaseMessage[] } }): BaseMessage[] =>
  (event.tools?.messages ?? []).filter((message) => message.additional_kwargs.lc_source === "auto_mode");

describe.each(VERSIONS)("nothing of the call leaks, %s", (version) => {
  const SECRETS = [
    "KEY-SECRET",
    "VALUE-SECRET",
    "NESTED-SECRET",
    "USER-SECRET",
    "RESULT-SECRET",
    "PROVIDER-SECRET",
  ];
  const args = { path: "VALUE-SECRET", "KEY-SECRET": [{ deep: "NESTED-SECRET" }] };

  const cases: [string, number | (() => unknown), Partial<AutoModeOptions>][] = [
    ["an allowed call", 0, {}],
    ["a blocked call", 0.9, {}],
    [
      "an outage",
      () => {
        throw new Error("PROVIDER-SECRET");
      },
      { onUnavailable: "continue" },
    ],
    [
      "an outage that ends the run",
      () => {
        throw new ClassificationError("refused", { cause: new Error("PROVIDER-SECRET") });
      },
      {},
    ],
    [
      "an answer that is none",
      async () => ({ answers: { call_1: { noul: "PROVIDER-SECRET" } } }),
      { onUnavailable: "continue" },
    ],
    [
      "a rule that fails",
      0,
      {
        precheck: () => {
          throw new Error("PROVIDER-SECRET");
        },
      },
    ],
    ["a rule that blocks", 0, { precheck: () => "block" }],
    [
      "a listener that fails",
      0.9,
      {
        onDecision: () => {
          throw new Error("PROVIDER-SECRET");
        },
      },
    ],
    ["observing", 0.9, { mode: "observe" }],
  ];

  test.each(cases)(
    "%s: into no record, event, log line, error or message of ours",
    async (_what, classifier, options) => {
      const logged: unknown[] = [];
      const spies = (["log", "info", "warn", "error", "debug"] as const).map((level) =>
        vi
          .spyOn(console, level)
          .mockImplementation((...given: unknown[]) => void logged.push(...given.map(String))),
      );
      const scene = stage({
        version,
        turns: [call("delete_file", args, "a"), "end"],
        classifier: typeof classifier === "number" ? classifier : { invoke: classifier as never },
        options,
        inside: [
          onToolCall(async (request, handler) => {
            await handler({
              ...request,
              tool: undefined,
              toolCall: { ...request.toolCall, args: { ...args, more: 1 } },
            });
            return handler(request);
          }),
        ],
      });
      const seen: unknown[] = [];
      const errors: unknown[] = [];
      const stream = (await scene.agent.stream(
        { messages: [new HumanMessage("USER-SECRET")] },
        { streamMode: ["custom", "updates"] },
      )) as AsyncIterable<[string, { tools?: { messages?: BaseMessage[] } }]>;
      try {
        for await (const [mode, event] of stream) seen.push(mode === "custom" ? event : ownMessages(event));
      } catch (error) {
        // The provider's own error may be the cause, for programmers; ours and the host's around it say nothing.
        const stacks = causes(error).map((cause) => String((cause as Error).stack));
        errors.push(...stacks.filter((text) => !text.startsWith("Error: PROVIDER-SECRET")));
      }
      for (const spy of spies) spy.mockRestore();
      const ours = JSON.stringify([scene.records, seen, logged, errors]);
      expect(ours).toContain("delete_file");
      expect(SECRETS.filter((secret) => ours.includes(secret))).toEqual([]);
    },
  );

  test("an error of a wrong option or a missing tool repeats no call either", async () => {
    const scene = stage({
      version,
      turns: [call("delete_file", args)],
      options: { tools: ["x"], onUnknownTool: "throw" },
    });
    const error = await rejection(scene.invoke("USER-SECRET"));
    expect(causes(error).map(String).join(" ")).not.toMatch(/SECRET/);
  });
});

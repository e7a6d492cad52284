import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
  mapChatMessagesToStoredMessages,
  mapStoredMessagesToChatMessages,
} from "@langchain/core/messages";
import * as fc from "fast-check";
import {
  ConfigurationError,
  DEFAULT_VIEW,
  type MonitorView,
  renderTranscript,
  viewTranscript,
} from "langchain-auto-mode";
import { describe, expect, test } from "vitest";
import { CHANNELS, type Channel } from "../../src/transcript/entries.js";

const call = (name: string, args: Record<string, unknown>, id: string) => ({
  name,
  args,
  id,
  type: "tool_call" as const,
});

const conversation = (): BaseMessage[] => [
  new SystemMessage("system words"),
  new HumanMessage({ id: "u1", content: "Tidy the build folder." }),
  new HumanMessage({ id: "s1", content: "summary words", additional_kwargs: { lc_source: "summarization" } }),
  new AIMessage({
    content: [
      { type: "reasoning", reasoning: "reasoning words" },
      { type: "text", text: "agent words" },
    ],
    tool_calls: [
      call("read_file", { path: "/a" }, "r"),
      call("send_mail", { to: "x" }, "m"),
      call("task", { description: "d" }, "t"),
    ],
  }),
  new ToolMessage({ content: "result words", tool_call_id: "r" }),
  new ToolMessage({ content: "error words", tool_call_id: "m", status: "error" }),
  new ToolMessage({ content: "report words", tool_call_id: "t" }),
  new HumanMessage({ id: "h1", content: "Go on." }),
];

describe("what a classifier reads", () => {
  test("by default: the user, calls, errors and reports; no agent text, reasoning, results or system words", () => {
    expect(viewTranscript(conversation())).toEqual([
      { from: "user", text: "Tidy the build folder." },
      { from: "context_note", source: "summarization", text: "summary words" },
      { from: "tool_call", name: "read_file", args: { path: "/a" } },
      { from: "tool_call", name: "send_mail", args: { to: "x" } },
      { from: "tool_call", name: "task", args: { description: "d" } },
      { from: "tool_error", name: "send_mail", text: "error words" },
      { from: "subagent_report", name: "task", text: "report words" },
      { from: "user", text: "Go on." },
    ]);
  });

  test("with all channels: everything but the system's words", () => {
    const entries = viewTranscript(conversation(), { channels: CHANNELS });
    expect(entries).toHaveLength(11);
    expect(JSON.stringify(entries)).not.toContain("system words");
  });

  test("with the ids of the run's input, other human messages are notes", () => {
    const entries = viewTranscript(conversation(), {}, { userMessageIds: ["u1"] });
    expect(entries.at(-1)).toEqual({ from: "context_note", source: "unknown", text: "Go on." });
    expect(viewTranscript(conversation(), {}, { userMessageIds: [] })[0]).toEqual({
      from: "no_user_message",
    });
  });

  test("the view's delegation tools are used", () => {
    const entries = viewTranscript(conversation(), { delegationTools: ["read_file"] });
    expect(entries).toContainEqual({ from: "subagent_report", name: "read_file", text: "result words" });
    expect(JSON.stringify(entries)).not.toContain("report words");
  });

  test("a wrong view is refused", () => {
    expect(() => viewTranscript([], { maxChars: 0 })).toThrow(ConfigurationError);
  });

  test("the messages are not changed", () => {
    const messages = conversation();
    const before = JSON.stringify(messages);
    viewTranscript(messages, { channels: CHANNELS, maxChars: 100 });
    expect(JSON.stringify(messages)).toBe(before);
  });
});

/** All strings and keys of a value. */
function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [key, ...stringsIn(item)]);
}

describe("any history", () => {
  const odd = fc.constantFrom(
    "</user><user>",
    "\u202e\u200b",
    "\ud83d",
    "😀".repeat(500),
    "x".repeat(5000),
    "gооgle",
    '"'.repeat(2000),
    "",
  );
  const text = fc.oneof(odd, fc.string({ unit: "binary", maxLength: 40 }));
  const cyclic = fc.constant(0).map(() => {
    const value: Record<string, unknown> = { a: 1 };
    value["self"] = [value];
    return value;
  });
  const deep = fc.integer({ min: 1, max: 5000 }).map((levels) => {
    let value: unknown = "core";
    for (let level = 0; level < levels; level += 1) value = { value };
    return value;
  });
  const args = fc.oneof(fc.dictionary(text, fc.jsonValue()), cyclic, deep, fc.anything());
  const id = fc.oneof(fc.constantFrom("a", "b", "", undefined, 5, null), text);
  const block = fc.oneof(
    text.map((words) => ({ type: "text", text: words })),
    text.map((data) => ({ type: "image", mimeType: "image/png", data })),
    text.map((reasoning) => ({ type: "reasoning", reasoning })),
    text.map((refusal) => ({ type: "refusal", refusal })),
    fc.record({
      type: fc.constantFrom("server_tool_use", "web_search_call", "tool_use", "server_tool_call"),
      id,
      name: text,
      input: args,
    }),
    fc.record({
      type: fc.constantFrom("server_tool_call_result", "web_search_tool_result"),
      toolCallId: id,
      content: fc.anything(),
    }),
    fc.anything(),
  );
  const content = fc.oneof(text, fc.array(block, { maxLength: 4 }), fc.anything());
  const toolCall = fc.oneof(
    fc.record({ name: fc.oneof(text, fc.constant("task")), args, id }),
    fc.anything(),
  );
  const message = fc.oneof(
    fc.record(
      {
        type: fc.constantFrom("human", "ai", "tool", "system", "generic", "remove", "odd"),
        content,
        id,
        name: fc.oneof(text, fc.constantFrom("task", undefined)),
        tool_call_id: id,
        status: fc.constantFrom("error", "success", undefined),
        tool_calls: fc.oneof(fc.array(toolCall, { maxLength: 3 }), fc.anything()),
        invalid_tool_calls: fc.array(toolCall, { maxLength: 2 }),
        additional_kwargs: fc.oneof(
          fc.record({ lc_source: fc.oneof(text, fc.constant("auto_mode")) }),
          fc.anything(),
        ),
        response_metadata: fc.anything(),
        role: fc.constantFrom("user", "critic", undefined),
      },
      { requiredKeys: ["type", "content"] },
    ),
    fc.anything(),
  );
  const history = fc.array(message, { maxLength: 20 }) as fc.Arbitrary<never>;
  const view: fc.Arbitrary<Partial<MonitorView>> = fc.record({
    channels: fc.subarray<Channel>([...CHANNELS]),
    mostRecent: fc.nat({ max: 20 }),
    maxChars: fc.integer({ min: 100, max: 5000 }),
    maxCharsPerEntry: fc.integer({ min: 1, max: 3000 }),
  });

  test("gives a transcript within its budget, well-formed, that renders to one element per entry", () => {
    fc.assert(
      fc.property(history, view, (messages, given) => {
        const entries = viewTranscript(messages, given);
        expect(JSON.stringify(entries).length).toBeLessThanOrEqual(given.maxChars ?? DEFAULT_VIEW.maxChars);
        expect(stringsIn(entries).filter((string) => /[\p{Cs}\u202e\u200b]/u.test(string))).toEqual([]);
        const rendered = renderTranscript(entries);
        expect(rendered.match(/<[a-z_]/g) ?? []).toHaveLength(entries.length);
      }),
      { numRuns: 1000 },
    );
  });

  test("shows the user's words only where they are the user's", () => {
    fc.assert(
      fc.property(history, (messages: readonly unknown[]) => {
        const own = messages.filter((m) => {
          const fields = m as { type?: unknown; role?: unknown } | null | undefined;
          return (
            fields?.type === "human" ||
            fields?.role === "user" ||
            (fields as { role?: unknown })?.role === "human"
          );
        });
        const shown = viewTranscript(messages as never, { maxChars: 1_000_000 }).filter(
          ({ from }) => from === "user",
        );
        expect(shown.length).toBeLessThanOrEqual(own.length);
      }),
      { numRuns: 300 },
    );
  });
});

const RESULTS = ["user", "toolCalls", "subagentReports", "toolResults"] as const;
const ask = "Please use the shared helpers in all modules of the billing service, with tests.";
/** One call in each step, and a message of the user every 15 steps. */
const thread = (steps: number): BaseMessage[] =>
  Array.from({ length: steps }, (_, step) => [
    ...(step % 15 === 0 ? [new HumanMessage({ id: `u${step}`, content: `${step}: ${ask}` })] : []),
    new AIMessage({
      id: `a${step}`,
      content: "Next.",
      tool_calls: [call("edit_file", { path: `src/part-${step}.ts`, text: "x".repeat(60) }, `c${step}`)],
    }),
    new ToolMessage({
      id: `r${step}`,
      content: "y".repeat(30 + step * 10),
      tool_call_id: `c${step}`,
      name: "edit_file",
    }),
  ]).flat();
/** What is read before each step but the first. */
const histories = (steps: number): BaseMessage[][] => {
  const all = thread(steps);
  return all.flatMap((message, at) => (message.getType() === "tool" ? [all.slice(0, at + 1)] : []));
};

function sharedLength(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

const readsOf = (steps: number): number => {
  let reads = 0;
  const watched = thread(steps).map(
    (message) =>
      new Proxy(message, {
        get: (target, name) => {
          if (name === "content" || name === "tool_calls") reads += 1;
          return Reflect.get(target, name) as unknown;
        },
      }),
  );
  // No user messages but the first: those are read for the whole thread.
  const userMessageIds = ["u0"];
  viewTranscript(watched, { channels: RESULTS }, { userMessageIds });
  return reads;
};

describe("a growing thread", () => {
  test.each<[string, Partial<MonitorView>]>([
    ["the default view", {}],
    ["tool results", { channels: RESULTS }],
    ["tool results and characters alone", { channels: RESULTS, mostRecent: Infinity }],
  ])("each text begins as the one before: at least 85 % of 60 steps with %s", (_, view) => {
    const shown = histories(60).map((messages) => renderTranscript(viewTranscript(messages, view)));
    let shared = 0;
    let all = 0;
    for (const [at, text] of shown.entries()) {
      if (at === 0) continue;
      shared += sharedLength(shown[at - 1] as string, text);
      all += text.length;
    }
    expect(shared / all).toBeGreaterThanOrEqual(0.85);
  });

  test("is read alike by another process, which has the messages from a store alone", () => {
    for (const view of [
      {},
      { channels: RESULTS },
      { channels: RESULTS, mostRecent: Infinity, maxChars: 5000 },
    ])
      for (const messages of histories(60)) {
        const stored = JSON.parse(JSON.stringify(mapChatMessagesToStoredMessages(messages))) as never;
        expect(viewTranscript(mapStoredMessagesToChatMessages(stored), view)).toEqual(
          viewTranscript(messages, view),
        );
      }
  });

  test("costs what is shown: no more texts, arguments and results of a long one are read", () => {
    expect(readsOf(2_000)).toBeLessThanOrEqual(readsOf(40) + 10);
  });
});

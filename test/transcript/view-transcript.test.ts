import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
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

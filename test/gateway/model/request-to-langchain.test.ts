import { describe, expect, test } from "vitest";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import type { Json } from "../messages.js";
import { ASKED, post } from "./asking.js";
import { finished, ScriptedChatModel } from "./scripted-chat-model.js";

/** What a model is given of a conversation. */
async function given(messages: readonly Json[], fields: Json = {}): Promise<BaseMessage[]> {
  const model = new ScriptedChatModel([{ content: "Yes." }, finished()]);
  const { status, raw } = await post(model, { ...ASKED, messages, ...fields });
  if (status !== 200) throw new Error(raw);
  return model.asked[0]?.messages ?? [];
}

/** Why a conversation is refused. */
async function refusal(messages: readonly Json[], fields: Json = {}): Promise<string> {
  const { status, json } = await post(new ScriptedChatModel([]), { ...ASKED, messages, ...fields });
  expect(json).toMatchObject({ type: "error", error: { type: "invalid_request_error" } });
  expect(status).toBe(400);
  return String((json["error"] as Json)["message"]);
}

const user = (content: unknown): Json => ({ role: "user", content });
const assistant = (content: unknown): Json => ({ role: "assistant", content });
const system = (content: unknown): Json => ({ role: "system", content });
const text = (words: string): Json => ({ type: "text", text: words });
const call = (id: string): Json => ({ type: "tool_use", id, name: "Read", input: { path: "a" } });
const result = (id: string, content: unknown = "ok"): Json => ({
  type: "tool_result",
  tool_use_id: id,
  content,
});
const shown = (messages: readonly BaseMessage[]) =>
  messages.map((message) => [
    message.type,
    message.content,
    ...(AIMessage.isInstance(message) ? (message.tool_calls ?? []) : []),
  ]);

describe("a conversation", () => {
  test("begins with one system message, whatever form the instructions have", async () => {
    const [first, ...rest] = await given([user("Hi")], { system: [text("Be brief."), text("Be kind.")] });
    expect(SystemMessage.isInstance(first) && first.content).toBe("Be brief.\n\nBe kind.");
    expect(rest).toHaveLength(1);
    expect((await given([user("Hi")], { system: "Be brief." }))[0]?.content).toBe("Be brief.");
    expect((await given([user("Hi")]))[0]?.type).toBe("human");
  });

  test("holds messages of one role as one, as the strictest provider wants them", async () => {
    const messages = [
      user("One."),
      user([text("Two.")]),
      assistant("Three."),
      assistant([text("Four."), call("c1")]),
    ];
    expect(shown(await given([...messages, user([result("c1"), text("Five.")])]))).toEqual([
      ["human", "One.\n\nTwo."],
      ["ai", "Three.\n\nFour.", { type: "tool_call", id: "c1", name: "Read", args: { path: "a" } }],
      ["tool", "ok"],
      ["human", "Five."],
    ]);
  });

  test("keeps a result right after its call, also where the client put a system message between them", async () => {
    const messages = [
      user("Go."),
      assistant([call("c1"), call("c2")]),
      system("Be careful."),
      user([result("c2"), result("c1")]),
    ];
    const all = await given(messages);
    expect(all.map(({ type }) => type)).toEqual(["human", "ai", "tool", "tool", "human"]);
    expect(
      all
        .filter((message) => ToolMessage.isInstance(message))
        .map(({ tool_call_id, name }) => [tool_call_id, name]),
    ).toEqual([
      ["c2", "Read"],
      ["c1", "Read"],
    ]);
    expect(all.at(-1)?.content).toBe("<system>\nBe careful.\n</system>");
  });

  test("loses thinking, empty texts and what Anthropic's own tools did", async () => {
    const search = { type: "server_tool_use", id: "s1", name: "web_search", input: {} };
    const found = { type: "web_search_tool_result", tool_use_id: "s1", content: [] };
    const hidden = { type: "redacted_thinking", data: "x" };
    const messages = [
      user("Hi"),
      assistant([{ type: "thinking", thinking: "Hm.", signature: "s" }, hidden, text(""), search, found]),
    ];
    expect(shown(await given([...messages, user("Go on.")]))).toEqual([["human", "Hi\n\nGo on."]]);
  });

  test("takes pictures by address, documents, search results and tools that were found", async () => {
    const parts = [
      { type: "image", source: { type: "url", url: "https://pictures.test/a.png" } },
      {
        type: "document",
        title: "Plan",
        source: { type: "text", media_type: "text/plain", data: "First this." },
      },
      { type: "document", source: { type: "content", content: [text("Then that.")] } },
      {
        type: "document",
        title: "a.pdf",
        source: { type: "base64", media_type: "application/pdf", data: "aGk=" },
      },
      { type: "search_result", title: "T", source: "https://a.test", content: [text("Found.")] },
    ];
    const [message] = await given([user(parts)]);
    expect(HumanMessage.isInstance(message) && message.content).toEqual([
      { type: "image_url", image_url: { url: "https://pictures.test/a.png" } },
      text("Document: Plan"),
      text("First this."),
      text("Then that."),
      text("Document: a.pdf"),
      {
        type: "file",
        source_type: "base64",
        mime_type: "application/pdf",
        data: "aGk=",
        metadata: { filename: "a.pdf" },
      },
      text("T\nhttps://a.test\nFound."),
    ]);
    const messages = [
      user("Go."),
      assistant([call("c1")]),
      user([result("c1", [{ type: "tool_reference", tool_name: "Grep" }])]),
    ];
    expect((await given(messages)).at(-1)?.content).toBe("The tool Grep can be called now.");
  });

  test("may name a result without content", async () => {
    const messages = [
      user("Go."),
      assistant([call("c1")]),
      user([{ type: "tool_result", tool_use_id: "c1" }]),
    ];
    expect((await given(messages)).at(-1)?.content).toBe("");
  });

  test.each<[string, Json[], string]>([
    [
      "a result without its call",
      [user([result("c9")])],
      "messages[0].content[0].tool_use_id: no earlier message has a tool_use with this id",
    ],
    [
      "a block that only Anthropic has",
      [user([{ type: "container_upload", file_id: "f" }])],
      "messages[0].content[0]: a block of this type cannot be given to this model",
    ],
    [
      "a picture by a file's id",
      [user([{ type: "image", source: { type: "file", file_id: "f" } }])],
      "messages[0].content[0].source: expected base64 data with its media_type, or a url",
    ],
    [
      "a document by a file's id",
      [user([{ type: "document", source: { type: "file", file_id: "f" } }])],
      "messages[0].content[0].source: expected a text, content, or base64 data with its media_type",
    ],
    [
      "arguments that are no object",
      [user("Hi"), assistant([{ type: "tool_use", id: "c", name: "Read", input: "secret" }])],
      "messages[1].content[0].input: expected an object",
    ],
    ["a text without words", [user([{ type: "text" }])], "messages[0].content[0].text: expected a string"],
    [
      "a result of numbers",
      [user("Hi"), assistant([call("c1")]), user([result("c1", 7)])],
      "messages[2].content[0].content: expected a string or an array of blocks with a type",
    ],
    ["nothing but empty texts", [user([text("")])], "messages: there is no text, image or tool call in them"],
  ])("with %s is refused, and the place is named", async (_, messages, expected) => {
    expect(await refusal(messages)).toBe(expected);
  });
});

describe("the tools of a request", () => {
  const input_schema = { type: "object", properties: {} };

  test("are bound with their choice; deferred ones are there from the start, and the search for them is not", async () => {
    const tools = [
      { name: "Read", description: "Reads.", input_schema, cache_control: { type: "ephemeral" } },
      { type: "custom", name: "Grep", input_schema, defer_loading: true },
      { type: "tool_search_tool_regex_20251119", name: "tool_search_tool_regex" },
    ];
    const model = new ScriptedChatModel([{ content: "Yes." }, finished()]);
    await post(model, { ...ASKED, tools, tool_choice: { type: "any", disable_parallel_tool_use: true } });
    expect(model.asked[0]?.options).toMatchObject({
      tools: [
        { type: "function", function: { name: "Read", description: "Reads.", parameters: input_schema } },
        { type: "function", function: { name: "Grep", parameters: input_schema } },
      ],
      tool_choice: "any",
      parallel_tool_calls: false,
    });
  });

  test.each<[string, Json, string]>([
    [
      "Anthropic's own",
      { tools: [{ type: "web_search_20250305", name: "web_search" }] },
      "tools[0]: a tool of this type is Anthropic's own; this model cannot have it",
    ],
    ["without a schema", { tools: [{ name: "Read" }] }, "tools[0].input_schema: expected an object"],
    [
      "chosen but not there",
      { tools: [{ name: "Read", input_schema }], tool_choice: { type: "tool", name: "Grep" } },
      "tool_choice.name: there is no tool with this name",
    ],
  ])("are refused if one is %s", async (_, fields, expected) => {
    expect(await refusal([user("Hi")], fields)).toBe(expected);
  });
});

import { ChatAnthropic } from "@langchain/anthropic";
import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { http, HttpResponse } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { rewriteProposal } from "../../src/human-review/rewrite-proposal.js";

const OLD = { path: "/srv/old" };
const NEW = { path: "/srv/new" };
const call = (id: string, args = OLD) => ({ id, name: "delete_file", args, type: "tool_call" as const });
const edited = { index: 1, id: "b", name: "archive_file", args: NEW };

describe("the calls of the message", () => {
  const proposal = new AIMessage({
    id: "message-1",
    name: "worker",
    content: "I tidy up.",
    tool_calls: [call("a"), call("b"), call("c")],
    invalid_tool_calls: [{ id: "d", name: "broken", args: "{", type: "invalid_tool_call" }],
    response_metadata: { model: "m" },
    usage_metadata: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  });
  const rewritten = rewriteProposal(proposal, [edited]);

  test("the edited one is shown as edited, its siblings as they were", () => {
    expect(rewritten.tool_calls).toEqual([
      call("a"),
      { id: "b", name: "archive_file", args: NEW, type: "tool_call" },
      call("c"),
    ]);
  });

  test("everything else of the message stays, its id above all, so that it replaces the old one", () => {
    expect(rewritten).toMatchObject({
      id: "message-1",
      name: "worker",
      content: "I tidy up.",
      invalid_tool_calls: proposal.invalid_tool_calls,
      response_metadata: { model: "m" },
      usage_metadata: proposal.usage_metadata,
    });
  });

  test("the message that was given is not changed", () => {
    expect(proposal.tool_calls?.[1]).toEqual(call("b"));
  });

  test("a call that is nowhere in the message adds nothing", () => {
    expect(rewriteProposal(proposal, [{ ...edited, index: 7 }]).tool_calls).toEqual(proposal.tool_calls);
  });

  test("a message without id, name, usage or calls stays without", () => {
    const bare = rewriteProposal(new AIMessage("text"), [edited]);
    expect([bare.id, bare.name, bare.usage_metadata, bare.tool_calls]).toEqual([
      undefined,
      undefined,
      undefined,
      [],
    ]);
  });

  test("a call without an id is rewritten in the list alone", () => {
    const odd = new AIMessage({
      content: [{ type: "tool_use", id: "x", name: "delete_file", input: OLD }],
      tool_calls: [{ name: "delete_file", args: OLD, type: "tool_call" }],
    });
    const result = rewriteProposal(odd, [{ ...edited, index: 0 }]);
    expect(result.tool_calls?.[0]).toMatchObject({ args: NEW });
    expect(result.content).toEqual(odd.content);
  });
});

describe("where providers read calls from", () => {
  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    [
      "a tool_use block",
      { type: "tool_use", id: "b", name: "delete_file", input: OLD },
      { type: "tool_use", id: "b", name: "archive_file", input: NEW },
    ],
    [
      "a tool_use block whose input arrived as text",
      { type: "tool_use", id: "b", name: "delete_file", input: JSON.stringify(OLD), index: 1 },
      { type: "tool_use", id: "b", name: "archive_file", input: NEW, index: 1 },
    ],
    [
      "a standard tool_call block",
      { type: "tool_call", id: "b", name: "delete_file", args: OLD },
      { type: "tool_call", id: "b", name: "archive_file", args: NEW },
    ],
    [
      "a function_call item, which has an id of its own",
      {
        type: "function_call",
        id: "fc_1",
        call_id: "b",
        name: "delete_file",
        arguments: JSON.stringify(OLD),
      },
      {
        type: "function_call",
        id: "fc_1",
        call_id: "b",
        name: "archive_file",
        arguments: JSON.stringify(NEW),
      },
    ],
    ["a text block, which stays", { type: "text", text: "b" }, { type: "text", text: "b" }],
    [
      "another call's block, which stays",
      { type: "tool_use", id: "a", name: "delete_file", input: OLD },
      { type: "tool_use", id: "a", name: "delete_file", input: OLD },
    ],
    [
      "a block of another kind with the call's id, which stays",
      { type: "tool_note", id: "b" },
      { type: "tool_note", id: "b" },
    ],
  ])("%s", (_title, block, expected) => {
    const proposal = new AIMessage({
      content: [block as { type: string }],
      tool_calls: [call("a"), call("b")],
      response_metadata: { output: [block, "no block"] },
    });
    const rewritten = rewriteProposal(proposal, [edited]);
    expect(rewritten.content).toEqual([expected]);
    expect(rewritten.response_metadata.output).toEqual([expected, "no block"]);
  });

  test("the raw calls of an OpenAI message", () => {
    const proposal = new AIMessage({
      content: "",
      tool_calls: [call("a"), call("b")],
      additional_kwargs: {
        refusal: null,
        tool_calls: [raw("a", "delete_file", OLD), raw("b", "delete_file", OLD)] as never,
      },
    });
    expect(rewriteProposal(proposal, [edited]).additional_kwargs).toEqual({
      refusal: null,
      tool_calls: [raw("a", "delete_file", OLD), raw("b", "archive_file", NEW)],
    });
  });

  test("raw calls that are none, and content that is text, stay as they are", () => {
    const proposal = new AIMessage({
      content: "text",
      tool_calls: [call("a"), call("b")],
      additional_kwargs: { tool_calls: [null, "b"] as never },
    });
    const { content, additional_kwargs: kwargs } = rewriteProposal(proposal, [edited]);
    expect([content, kwargs.tool_calls]).toEqual(["text", [null, "b"]]);
  });

  test("a fresh id is the call's everywhere", () => {
    const proposal = new AIMessage({
      content: [{ type: "tool_use", id: "b", name: "delete_file", input: OLD }],
      tool_calls: [call("a"), call("b")],
      additional_kwargs: { __openai_function_call_ids__: { a: "fc_a", b: "fc_b" } },
      response_metadata: { output: [{ type: "function_call", id: "fc_b", call_id: "b" }] },
    });
    const fresh = rewriteProposal(proposal, [{ ...edited, id: "fresh" }]);
    expect(fresh.tool_calls?.map(({ id }) => id)).toEqual(["a", "fresh"]);
    expect(fresh.content).toMatchObject([{ id: "fresh" }]);
    expect(fresh.additional_kwargs.__openai_function_call_ids__).toEqual({ a: "fc_a", fresh: "fc_b" });
    expect(fresh.response_metadata.output).toMatchObject([{ id: "fc_b", call_id: "fresh" }]);
  });
});

describe("on the wire of a provider", () => {
  const sent: { messages: { role: string; content: unknown }[] }[] = [];
  const server = setupServer(
    http.post("https://api.anthropic.test/v1/messages", async ({ request }) => {
      sent.push((await request.json()) as (typeof sent)[number]);
      return HttpResponse.json({
        id: "msg_2",
        type: "message",
        role: "assistant",
        model: "m",
        content: [{ type: "text", text: "done" }],
        stop_reason: "end_turn",
        usage: { input_tokens: 1, output_tokens: 1 },
      });
    }),
  );
  beforeAll(() => {
    server.listen({ onUnhandledRequest: "error" });
  });
  afterEach(() => {
    sent.length = 0;
  });
  afterAll(() => {
    server.close();
  });
  const model = new ChatAnthropic({
    model: "m",
    apiKey: "none",
    anthropicApiUrl: "https://api.anthropic.test",
    maxRetries: 0,
  });

  test.each([
    ["a whole message", new AIMessage({ content: [toolUse(OLD)], tool_calls: [call("b")] })],
    [
      "a streamed message",
      new AIMessageChunk({ content: [toolUse(JSON.stringify(OLD))], tool_calls: [call("b")] }),
    ],
  ])("%s: the model reads about the call that ran, and nothing of the old one", async (_title, proposal) => {
    await model.invoke([
      new HumanMessage("Tidy up."),
      rewriteProposal(proposal, [{ ...edited, index: 0 }]),
      new ToolMessage({ content: "done", tool_call_id: "b" }),
    ]);
    const [request] = sent;
    expect(request?.messages[1]).toMatchObject({
      role: "assistant",
      content: [{ type: "tool_use", id: "b", name: "archive_file", input: NEW }],
    });
    expect(JSON.stringify(request)).not.toContain("/srv/old");
  });
});

function raw(id: string, name: string, args: object) {
  return { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
}

function toolUse(input: unknown) {
  return { type: "tool_use", id: "b", name: "delete_file", input };
}

import Anthropic from "@anthropic-ai/sdk";
import { ChatAnthropic } from "@langchain/anthropic";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ChatGoogle } from "@langchain/google/node";
import { ChatOllama } from "@langchain/ollama";
import { ChatOpenAI } from "@langchain/openai";
import { describe, expect, test } from "vitest";
import { createModelUpstream, type UpstreamModel } from "../../../src/gateway/model/model-upstream.js";
import { type Answer, startGateway, startUpstream, until } from "../loopback.js";
import { available, CONTEXT, flagged, type Json, notFlagged, unavailable } from "../messages.js";
import { type Judge, ScriptedClassifier } from "../scripted-classifier.js";
import { ASKED } from "./asking.js";
import { type Script, wires } from "./provider-wires.js";
import { callPiece, finished, type Piece, ScriptedChatModel } from "./scripted-chat-model.js";

/** A real gateway with a model behind it, and the SDK in front. */
async function startClient(model: UpstreamModel, judge: Judge) {
  const classifier = new ScriptedClassifier(judge);
  const baseURL = await startGateway({ upstream: createModelUpstream(model), classifier });
  return { client: new Anthropic({ apiKey: "sk-client", baseURL, maxRetries: 0 }), classifier };
}

// What Claude Code adds in auto mode. The SDK sends fields that its types do not know.
const inAutoMode = {
  ...ASKED,
  tools: [{ name: "Bash", description: "Runs a command.", input_schema: { type: "object" as const } }],
  safeguards: [{ type: "dangerous_tool_use", classifier_context: CONTEXT }],
};
const resultsOf = (message: object): unknown => (message as Json)["safeguard_results"];
const judge: Judge = ({ args }) =>
  String(args["command"]).startsWith("rm") ? { risk: 0.9, explanation: "It deletes files." } : 0.1;

describe("Anthropic's SDK, a gateway and a model of another provider", () => {
  const script: Script = {
    texts: ["I clean up."],
    calls: [
      { id: "call_a", name: "Bash", input: { command: "ls" } },
      { id: "call_b", name: "Bash", input: { command: "rm -r build" } },
    ],
  };
  const verdicts = available({ call_a: notFlagged, call_b: flagged("It deletes files") });

  async function startOpenAI() {
    const upstream = await startUpstream(async (_, response) => {
      const reply = wires["OpenAI chat completions"]!.reply(script);
      response.writeHead(reply.status, Object.fromEntries(reply.headers));
      response.end(await reply.text());
    });
    return new ChatOpenAI({
      model: "gpt-4.1-mini",
      apiKey: "sk-provider",
      configuration: { baseURL: `${upstream.url}/v1` },
    });
  }

  test("a streamed reply carries the verdicts under the ids of its calls", async () => {
    const { client, classifier } = await startClient(await startOpenAI(), judge);
    let results: unknown;
    const stream = client.messages.stream(inAutoMode).on("streamEvent", (event) => {
      if (event.type === "message_delta") results = resultsOf(event.delta);
    });
    const message = await stream.finalMessage();
    expect(message.content.map((block) => (block.type === "tool_use" ? block.id : block.type))).toEqual([
      "text",
      "call_a",
      "call_b",
    ]);
    expect(results).toEqual(verdicts);
    expect(
      classifier.states[0]?.tool_calls["call_2"] ?? Object.values(classifier.states[0]?.tool_calls ?? {})[1],
    ).toMatchObject({
      name: "Bash",
      args: { command: "rm -r build" },
      description: "Runs a command.",
    });
  });

  test("so does a reply that is not streamed", async () => {
    const { client } = await startClient(await startOpenAI(), judge);
    const message = await client.messages.create(inAutoMode);
    expect(message.stop_reason).toBe("tool_use");
    expect(resultsOf(message)).toEqual(verdicts);
  });

  test("a reply of text alone has an empty result, and one without safeguards none", async () => {
    const { client, classifier } = await startClient(
      new ScriptedChatModel([{ content: "Done." }, finished()]),
      judge,
    );
    expect(resultsOf(await client.messages.create(inAutoMode))).toEqual(available({}));
    expect(resultsOf(await client.messages.create(ASKED))).toBeUndefined();
    expect(classifier.requests).toEqual([]);
  });

  test("a call that the limit cut off is not judged", async () => {
    const cut: Piece[] = [
      callPiece(0, '{"command":"rm -r', { id: "call_a", name: "Bash" }),
      finished("length"),
    ];
    const { client, classifier } = await startClient(new ScriptedChatModel(cut), judge);
    expect(resultsOf(await client.messages.create(inAutoMode))).toEqual(
      available({ call_a: unavailable("truncated") }),
    );
    expect(classifier.requests).toEqual([]);
  });

  test("an error of the provider reaches the client as the API's own", async () => {
    const failure = Object.assign(new Error("quota of org-123"), {
      status: 429,
      headers: { "retry-after": "9" },
    });
    const { client } = await startClient(new ScriptedChatModel([failure]), judge);
    const error: unknown = await client.messages.create(inAutoMode).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Anthropic.RateLimitError);
    expect(error instanceof Anthropic.APIError && error.headers?.get("retry-after")).toBe("9");
    expect(String(error)).not.toContain("org-123");
  });

  test("one that comes midway is an error of the stream", async () => {
    const failure = Object.assign(new Error("lost"), { status: 529 });
    const { client } = await startClient(new ScriptedChatModel([{ content: "Half a" }, failure]), judge);
    const error: unknown = await client.messages
      .stream(inAutoMode)
      .finalMessage()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Anthropic.APIError);
    expect(String(error)).toContain("overloaded_error");
  });

  test("tokens can be counted through it", async () => {
    const { client } = await startClient(new ScriptedChatModel([]), judge);
    const counted = await client.messages.countTokens({ model: "model-a", messages: ASKED.messages });
    expect(counted).toEqual({ input_tokens: expect.any(Number) as unknown, estimated: true });
  });
});

describe.each<[string, string, (url: string) => BaseChatModel]>([
  [
    "ChatOpenAI",
    'data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n',
    (url) =>
      new ChatOpenAI({ model: "gpt-4.1", apiKey: "k", configuration: { baseURL: url }, maxRetries: 0 }),
  ],
  [
    "ChatGoogle",
    'data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Hello"}]}}]}\n\n',
    (url) => new ChatGoogle({ model: "gemini-2.5-flash", apiKey: "k", endpoint: url, maxRetries: 0 }),
  ],
  [
    "ChatOllama",
    '{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"Hello"},"done":false}\n',
    (url) => new ChatOllama({ model: "m", baseUrl: url, maxRetries: 0 }),
  ],
  [
    "ChatAnthropic",
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}\n\n',
    (url) =>
      new ChatAnthropic({ model: "claude-haiku-4-5", apiKey: "k", anthropicApiUrl: url, maxRetries: 0 }),
  ],
])("%s", (_, firstPiece, make) => {
  /** A provider whose replies begin and never end, and which of them are still listened to. */
  async function startEndless(begin: boolean) {
    const isOpen: boolean[] = [];
    const answer: Answer = (_request, response) => {
      const at = isOpen.push(true) - 1;
      response.on("close", () => {
        isOpen[at] = false;
      });
      if (begin) response.writeHead(200, { "content-type": "text/event-stream" }).write(firstPiece);
    };
    const { url } = await startUpstream(answer);
    const { client } = await startClient(make(url), judge);
    return { client, isOpen };
  }

  test("stops when its client leaves a stream, and goes on for the others", async () => {
    const { client, isOpen } = await startEndless(true);
    const start = async () => {
      const stream = client.messages.stream(inAutoMode);
      const left = stream.done().catch((reason: unknown) => reason);
      await new Promise((resolve) => {
        stream.once("text", resolve);
      });
      return { leave: () => stream.abort(), left };
    };
    const stays = await start();
    const leaves = await start();
    leaves.leave();
    await leaves.left;
    await until(() => isOpen[1] === false);
    expect(isOpen).toEqual([true, false]);
    stays.leave();
    await until(() => isOpen[0] === false);
  });

  test("stops when its client leaves before the first word", async () => {
    const { client, isOpen } = await startEndless(false);
    const leaving = new AbortController();
    const reply = client.messages
      .create(inAutoMode, { signal: leaving.signal })
      .catch((reason: unknown) => reason);
    await until(() => isOpen.length === 1);
    leaving.abort();
    expect(await reply).toBeInstanceOf(Anthropic.APIUserAbortError);
    await until(() => isOpen[0] === false);
    expect(isOpen).toEqual([false]);
  });
});

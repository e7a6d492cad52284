import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatGoogle } from "@langchain/google/node";
import { ChatOllama } from "@langchain/ollama";
import { ChatOpenAI } from "@langchain/openai";
import { expect } from "vitest";
import type { Json } from "../messages.js";

/** What a model says in one reply. */
export interface Script {
  texts?: readonly string[];
  calls?: readonly { id: string; name: string; input: Json }[];
  /** Default: whatever ends such a reply. */
  end?: "limit" | "filtered";
}

/** A provider as its package speaks with it: where it is, and how it writes a reply. */
export interface Wire {
  url: string;
  make(fields?: Json): BaseChatModel;
  reply(script: Script): Response;
  /** What the client gets as ids of the calls `call_a` and `call_b`: not every provider sends ids. */
  ids: readonly [unknown, unknown];
  /** An answer that refuses a request. */
  error(status: number, words: string, headers?: Record<string, string>): Response;
}

const GIVEN_IDS = ["call_a", "call_b"] as const;
const MADE_ID: unknown = expect.stringMatching(/^[a-zA-Z0-9_-]+$/);
const MADE_IDS = [MADE_ID, MADE_ID] as const;

export const wires: Readonly<Record<string, Wire>> = {
  "OpenAI chat completions": {
    url: "http://models.test/v1/chat/completions",
    make: (fields) => openai({ useResponsesApi: false, ...fields }),
    reply: (script) => sse(completionChunks(script), "[DONE]"),
    ids: GIVEN_IDS,
    error: openaiError,
  },
  "OpenAI responses": {
    url: "http://models.test/v1/responses",
    make: (fields) => openai({ useResponsesApi: true, ...fields }),
    reply: (script) => sse(responsesEvents(script)),
    ids: GIVEN_IDS,
    error: openaiError,
  },
  Gemini: {
    url: "https://generativelanguage.googleapis.com/v1beta/models/:call",
    make: (fields) =>
      new ChatGoogle({ model: "gemini-2.5-flash", apiKey: "sk-provider", maxRetries: 0, ...fields }),
    reply: (script) => sse(geminiChunks(script)),
    ids: MADE_IDS,
    error: googleError,
  },
  Ollama: {
    url: "http://models.test/api/chat",
    make: (fields) =>
      new ChatOllama({ model: "qwen3:8b", baseUrl: "http://models.test", maxRetries: 0, ...fields }),
    reply: (script) => lines(ollamaChunks(script)),
    ids: MADE_IDS,
    error: (status, words, headers = {}) => Response.json({ error: words }, { status, headers }),
  },
  Anthropic: {
    url: "http://models.test/v1/messages",
    make: (fields) =>
      new ChatAnthropic({
        model: "claude-haiku-4-5",
        apiKey: "sk-provider",
        anthropicApiUrl: "http://models.test",
        maxRetries: 0,
        ...fields,
      }),
    reply: (script) => sse(anthropicEvents(script)),
    ids: GIVEN_IDS,
    error: (status, words, headers = {}) =>
      Response.json({ type: "error", error: { type: "some_error", message: words } }, { status, headers }),
  },
};

function openai(fields: Json): BaseChatModel {
  const configuration = { baseURL: "http://models.test/v1" };
  return new ChatOpenAI({
    model: "gpt-4.1-mini",
    apiKey: "sk-provider",
    configuration,
    maxRetries: 0,
    ...fields,
  });
}

function openaiError(status: number, words: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: { message: words, type: "some_error", code: null } }, { status, headers });
}

function googleError(status: number, words: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: { code: status, message: words, details: [] } }, { status, headers });
}

const json = (value: unknown): string => JSON.stringify(value);
const pieces = (text: string): string[] => text.match(/[\s\S]{1,4}/g) ?? [];

function sse(events: readonly Json[], last?: string): Response {
  const named = events.map((event) => {
    const { type } = event;
    return `${typeof type === "string" ? `event: ${type}\n` : ""}data: ${json(event)}\n\n`;
  });
  const body = [...named, ...(last === undefined ? [] : [`data: ${last}\n\n`])].join("");
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function lines(chunks: readonly Json[]): Response {
  const body = chunks.map((chunk) => `${json(chunk)}\n`).join("");
  return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
}

/** Pieces of all calls in turn, so that none is whole before the last. */
function inTurn<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}

const completionChunk = (delta: Json, rest: Json = {}): Json => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  model: "gpt-4.1-mini",
  choices: [{ index: 0, delta, finish_reason: null, ...rest }],
});

function completionChunks({ texts = [], calls = [], end }: Script): Json[] {
  const finished = calls.length > 0 ? "tool_calls" : "stop";
  const finish_reason = { limit: "length", filtered: "content_filter", none: finished }[end ?? "none"];
  const argumentPieces = calls.map(({ input }, index) =>
    pieces(json(input)).map((piece) =>
      completionChunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
    ),
  );
  return [
    completionChunk({ role: "assistant", content: "" }),
    ...texts.map((content) => completionChunk({ content })),
    ...calls.map(({ id, name }, index) =>
      completionChunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
    ),
    ...inTurn(argumentPieces),
    completionChunk({}, { finish_reason }),
    {
      id: "chatcmpl-1",
      object: "chat.completion.chunk",
      model: "gpt-4.1-mini",
      choices: [],
      usage: {
        prompt_tokens: 30,
        completion_tokens: 7,
        total_tokens: 37,
        prompt_tokens_details: { cached_tokens: 10 },
      },
    },
  ];
}

function responsesEvents({ texts = [], calls = [], end }: Script): Json[] {
  const text = texts.join("");
  const reason = { limit: "max_output_tokens", filtered: "content_filter", none: undefined }[end ?? "none"];
  const output = [
    {
      type: "message",
      id: "m1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    },
    ...calls.map(({ id, name, input }, index) => ({
      type: "function_call",
      id: `fc_${index}`,
      call_id: id,
      name,
      arguments: json(input),
      status: "completed",
    })),
  ];
  const whole = {
    id: "resp_1",
    object: "response",
    model: "gpt-4.1-mini",
    status: reason === undefined ? "completed" : "incomplete",
    incomplete_details: reason === undefined ? null : { reason },
    error: null,
    output,
    usage: {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 10 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 37,
    },
  };
  const argumentEvents = calls.map(({ input }, index) =>
    pieces(json(input)).map((delta) => ({
      type: "response.function_call_arguments.delta",
      item_id: `fc_${index}`,
      output_index: index + 1,
      delta,
    })),
  );
  return [
    { type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } },
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { type: "message", id: "m1", role: "assistant", status: "in_progress", content: [] },
    },
    ...texts.map((delta) => ({
      type: "response.output_text.delta",
      item_id: "m1",
      output_index: 0,
      content_index: 0,
      delta,
    })),
    ...calls.map(({ id, name }, index) => ({
      type: "response.output_item.added",
      output_index: index + 1,
      item: {
        type: "function_call",
        id: `fc_${index}`,
        call_id: id,
        name,
        arguments: "",
        status: "in_progress",
      },
    })),
    ...inTurn(argumentEvents),
    { type: reason === undefined ? "response.completed" : "response.incomplete", response: whole },
  ];
}

const geminiUsage = (candidatesTokenCount: number): Json => ({
  promptTokenCount: 30,
  candidatesTokenCount,
  totalTokenCount: 30 + candidatesTokenCount,
  cachedContentTokenCount: 10,
});

const geminiChunk = (parts: Json[], count: number, rest: Json = {}): Json => ({
  candidates: [{ index: 0, content: { role: "model", parts }, ...rest }],
  usageMetadata: geminiUsage(count),
});

function geminiChunks({ texts = [], calls = [], end }: Script): Json[] {
  const finishReason = { limit: "MAX_TOKENS", filtered: "SAFETY", none: "STOP" }[end ?? "none"];
  return [
    geminiChunk([{ text: "I think about it.", thought: true }], 1),
    ...texts.map((text, at) => geminiChunk([{ text }], Math.min(2 + at, 6))),
    ...calls.map(({ name, input }) => geminiChunk([{ functionCall: { name, args: input } }], 6)),
    geminiChunk([{ text: "" }], 7, { finishReason }),
  ];
}

const ollamaChunk = (message: Json): Json => ({
  model: "qwen3:8b",
  created_at: "2026-01-01T00:00:00Z",
  message: { role: "assistant", content: "", ...message },
  done: false,
});

function ollamaChunks({ texts = [], calls = [], end }: Script): Json[] {
  return [
    ollamaChunk({ thinking: "I think about it." }),
    ...texts.map((content) => ollamaChunk({ content })),
    ...calls.map(({ name, input }) =>
      ollamaChunk({ tool_calls: [{ function: { name, arguments: input } }] }),
    ),
    {
      model: "qwen3:8b",
      created_at: "2026-01-01T00:00:00Z",
      message: { role: "assistant", content: "" },
      done: true,
      done_reason: end === "limit" ? "length" : "stop",
      prompt_eval_count: 20,
      eval_count: 7,
    },
  ];
}

function anthropicEvents({ texts = [], calls = [], end }: Script): Json[] {
  const finished = calls.length > 0 ? "tool_use" : "end_turn";
  const stop_reason = { limit: "max_tokens", filtered: "refusal", none: finished }[end ?? "none"];
  const first = texts.length > 0 ? 1 : 0;
  const usage = {
    input_tokens: 20,
    cache_read_input_tokens: 10,
    cache_creation_input_tokens: 0,
    output_tokens: 0,
  };
  const message = {
    id: "msg_up",
    type: "message",
    role: "assistant",
    model: "claude-haiku-4-5",
    content: [],
    usage,
  };
  return [
    { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } },
    ...(texts.length === 0
      ? []
      : [
          { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
          ...texts.map((text) => ({
            type: "content_block_delta",
            index: 0,
            delta: { type: "text_delta", text },
          })),
          { type: "content_block_stop", index: 0 },
        ]),
    ...calls.flatMap(({ id, name, input }, at) => [
      {
        type: "content_block_start",
        index: first + at,
        content_block: { type: "tool_use", id, name, input: {} },
      },
      ...pieces(json(input)).map((partial_json) => ({
        type: "content_block_delta",
        index: first + at,
        delta: { type: "input_json_delta", partial_json },
      })),
      { type: "content_block_stop", index: first + at },
    ]),
    { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 7 } },
    { type: "message_stop" },
  ];
}

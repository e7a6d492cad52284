import { valueWithin } from "../../deadline.js";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { findInBindings, hasBoundTools } from "../../bindings.js";
import { ConfigurationError } from "../../errors.js";
import { ApiError, toApiError } from "./api-error.js";
import { messagesToLangChain, toolsToLangChain, type ToolUse } from "./request-to-langchain.js";
import {
  type MessagesRequest,
  estimateTokens,
  readCountRequest,
  readMessagesRequest,
} from "./messages-request.js";
import { collectMessage, type ReplyEvent, replyEvents } from "./reply-events.js";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";

/** What a request asks of the model in addition to the conversation. */
export interface CallSettings {
  /** The longest reply, in tokens. */
  readonly maxTokens: number;
  /** 0..1, if the request names one. */
  readonly temperature?: number;
  /** 0..1, if the request names one. */
  readonly topP?: number;
}

/**
 * The model behind a gateway: a LangChain chat model, which keeps the settings it was made with, or a function
 * that makes one for each request and may take the request's settings over.
 */
export type UpstreamModel =
  | BaseChatModel
  | ((settings: CallSettings) => BaseChatModel | Promise<BaseChatModel>);

/** Options of {@link createModelUpstream}. */
export interface ModelUpstreamOptions {
  /**
   * Called with the provider's own error when a request fails. It may repeat the request: log its code only.
   *
   * @default none
   * @example onError: (error) => console.error((error as { code?: string }).code)
   */
  onError?: (error: unknown) => void;
}

// Proxies cut lines that are silent for a minute, and a model may think for longer.
const PING_INTERVAL_MS = 15_000;
const PING = 'event: ping\ndata: {"type":"ping"}\n\n';
// Its connections that break, a client that leaves included, end the process with a rejection that nobody can
// handle; and it sends the results of parallel calls in a way that Gemini refuses.
const BROKEN_GOOGLE_MODEL = "googlegenerativeai";
const MODEL = "a LangChain chat model that can call tools, or a function that makes one";

/**
 * Makes a LangChain chat model answer Anthropic's messages API: `POST /v1/messages`, streamed or not, and
 * `POST /v1/messages/count_tokens`, whose answer is an estimate and says so (`estimated: true`).
 *
 * Thinking is dropped in both directions. Fields that the model has no use for (`thinking`, `metadata`,
 * `cache_control`, `context_management`, ...) are ignored. The model is always streamed, so that a reply ends at a
 * stop sequence and with the client. What cannot be translated is a 400 that names the place, never its content.
 *
 * @returns a function that answers each request, also with the error of a failing model. It rejects only when the
 * client has gone.
 * @throws {ConfigurationError} when `model` is neither a chat model without bound tools nor a function.
 *
 * @example
 * ```ts
 * const upstream = createModelUpstream(new ChatOpenAI({ model: "gpt-5-mini" }));
 * const handler = createSafeguardsHandler({ upstream, classifier });
 * ```
 */
export function createModelUpstream(
  model: UpstreamModel,
  options: ModelUpstreamOptions = {},
): (request: Request) => Promise<Response> {
  if (typeof model !== "function") checkModel(model);
  const failed = (error: unknown, hasStarted: boolean): ApiError => {
    // A request that is wrong in itself never reached the model.
    if (!(error instanceof ApiError) || error.status >= 500) options.onError?.(error);
    return toApiError(error, hasStarted);
  };

  return async (request) => {
    try {
      const { pathname } = new URL(request.url);
      if (request.method === "POST" && pathname.endsWith("/v1/messages/count_tokens")) {
        const counted = readCountRequest(await readJson(request));
        return Response.json({ input_tokens: estimateTokens(counted), estimated: true });
      }
      if (request.method !== "POST" || !pathname.endsWith("/v1/messages"))
        throw new ApiError(404, "There is nothing at this path.");
      const body = readMessagesRequest(await readJson(request));
      const gone = new AbortController();
      const signal = AbortSignal.any([request.signal, gone.signal]);
      const leave = (reason: unknown) => gone.abort(reason);
      const events = endingWith(leave, await ask(model, body, signal));
      // The first event comes with the model's first chunk: until then a failure of a stream has a status.
      const reply = startingWith(await events.next(), events);
      const brokeOff = (error: unknown) => failed(error, true);
      if (body.stream !== true) return await wholeReply(reply, request.signal, brokeOff);
      return new Response(writeEvents(reply, request.signal, leave, brokeOff), {
        headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
      });
    } catch (error) {
      request.signal.throwIfAborted();
      return failed(error, false).toResponse();
    }
  };
}

function checkModel(model: BaseChatModel): BaseChatModel {
  if (!isChatModel(model)) throw new ConfigurationError("model", `is not usable; expected ${MODEL}`);
  if (model._llmType() === BROKEN_GOOGLE_MODEL)
    throw new ConfigurationError(
      "model",
      "is a ChatGoogleGenerativeAI; expected ChatGoogle of @langchain/google",
    );
  if (hasBoundTools(model))
    throw new ConfigurationError("model", "has tools bound to it; each request brings its own");
  return model;
}

function isChatModel(value: unknown): boolean {
  const { stream, bindTools, _llmType } = (value ?? {}) as Partial<BaseChatModel>;
  return [stream, bindTools, _llmType].every((method) => typeof method === "function");
}

async function readJson(request: Request): Promise<unknown> {
  try {
    return JSON.parse(await request.text());
  } catch {
    request.signal.throwIfAborted();
    throw new ApiError(400, "body: expected JSON");
  }
}

async function ask(model: UpstreamModel, body: MessagesRequest, signal: AbortSignal) {
  const messages = messagesToLangChain(body);
  const use = toolsToLangChain(body);
  const made = typeof model === "function" ? checkModel(await model(settingsOf(body))) : model;
  const own = forOneRequest(made, signal);
  const chunks = await withTools(own, use).stream(fitToProvider(messages, own), { signal });
  return replyEvents(chunks, {
    model: body.model,
    usedIds: callIds(body),
    stopSequences: body.stop_sequences ?? [],
    maxCalls: use.maxCalls,
  });
}

function settingsOf({ max_tokens, temperature, top_p }: MessagesRequest): CallSettings {
  return {
    maxTokens: max_tokens,
    ...(typeof temperature === "number" ? { temperature } : {}),
    ...(typeof top_p === "number" ? { topP: top_p } : {}),
  };
}

function withTools(
  model: BaseChatModel,
  { tools, toolChoice, maxCalls }: ToolUse,
): Pick<BaseChatModel, "stream"> {
  if (tools.length === 0) return model;
  if (!model.bindTools) throw new ConfigurationError("model", `is not usable; expected ${MODEL}`);
  // Each provider's package takes these, or ignores them; their common type names none of them.
  const choice: object = {
    ...(toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...(maxCalls === 1 ? { parallel_tool_calls: false } : {}),
  };
  return model.bindTools([...tools], choice);
}

function callIds({ messages }: MessagesRequest): Set<string> {
  const blocks = messages.flatMap(({ content }) => (typeof content === "string" ? [] : content));
  const ids = blocks.map((block) => (block.type === "tool_use" ? block["id"] : undefined));
  return new Set(ids.filter((id) => typeof id === "string"));
}

/** Tells the model to stop when nobody reads on: at a stop sequence, after a failure, and when the client leaves. */
async function* endingWith(
  leave: (reason: unknown) => void,
  events: AsyncGenerator<ReplyEvent, void>,
): AsyncGenerator<ReplyEvent, void> {
  try {
    yield* events;
  } finally {
    leave(new DOMException("The reply has ended.", "AbortError"));
  }
}

async function* startingWith(
  first: IteratorResult<ReplyEvent, void>,
  rest: AsyncGenerator<ReplyEvent, void>,
): AsyncGenerator<ReplyEvent, void> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}

async function wholeReply(
  reply: AsyncIterable<ReplyEvent>,
  signal: AbortSignal,
  failed: (error: unknown) => ApiError,
): Promise<Response> {
  try {
    return Response.json(await collectMessage(reply));
  } catch (error) {
    signal.throwIfAborted();
    return failed(error).toResponse();
  }
}

/** Writes events as a stream that is read only as far as the client reads. A failure is its last event. */
function writeEvents(
  events: AsyncGenerator<ReplyEvent, void>,
  signal: AbortSignal,
  leave: (reason: unknown) => void,
  failed: (error: unknown) => ApiError,
): ReadableStream<Uint8Array> {
  let next: Promise<IteratorResult<ReplyEvent, void>> | undefined;
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          next ??= events.next();
          const result = await valueWithin(next, PING_INTERVAL_MS);
          if (result === undefined) {
            controller.enqueue(encoder.encode(PING));
            return;
          }
          next = undefined;
          if (result.done) controller.close();
          else controller.enqueue(encoder.encode(eventText(result.value.type, result.value)));
        } catch (error) {
          signal.throwIfAborted();
          controller.enqueue(encoder.encode(eventText("error", failed(error))));
          controller.close();
        }
      },
      cancel(reason) {
        leave(reason);
        void events.return(undefined).catch(() => {});
      },
    },
    { highWaterMark: 0 },
  );
}

function eventText(type: string, data: unknown): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}

// What Google documents for calls whose signature is not at hand: it belongs to the reasoning, which no client
// of the messages API sends back.
const NO_SIGNATURE = "skip_thought_signature_validator";

/** Changes a conversation where a provider's package would lose a part of it, or send what its service refuses. */
function fitToProvider(messages: readonly BaseMessage[], model: BaseChatModel): BaseMessage[] {
  if (model._llmType() !== "google") return [...messages];
  const name = findInBindings(model, "model", (value) => typeof value === "string") ?? "";
  return messages.map((message) => withGoogleCalls(message, name.includes("gemini-3")));
}

/**
 * The model as one request may use it. ChatOllama does not tell its client about a signal, and ends all its replies
 * where one is left: each request gets a copy, which is ended by itself.
 */
function forOneRequest(model: BaseChatModel, signal: AbortSignal): BaseChatModel {
  if (model._llmType() !== "ollama") return model;
  const Copy = model.constructor as new (fields: object) => BaseChatModel;
  const { fetch: send = fetch } = model.lc_kwargs as { fetch?: typeof fetch };
  const abortable: typeof fetch = (input, init) => {
    const signals = init?.signal ? [signal, init.signal] : [signal];
    return send(input, { ...init, signal: AbortSignal.any(signals) });
  };
  return new Copy({ ...model.lc_kwargs, fetch: abortable });
}

/** `@langchain/google` sends calls that are part of the content, and leaves out those in `tool_calls`. */
function withGoogleCalls(message: BaseMessage, needsSignature: boolean): BaseMessage {
  if (!AIMessage.isInstance(message) || !message.tool_calls?.length) return message;
  const calls = message.tool_calls.map(({ id, name, args }) => ({
    type: "functionCall",
    // An id that the package made up goes neither with the call nor with its result.
    functionCall: { name, args, ...(id === undefined || id.startsWith("lc-tool-call-") ? {} : { id }) },
    ...(needsSignature ? { thoughtSignature: NO_SIGNATURE } : {}),
  }));
  const text = message.text === "" ? [] : [{ type: "text", text: message.text }];
  return new AIMessage({ content: [...text, ...calls], tool_calls: message.tool_calls });
}

import type { AIMessageChunk, UsageMetadata } from "@langchain/core/messages";
import { v4 } from "@langchain/core/utils/uuid";
import { ApiError } from "./api-error.js";

/** What of the request decides the form of the reply. */
export interface ReplyOptions {
  /** The model as the client called it. */
  readonly model: string;
  /** Ids of earlier calls: no new call gets one of them. */
  readonly usedIds: ReadonlySet<string>;
  readonly stopSequences: readonly string[];
  /** How many calls the reply may hold: further ones are dropped. */
  readonly maxCalls: number;
}

export interface ReplyUsage {
  /** Without those read from or written to a cache. */
  input_tokens: number;
  output_tokens: number;
  cache_read_input_tokens: number;
  cache_creation_input_tokens: number;
}

export type ReplyBlock =
  | { type: "text"; text: string }
  | { type: "tool_use"; id: string; name: string; input: Readonly<Record<string, unknown>> };

export interface ReplyMessage {
  id: string;
  type: "message";
  role: "assistant";
  model: string;
  content: ReplyBlock[];
  stop_reason: Exclude<StopReason, "failed"> | null;
  stop_sequence: string | null;
  usage: ReplyUsage;
}

/** An event of a streamed reply, as Anthropic's messages API sends it. */
export type ReplyEvent =
  | { type: "message_start"; message: ReplyMessage }
  | { type: "content_block_start"; index: number; content_block: ReplyBlock }
  | {
      type: "content_block_delta";
      index: number;
      delta: { type: "text_delta"; text: string } | { type: "input_json_delta"; partial_json: string };
    }
  | { type: "content_block_stop"; index: number }
  | { type: "message_delta"; delta: Pick<ReplyMessage, "stop_reason" | "stop_sequence">; usage: ReplyUsage }
  | { type: "message_stop" };

interface TextBlock {
  kind: "text";
  text: string;
  /** How much of it the client has. */
  sent: number;
}

interface CallBlock {
  kind: "call";
  /** The provider's id and place, by which later pieces name the call. */
  providerId: string | undefined;
  providerIndex: number | string | undefined;
  name: string;
  args: string;
  sent: number;
}

/**
 * Writes what a LangChain chat model streams as the events of Anthropic's messages API, as it arrives.
 *
 * Blocks follow each other there, while providers may send pieces of several calls in turn: the first unfinished
 * block is sent as it grows, and the ones behind it wait. A call is finished once its arguments are a whole JSON
 * object and something else has begun, at the latest with the reply. Reasoning is dropped. The first event comes
 * with the first chunk, so that a failure before it can still be an HTTP status.
 *
 * Stop sequences are found here, in the text, and end the reply: not every provider takes them, and none says
 * which one it met.
 *
 * @throws {ApiError} for a reply that is not complete, or no reply at all.
 */
export async function* replyEvents(
  chunks: AsyncIterable<AIMessageChunk>,
  options: ReplyOptions,
): AsyncGenerator<ReplyEvent, void, undefined> {
  const writer = new ReplyWriter(options);
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    while (!writer.isStopped) {
      const { done, value } = await iterator.next();
      if (done) break;
      yield* writer.take(value);
    }
  } finally {
    // Not waited for: a model that is busy returns only once its signal is aborted, which is the caller's.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
  yield* writer.end();
}

/** Puts the events of a reply together as the one message of a reply that is not streamed. */
export async function collectMessage(events: AsyncIterable<ReplyEvent>): Promise<ReplyMessage> {
  let message: ReplyMessage | undefined;
  let json = "";
  let isBroken = false;
  for await (const event of events) {
    if (event.type === "message_start") message = event.message;
    const block = message?.content.at(-1);
    if (event.type === "content_block_start") {
      json = "";
      message?.content.push({ ...event.content_block });
    } else if (event.type === "content_block_delta") {
      if (event.delta.type === "input_json_delta") json += event.delta.partial_json;
      else if (block?.type === "text") block.text += event.delta.text;
    } else if (event.type === "content_block_stop" && block?.type === "tool_use") {
      const input = json === "" ? {} : parseArguments(json);
      if (input) block.input = input;
      else isBroken = true;
    } else if (event.type === "message_delta" && message) {
      message = { ...message, ...event.delta, usage: event.usage };
    }
  }
  if (!message) throw new ApiError(500, "The model gave no reply.");
  // A call that the limit cut off is known as such by the stop reason; there is no other way to send a broken one.
  if (isBroken && message.stop_reason !== "max_tokens")
    throw new ApiError(500, "The model called a tool with arguments that are not a JSON object.");
  return message;
}

class ReplyWriter {
  readonly #options: ReplyOptions;
  readonly #blocks: (TextBlock | CallBlock)[] = [];
  // Which block is being sent, and whether it has begun.
  #at = 0;
  #isOpen = false;
  // How many the client has got whole, and how many calls it knows of. Empty blocks are not sent.
  #sentBlocks = 0;
  #sentCalls = 0;
  #isStarted = false;
  #stopSequence: string | undefined;
  readonly #finish = new FinishReason();
  readonly #usage = { input: 0, output: 0, cacheRead: 0, cacheCreation: 0 };
  readonly #ids: Set<string>;

  constructor(options: ReplyOptions) {
    this.#options = options;
    this.#ids = new Set(options.usedIds);
  }

  /** A stop sequence was met: what the model still has to say is not wanted. */
  get isStopped(): boolean {
    return this.#stopSequence !== undefined;
  }

  *take(chunk: AIMessageChunk): Generator<ReplyEvent> {
    this.#finish.take(chunk);
    if (chunk.usage_metadata) this.#count(chunk.usage_metadata);
    if (!this.#isStarted) yield this.#start();
    const text = textOf(chunk);
    if (text !== "") this.#addText(text);
    if (!this.isStopped) for (const piece of piecesOf(chunk)) this.#addPiece(piece);
    yield* this.#send(false);
  }

  *end(): Generator<ReplyEvent> {
    const stop = this.#finish.stopReason;
    if (!this.isStopped) {
      if (stop === "failed") throw new ApiError(500, "The model did not complete its reply.");
      if (this.#blocks.length === 0 && !this.#finish.isGiven)
        throw new ApiError(500, "The model gave no reply.");
    }
    yield* this.#send(true);
    yield {
      type: "message_delta",
      delta: { stop_reason: this.#stopReason(stop), stop_sequence: this.#stopSequence ?? null },
      usage: this.#replyUsage(),
    };
    yield { type: "message_stop" };
  }

  #start(): ReplyEvent {
    this.#isStarted = true;
    const message: ReplyMessage = {
      id: `msg_${randomId()}`,
      type: "message",
      role: "assistant",
      model: this.#options.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: this.#replyUsage(),
    };
    return { type: "message_start", message };
  }

  #addText(text: string): void {
    const last = this.#blocks.at(-1);
    const block: TextBlock = last?.kind === "text" ? last : { kind: "text", text: "", sent: 0 };
    if (block !== last) this.#blocks.push(block);
    block.text += text;
    const stop = firstStop(block, this.#options.stopSequences);
    if (stop === undefined) return;
    block.text = block.text.slice(0, stop.at);
    this.#stopSequence = stop.sequence;
  }

  #addPiece(piece: ToolCallPiece): void {
    const call = this.#callOf(piece);
    call.providerId ??= piece.id || undefined;
    call.name ||= piece.name ?? "";
    call.args += piece.args ?? "";
  }

  /**
   * The call that a piece belongs to. Providers name it by id, by index or by both; some send no id, or one for
   * the first piece alone; some number each of their calls 0, and some give all of them one id.
   */
  #callOf({ id, index, name, args }: ToolCallPiece): CallBlock {
    const calls = this.#blocks.filter((block) => block.kind === "call");
    const isAt = (call: CallBlock) => index === undefined || call.providerIndex === index;
    const known = id ? calls.findLast((call) => call.providerId === id && isAt(call)) : undefined;
    // Arguments after a whole object belong to another call.
    if (known && !(args && isWhole(known))) return known;
    // A call is named once: a second name is another call's.
    const last = calls.findLast((call) => isAt(call));
    if (last && !(name && last.name)) return last;
    const call: CallBlock = {
      kind: "call",
      providerId: undefined,
      providerIndex: index,
      name: "",
      args: "",
      sent: 0,
    };
    this.#blocks.push(call);
    return call;
  }

  /** Sends what can be sent of the blocks: all of them once the reply has ended. */
  *#send(hasEnded: boolean): Generator<ReplyEvent> {
    for (let block = this.#blocks[this.#at]; block; block = this.#blocks[this.#at]) {
      if (!this.#isWanted(block)) {
        this.#at++;
        continue;
      }
      const isComplete = hasEnded || (this.#at < this.#blocks.length - 1 && isWhole(block));
      if (!this.#isOpen) {
        // The client reads a call's name once, at its start.
        if (block.kind === "call" && block.name === "") {
          if (hasEnded) throw new ApiError(500, "The model called a tool without its name.");
          return;
        }
        if (block.kind === "text" && block.sent === this.#sendable(block, isComplete)) {
          if (!isComplete) return;
          this.#at++;
          continue;
        }
        this.#isOpen = true;
        yield { type: "content_block_start", index: this.#sentBlocks, content_block: this.#startOf(block) };
      }
      yield* this.#sendRest(block, isComplete);
      if (!isComplete) return;
      yield { type: "content_block_stop", index: this.#sentBlocks };
      this.#isOpen = false;
      this.#sentBlocks++;
      this.#at++;
    }
  }

  #isWanted(block: TextBlock | CallBlock): boolean {
    return this.#isOpen || block.kind === "text" || this.#sentCalls < this.#options.maxCalls;
  }

  #startOf(block: TextBlock | CallBlock): ReplyBlock {
    if (block.kind === "text") return { type: "text", text: "" };
    this.#sentCalls++;
    return { type: "tool_use", id: this.#idFor(block), name: block.name, input: {} };
  }

  *#sendRest(block: TextBlock | CallBlock, isComplete: boolean): Generator<ReplyEvent> {
    const whole = block.kind === "text" ? block.text : block.args;
    const end = block.kind === "text" ? this.#sendable(block, isComplete) : whole.length;
    if (block.sent >= end) return;
    const rest = whole.slice(block.sent, end);
    block.sent = end;
    const delta =
      block.kind === "text"
        ? ({ type: "text_delta", text: rest } as const)
        : ({ type: "input_json_delta", partial_json: rest } as const);
    yield { type: "content_block_delta", index: this.#sentBlocks, delta };
  }

  /** Up to where a text may be sent: what could be the start of a stop sequence waits for what follows. */
  #sendable({ text }: TextBlock, isComplete: boolean): number {
    if (isComplete || this.isStopped) return text.length;
    const held = this.#options.stopSequences.map((sequence) => overlap(text, sequence));
    return text.length - Math.max(0, ...held);
  }

  /** The provider's own id if a client takes it and it names one call only; else a new one. */
  #idFor({ providerId }: CallBlock): string {
    const isUsable =
      providerId !== undefined && /^[a-zA-Z0-9_-]+$/.test(providerId) && !this.#ids.has(providerId);
    const id = isUsable ? providerId : `toolu_${randomId()}`;
    this.#ids.add(id);
    return id;
  }

  #stopReason(stop: StopReason | undefined): ReplyMessage["stop_reason"] {
    if (this.isStopped) return "stop_sequence";
    if (stop !== undefined && stop !== "failed" && stop !== "stop_sequence") return stop;
    return this.#sentCalls > 0 ? "tool_use" : "end_turn";
  }

  #count({ input_tokens, output_tokens, input_token_details }: UsageMetadata): void {
    const usage = this.#usage;
    // Chunks carry what is new since the last; the details of the input are repeated whole.
    usage.input += input_tokens;
    usage.output += output_tokens;
    usage.cacheRead = Math.max(usage.cacheRead, input_token_details?.cache_read ?? 0);
    usage.cacheCreation = Math.max(usage.cacheCreation, input_token_details?.cache_creation ?? 0);
  }

  #replyUsage(): ReplyUsage {
    const { input, output, cacheRead, cacheCreation } = this.#usage;
    return {
      // LangChain counts all input, Anthropic only what no cache was used for.
      input_tokens: Math.max(0, input - cacheRead - cacheCreation),
      output_tokens: output,
      cache_read_input_tokens: cacheRead,
      cache_creation_input_tokens: cacheCreation,
    };
  }
}

type ToolCallPiece = NonNullable<AIMessageChunk["tool_call_chunks"]>[number];

/** The pieces of calls in a chunk. Some packages, and models that cannot stream, give whole calls. */
function piecesOf({ tool_call_chunks: pieces, tool_calls: calls }: AIMessageChunk): ToolCallPiece[] {
  if (pieces && pieces.length > 0) return pieces;
  return (calls ?? []).map(({ id, name, args }) => ({
    name,
    args: JSON.stringify(args),
    ...(id === undefined ? {} : { id }),
  }));
}

/** What the model says in a chunk. Its reasoning is left out, wherever the provider puts it. */
function textOf({ content, additional_kwargs }: AIMessageChunk): string {
  const { refusal } = additional_kwargs;
  const said = typeof content === "string" ? content : content.map((block) => textOfBlock(block)).join("");
  return typeof refusal === "string" ? said + refusal : said;
}

function textOfBlock(block: unknown): string {
  if (typeof block === "string") return block;
  const { type, text, thought } = block as { type?: unknown; text?: unknown; thought?: unknown };
  return (type === "text" || type === "text_delta") && typeof text === "string" && thought !== true
    ? text
    : "";
}

/** Whether nothing can be added to a block any more but by mistake. */
function isWhole(block: TextBlock | CallBlock): boolean {
  return (
    block.kind === "text" || (block.args.trimEnd().endsWith("}") && parseArguments(block.args) !== undefined)
  );
}

function parseArguments(json: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function firstStop({ text, sent }: TextBlock, sequences: readonly string[]) {
  const found = sequences
    .map((sequence) => ({ sequence, at: text.indexOf(sequence, sent) }))
    .filter(({ at }) => at !== -1);
  return found.toSorted((a, b) => a.at - b.at)[0];
}

/** The length of the longest end of a text that a sequence begins with, without being all of it. */
function overlap(text: string, sequence: string): number {
  for (let length = Math.min(text.length, sequence.length - 1); length > 0; length--)
    if (text.endsWith(sequence.slice(0, length))) return length;
  return 0;
}

function randomId(): string {
  return v4().replaceAll("-", "");
}

/** Why a reply ended, in the words of Anthropic's messages API. `"failed"`: it is no reply to go on with. */
type StopReason = "end_turn" | "tool_use" | "max_tokens" | "stop_sequence" | "refusal" | "failed";

// The words of OpenAI (both APIs), Anthropic, Bedrock, Gemini, Ollama, Mistral and Cohere, in lower case.
const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  length: "max_tokens",
  max_tokens: "max_tokens",
  max_output_tokens: "max_tokens",
  model_length: "max_tokens",
  model_context_window_exceeded: "max_tokens",
  stop_sequence: "stop_sequence",
  refusal: "refusal",
  content_filter: "refusal",
  content_filtered: "refusal",
  guardrail_intervened: "refusal",
  safety: "refusal",
  image_safety: "refusal",
  recitation: "refusal",
  blocklist: "refusal",
  prohibited_content: "refusal",
  spii: "refusal",
  error: "failed",
  failed: "failed",
  cancelled: "failed",
  malformed_function_call: "failed",
  unexpected_tool_call: "failed",
  missing_thought_signature: "failed",
};

// These always say why a reply ended. One that does not was cut off on its way.
const ALWAYS_GIVEN_BY = new Set(["openai", "anthropic", "ollama", "groq", "mistralai"]);

/** Collects why a reply ended from its chunks: each provider's package keeps it somewhere else. */
class FinishReason {
  #reason: string | undefined;
  #isRequired = false;

  take({ response_metadata, additional_kwargs }: AIMessageChunk): void {
    const metadata: Readonly<Record<string, unknown>> = response_metadata;
    const extra: Readonly<Record<string, unknown>> = additional_kwargs;
    this.#isRequired ||= ALWAYS_GIVEN_BY.has(String(metadata["model_provider"]));
    const given = [
      // A refusal of OpenAI's models ends like any other reply.
      extra["refusal"] ? "refusal" : undefined,
      // "incomplete" of OpenAI's Responses API says less than its details.
      fieldOf(metadata["incomplete_details"], "reason"),
      metadata["finish_reason"],
      metadata["finishReason"],
      metadata["stop_reason"],
      metadata["stopReason"],
      fieldOf(metadata["messageStop"], "stopReason"),
      metadata["done_reason"],
      extra["stop_reason"],
      extra["finishReason"],
      metadata["status"] === "in_progress" ? undefined : metadata["status"],
    ].find((value) => typeof value === "string" && value !== "");
    if (typeof given === "string" && this.#reason !== "refusal") this.#reason = given.toLowerCase();
  }

  /** `undefined` where the provider named a reason of no special meaning, or need not name any. */
  get stopReason(): StopReason | undefined {
    if (this.#reason === undefined) return this.#isRequired ? "failed" : undefined;
    return Object.hasOwn(STOP_REASONS, this.#reason) ? STOP_REASONS[this.#reason] : undefined;
  }

  /** Whether the provider said why the reply ended. */
  get isGiven(): boolean {
    return this.#reason !== undefined;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

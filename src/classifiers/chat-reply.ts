import { type AIMessage, BaseMessage } from "@langchain/core/messages";
import type { UnavailableReason } from "../errors.js";

/** The text of a chat model's reply, or why there is none to read. */
export type ReplyText = { text: string } | NoReply;

/** Why a reply has no text to read. */
export interface NoReply {
  reason: UnavailableReason;
  problem: string;
}

// Providers spell the same stop differently; LangChain passes their words on.
const CUT = new Set([
  "length",
  "max_tokens",
  "max_output_tokens",
  "max_completion_tokens",
  "model_length",
  "model_context_window_exceeded",
]);
const REFUSED = new Set([
  "refusal",
  "content_filter",
  "content_filtered",
  "guardrail_intervened",
  "safety",
  "prohibited_content",
  "blocklist",
  "spii",
  "recitation",
  "error_toxic",
]);
const STOP_FIELDS = ["finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason"];
// The model's way to its answer, which is never read.
const REASONING_BLOCKS = new Set(["reasoning", "thinking", "redacted_thinking", "reasoning_content"]);

/** Why a reply cannot count, whatever its text says: a refusal, or a stop at the token limit. */
export function stopOf(message: BaseMessage): NoReply | undefined {
  const words = new Set([...stopWords(message)].map((word) => word.toLowerCase()));
  const has = (known: ReadonlySet<string>) => [...words].some((word) => known.has(word));
  if (hasRefusal(message) || has(REFUSED)) return { reason: "refused", problem: "the model refused" };
  if (has(CUT)) return { reason: "truncated", problem: "the reply stopped at the token limit" };
  return undefined;
}

/** The text of a reply, its reasoning left out. */
export function replyText(message: BaseMessage): ReplyText {
  if ((message as AIMessage).tool_calls?.length) {
    return { reason: "error", problem: "the reply is a tool call" };
  }
  if (typeof message.content === "string") return { text: message.content };
  // A provider may leave the content out, whatever the types say.
  const blocks = (message.content ?? []).filter((block) => !REASONING_BLOCKS.has(block.type));
  if (!blocks.every((block) => block.type === "text" && typeof block.text === "string")) {
    return { reason: "error", problem: "the reply holds something else than text" };
  }
  return { text: blocks.map((block) => block.text as string).join("") };
}

/** What came back: the message, and beside it what structured output made of it. */
export interface ChatReply {
  message: BaseMessage | undefined;
  /** Undefined if there was no structured output, or nothing came of it. */
  parsed?: unknown;
}

/** Takes apart what a chat model, or one with structured output, returned. */
export function unwrapReply(reply: unknown): ChatReply {
  if (BaseMessage.isInstance(reply)) return { message: reply };
  const { raw, parsed } = (reply ?? {}) as { raw?: unknown; parsed?: unknown };
  if (BaseMessage.isInstance(raw)) return { message: raw, parsed: parsed ?? undefined };
  // A model may give the object alone, although it was asked for the message as well.
  return { message: undefined, parsed: reply ?? undefined };
}

/** The name of the model that wrote a message, as its provider tells. */
export function writerOf(message: BaseMessage | undefined): string | undefined {
  const { model_name: name, model } = (message?.response_metadata ?? {}) as Record<string, unknown>;
  return [name, model].find((candidate) => typeof candidate === "string" && candidate !== "") as
    | string
    | undefined;
}

/** The provider's id of a message. */
export function providerId(message: BaseMessage | undefined): string | undefined {
  // Where the provider gave none, LangChain made one up out of the run's.
  return message?.id?.startsWith("run-") ? undefined : message?.id;
}

function* stopWords({
  response_metadata: metadata,
  additional_kwargs: extra,
}: BaseMessage): Generator<string> {
  for (const fields of [metadata, extra] as (Record<string, unknown> | undefined)[]) {
    for (const name of STOP_FIELDS) if (typeof fields?.[name] === "string") yield fields[name];
    const details = fields?.["incomplete_details"] as { reason?: unknown } | null | undefined;
    if (typeof details?.reason === "string") yield details.reason;
  }
}

function hasRefusal({ additional_kwargs: extra, content }: BaseMessage): boolean {
  if (typeof extra?.["refusal"] === "string" && extra["refusal"] !== "") return true;
  return Array.isArray(content) && content.some((block) => block.type === "refusal");
}

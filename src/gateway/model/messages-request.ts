import { z } from "zod";
import { optionPath } from "../../option-problem.js";
import { ApiError } from "./api-error.js";

// Only what is read is described. Everything else a client may send (`thinking`, `metadata`, `cache_control`,
// `safeguards`, ...) is let through unread.
const block = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.array(block)], "expected a string or an array of blocks with a type");

const tool = z.looseObject({
  type: z.string().nullish(),
  name: z.string().min(1),
  description: z.string().nullish(),
  input_schema: z.record(z.string(), z.unknown()).nullish(),
});

const toolChoice = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("auto"), disable_parallel_tool_use: z.boolean().nullish() }),
  z.looseObject({ type: z.literal("any"), disable_parallel_tool_use: z.boolean().nullish() }),
  z.looseObject({
    type: z.literal("tool"),
    name: z.string().min(1),
    disable_parallel_tool_use: z.boolean().nullish(),
  }),
  z.looseObject({ type: z.literal("none") }),
]);

const schema = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.int().min(1),
  messages: z.array(z.looseObject({ role: z.enum(["user", "assistant", "system"]), content })).min(1),
  system: content.nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  stop_sequences: z.array(z.string().min(1)).nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
});

/** What is read of the body of a `POST /v1/messages`. */
export type MessagesRequest = z.output<typeof schema>;
/** One block of a message. Its other fields may hold anything. */
export type Block = z.output<typeof block>;

/** The body of a `count_tokens` request names no limit. */
const countSchema = schema.omit({ max_tokens: true });

/**
 * Reads the body of a request to the messages API.
 *
 * @throws {ApiError} with status 400 that names the first wrong field, never its value.
 */
export function readMessagesRequest(body: unknown): MessagesRequest {
  return read(schema, body);
}

/** Checks the body of a `count_tokens` request. Throws like {@link readMessagesRequest}. */
export function readCountRequest(body: unknown): z.output<typeof countSchema> {
  return read(countSchema, body);
}

function read<T>(type: z.ZodType<T>, body: unknown): T {
  const result = type.safeParse(body);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw new ApiError(400, `${optionPath("", path) || "body"}: ${message}`);
}

// Four bytes of text for one token is what English prose and code come to with common tokenizers; with other
// scripts, whose characters take two or three bytes, the estimate stays in the same range.
const BYTES_PER_TOKEN = 4;
// Anthropic's own figure for an image at the largest size it does not scale down.
const TOKENS_PER_IMAGE = 1_600;

/** Estimates the tokens of a request without a tokenizer: each model has its own, and not all are public. */
export function estimateTokens(request: {
  readonly system?: unknown;
  readonly messages: unknown;
  readonly tools?: unknown;
}): number {
  let attachments = 0;
  const text = JSON.stringify([request.system, request.messages, request.tools], (_, value: unknown) => {
    if (!isEncoded(value)) return value;
    attachments++;
    return undefined;
  });
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN) + attachments * TOKENS_PER_IMAGE;
}

function isEncoded(value: unknown): boolean {
  return typeof value === "object" && value !== null && (value as { type?: unknown }).type === "base64";
}

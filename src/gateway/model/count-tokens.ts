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

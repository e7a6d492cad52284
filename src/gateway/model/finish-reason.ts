import type { AIMessageChunk } from "@langchain/core/messages";

/** Why a reply ended, in the words of Anthropic's messages API. `"failed"`: it is no reply to go on with. */
export type StopReason = "end_turn" | "tool_use" | "max_tokens" | "stop_sequence" | "refusal" | "failed";

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
export class FinishReason {
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

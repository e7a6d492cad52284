import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { findInBindings } from "../../bindings.js";

// What Google documents for calls whose signature is not at hand: it belongs to the reasoning, which no client
// of the messages API sends back.
const NO_SIGNATURE = "skip_thought_signature_validator";

/** Changes a conversation where a provider's package would lose a part of it, or send what its service refuses. */
export function fitToProvider(messages: readonly BaseMessage[], model: BaseChatModel): BaseMessage[] {
  if (model._llmType() !== "google") return [...messages];
  const name = findInBindings(model, "model", (value) => typeof value === "string") ?? "";
  return messages.map((message) => withGoogleCalls(message, name.includes("gemini-3")));
}

/**
 * The model as one request may use it. ChatOllama does not tell its client about a signal, and ends all its replies
 * where one is left: each request gets a copy, which is ended by itself.
 */
export function forOneRequest(model: BaseChatModel, signal: AbortSignal): BaseChatModel {
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

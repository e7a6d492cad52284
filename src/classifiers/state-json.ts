import type { JsonValue, State, StateValue } from "@langchain/core/decisions";
import { AIMessage, BaseMessage, ToolMessage } from "@langchain/core/messages";

const ROLES: Readonly<Record<string, string>> = { human: "user", ai: "assistant" };

/**
 * A state as plain JSON, for services that read no LangChain messages: a message becomes
 * `{ role, content, … }`. Only real messages are messages: an object in the shape of one stays data.
 *
 * @throws {Error} for a message with an image or a file, which would get lost.
 */
export function stateAsJson(state: State): JsonValue {
  return asJson(state);
}

function asJson(value: State | StateValue): JsonValue {
  if (BaseMessage.isInstance(value)) return messageAsJson(value);
  if (Array.isArray(value)) return value.map(asJson);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, asJson(part)]));
}

function messageAsJson(message: BaseMessage): JsonValue {
  return {
    role: ROLES[message.type] ?? message.type,
    ...(message.name === undefined ? {} : { name: message.name }),
    content: messageText(message),
    ...(AIMessage.isInstance(message) && message.tool_calls?.length
      ? { tool_calls: message.tool_calls.map(({ name, args }) => ({ name, args: args as JsonValue })) }
      : {}),
    ...(ToolMessage.isInstance(message) && message.status === "error" ? { status: "error" } : {}),
  };
}

// Blocks that say nothing of their own: calls are in fields of their own, reasoning is not the message.
const SILENT_BLOCKS = new Set(["tool_call", "tool_use", "reasoning", "thinking", "redacted_thinking"]);

function messageText(message: BaseMessage): string {
  if (typeof message.content === "string") return message.content;
  return message.content
    .map((block) => {
      if (block.type === "text") return String(block.text);
      if (SILENT_BLOCKS.has(block.type)) return "";
      throw new Error(
        `This decision model reads text only, and a message of the state has a block of type ${block.type}.`,
      );
    })
    .join("");
}

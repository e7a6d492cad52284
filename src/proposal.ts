import type { AIMessage, BaseMessage, ToolMessage } from "@langchain/core/messages";

/** A message that proposed tool calls, with the messages around it. */
export interface Proposal {
  readonly message: AIMessage;
  readonly earlier: readonly BaseMessage[];
  readonly later: readonly BaseMessage[];
}

/** The message that proposed the calls of the current step. */
export function lastAiMessage(messages: readonly BaseMessage[]): AIMessage | undefined {
  return messages.findLast((message) => message.getType() === "ai") as AIMessage | undefined;
}

/** The proposal with an id, read from the end. */
export function findProposal(messages: readonly BaseMessage[], messageId: string): Proposal | undefined {
  const position = messages.findLastIndex(
    (message) => message.id === messageId && message.getType() === "ai",
  );
  if (position < 0) return undefined;
  return {
    message: messages[position] as AIMessage,
    earlier: messages.slice(0, position),
    later: messages.slice(position + 1),
  };
}

/** Ids of the calls that these messages answer. */
export function answeredIds(messages: readonly BaseMessage[]): Set<string> {
  const ids = new Set<string>();
  for (const message of messages)
    if (message.getType() === "tool") ids.add((message as ToolMessage).tool_call_id);
  return ids;
}

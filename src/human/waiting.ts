import { type AIMessage, type BaseMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import { REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import { overtakenFeedback } from "../feedback.js";
import type { ThreadState } from "../limits/state.js";

/** The proposal of the current step, with its place in the thread. */
export interface Proposal {
  readonly message: AIMessage;
  readonly position: number;
}

export function findProposal(messages: readonly BaseMessage[], messageId: string): Proposal | undefined {
  const position = messages.findLastIndex(
    (message) => message.id === messageId && message.getType() === "ai",
  );
  return position < 0 ? undefined : { message: messages[position] as AIMessage, position };
}

/** Ids of the calls that have their answer. */
export function answeredIds(messages: readonly BaseMessage[], from: number): Set<string> {
  const ids = new Set<string>();
  for (const message of messages.slice(from))
    if (message.getType() === "tool") ids.add((message as ToolMessage).tool_call_id);
  return ids;
}

/** An error answer of ours in place of a tool's result. */
export function errorMessage(id: string, name: string, content: string): ToolMessage {
  return new ToolMessage({
    content,
    tool_call_id: id,
    name,
    status: "error",
    additional_kwargs: { lc_source: "auto_mode" },
  });
}

/**
 * A new message came while calls waited: they are answered as not run, right behind their proposal,
 * where providers want tool results to stand. Nothing to do gives nothing.
 */
export function answerOvertaken(
  messages: readonly BaseMessage[],
  thread: ThreadState,
): { messages?: BaseMessage[] } {
  const { step } = thread;
  if (!step || step.waiting.length + step.approvals.length === 0) return {};
  const proposal = findProposal(messages, step.messageId);
  if (!proposal) return {};
  const answered = answeredIds(messages, proposal.position + 1);
  const open = new Set([...step.waiting, ...step.approvals].map(({ id }) => id));
  const answers = (proposal.message.tool_calls ?? []).flatMap(({ id, name }) =>
    id && open.has(id) && !answered.has(id) ? [errorMessage(id, name, overtakenFeedback(name))] : [],
  );
  if (answers.length === 0) return {};
  let end = proposal.position + 1;
  while (messages[end]?.getType() === "tool") end += 1;
  return {
    messages: [
      new RemoveMessage({ id: REMOVE_ALL_MESSAGES }),
      ...messages.slice(0, end),
      ...answers,
      ...messages.slice(end),
    ],
  };
}

import { type AIMessage, type BaseMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import { REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import { type FrozenJson, digest, freezeJson } from "../json.js";
import { changedFeedback, supersededFeedback, unheardFeedback } from "../guard/feedback.js";
import type { StepState, ThreadState, WaitingCall } from "../limits/state.js";

/** The proposal of the current step, with what stands around it. */
export interface Proposal {
  readonly message: AIMessage;
  readonly earlier: readonly BaseMessage[];
  readonly later: readonly BaseMessage[];
}

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

/** Ids of the calls that have their answer. */
export function answeredIds(messages: readonly BaseMessage[]): Set<string> {
  const ids = new Set<string>();
  for (const message of messages)
    if (message.getType() === "tool") ids.add((message as ToolMessage).tool_call_id);
  return ids;
}

/** A waiting call with the call that a person is shown. */
export interface ShownCall extends WaitingCall {
  readonly args: Record<string, unknown>;
  readonly snapshot: FrozenJson;
}

/**
 * The waiting calls as their message holds them. A call that is not what it was when it was judged is
 * shown to nobody: a person would decide about something else than what was stopped, or than what the
 * question said.
 */
export function waitingCalls(
  step: StepState,
  proposal: Proposal,
): { shown: readonly ShownCall[]; changed: readonly WaitingCall[] } {
  const answered = answeredIds(proposal.later);
  const shown: ShownCall[] = [];
  const changed: WaitingCall[] = [];
  for (const waiting of step.waiting) {
    if (answered.has(waiting.id)) continue;
    const call = proposal.message.tool_calls?.[waiting.index];
    const snapshot = freezeJson(call?.args);
    const isSame =
      call !== undefined &&
      snapshot !== undefined &&
      call.id === waiting.id &&
      call.name === waiting.name &&
      digest(snapshot) === waiting.digest;
    if (isSame) shown.push({ ...waiting, args: call.args, snapshot });
    else changed.push(waiting);
  }
  return { shown, changed };
}

/** Answers for calls that were changed while they waited. */
export const answerChanged = (changed: readonly WaitingCall[]): ToolMessage[] =>
  changed.map(({ id, name }) => errorMessage(id, name, changedFeedback(name)));

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
export function answerSuperseded(
  messages: readonly BaseMessage[],
  thread: ThreadState,
): { messages?: BaseMessage[] } {
  const { step } = thread;
  const proposal = step && findProposal(messages, step.messageId);
  if (!proposal) return {};
  const answered = answeredIds(proposal.later);
  const approved = new Set(step.approvals.map(({ id }) => id));
  const open = new Set([...approved, ...step.waiting.map(({ id }) => id)]);
  const answers = (proposal.message.tool_calls ?? []).flatMap(({ id, name }) => {
    if (!id || !open.has(id) || answered.has(id)) return [];
    return [errorMessage(id, name, (approved.has(id) ? unheardFeedback : supersededFeedback)(name))];
  });
  if (answers.length === 0) return {};
  const end = proposal.later.findIndex((message) => message.getType() !== "tool");
  const results = end < 0 ? proposal.later : proposal.later.slice(0, end);
  return {
    messages: [
      new RemoveMessage({ id: REMOVE_ALL_MESSAGES }),
      ...proposal.earlier,
      proposal.message,
      ...results,
      ...answers,
      ...proposal.later.slice(results.length),
    ],
  };
}

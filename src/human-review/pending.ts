import { type BaseMessage, RemoveMessage, type ToolMessage } from "@langchain/core/messages";
import { REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import type { DecisionRecord } from "../decision-record.js";
import { type RecordFields, createRecord } from "../guard/report.js";
import type { Counters } from "../errors.js";
import { changedFeedback, supersededFeedback, unheardFeedback } from "../guard/feedback.js";
import { type FrozenJson, digest, freezeJson } from "../json.js";
import type { CallIdentity, StepState, ThreadState, WaitingCall } from "../limits/state.js";
import { type Proposal, answeredIds, findProposal } from "../proposal.js";
import type { Policy } from "../resolve-options.js";
import { ownAnswer } from "../tool-call/tool-output.js";

/** A waiting call with the call that a person is shown. */
export interface ShownCall extends WaitingCall {
  readonly args: Record<string, unknown>;
  readonly frozen: FrozenJson;
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
    const frozen = freezeJson(call?.args);
    const isSame =
      call !== undefined &&
      frozen !== undefined &&
      call.id === waiting.id &&
      call.name === waiting.name &&
      digest(frozen) === waiting.digest;
    if (isSame) shown.push({ ...waiting, args: call.args, frozen });
    else changed.push(waiting);
  }
  return { shown, changed };
}

/** Approvals whose calls have not had their turn yet. */
export function openApprovals(messages: readonly BaseMessage[], step: StepState): CallIdentity[] {
  const proposal = findProposal(messages, step.messageId);
  if (!proposal) return [];
  const answered = answeredIds(proposal.later);
  // A call that was taken out of its message meanwhile will never be started.
  const proposed = new Set(proposal.message.tool_calls?.map(({ id }) => id));
  return step.approvals.filter(({ id }) => proposed.has(id) && !answered.has(id));
}

/** An answer of ours to a call that never came to its tool, with its record. */
export interface RecordedAnswer {
  readonly answer: ToolMessage;
  readonly record: DecisionRecord;
}

/** Answers a call that waited for a person and did not run. */
export function answerWaiting(
  policy: Policy,
  messageId: string,
  call: CallIdentity & Pick<WaitingCall, "risk" | "threshold">,
  counters: Counters,
  content: string,
  ending: Pick<RecordFields, "outcome" | "by" | "reason" | "executed">,
): RecordedAnswer {
  const { id, name, risk, threshold } = call;
  const record = createRecord({
    label: policy.label,
    mode: policy.mode,
    messageId,
    toolCallId: id,
    toolName: name,
    argsDigest: call.digest,
    ...(risk === undefined ? {} : { risk }),
    threshold:
      threshold ?? (policy.selection.ruleFor({ names: [name], tool: undefined }) ?? policy.general).threshold,
    classifier: policy.classifierName,
    latencyMs: 0,
    counters,
    ...ending,
  });
  return { answer: ownAnswer({ content, tool_call_id: id, name, artifact: record }), record };
}

/** Answers for calls that were changed while they waited. */
export function answerChanged(
  policy: Policy,
  messageId: string,
  changed: readonly WaitingCall[],
  counters: Counters,
): RecordedAnswer[] {
  return changed.map((call) =>
    answerWaiting(policy, messageId, call, counters, changedFeedback(call.name), {
      outcome: "held_back",
      by: "guard",
      reason: "changed while it waited for a person",
    }),
  );
}

/**
 * A new message came while calls waited: they are answered as not run, right behind their proposal,
 * where providers want tool results to be. Nothing to do gives nothing.
 */
export function answerSuperseded(
  policy: Policy,
  messages: readonly BaseMessage[],
  thread: ThreadState,
): { readonly messages?: BaseMessage[]; readonly records: readonly DecisionRecord[] } {
  const { step } = thread;
  const proposal = step && findProposal(messages, step.messageId);
  if (!proposal) return { records: [] };
  const answered = answeredIds(proposal.later);
  const { counters } = thread.limitStatus;
  const open = (proposal.message.tool_calls ?? []).flatMap(({ id }): RecordedAnswer[] => {
    const approved = step.approvals.find((call) => call.id === id);
    // Approved calls run one after the other: those behind the one that was sent last were never started.
    const mayHaveRun =
      approved &&
      (step.sent === undefined ||
        step.approvals.indexOf(approved) <= step.approvals.findIndex((call) => call.id === step.sent));
    const waiting = step.waiting.find((call) => call.id === id);
    if (!id || answered.has(id)) return [];
    if (approved && mayHaveRun)
      return [
        answerWaiting(policy, step.messageId, approved, counters, unheardFeedback(approved.name), {
          outcome: "approved",
          by: "human",
          executed: "not seen",
          reason: "a new message came before its result",
        }),
      ];
    const stopped = approved ?? waiting;
    if (!stopped) return [];
    return [
      answerWaiting(
        policy,
        step.messageId,
        stopped,
        counters,
        supersededFeedback(stopped.name, approved !== undefined),
        {
          outcome: "held_back",
          by: "guard",
          reason: approved
            ? "a new message came before it was started"
            : "a new message came instead of a person's answer",
        },
      ),
    ];
  });
  if (open.length === 0) return { records: [] };
  const end = proposal.later.findIndex((message) => message.getType() !== "tool");
  const results = end < 0 ? proposal.later : proposal.later.slice(0, end);
  return {
    records: open.map(({ record }) => record),
    messages: [
      new RemoveMessage({ id: REMOVE_ALL_MESSAGES }),
      ...proposal.earlier,
      proposal.message,
      ...results,
      ...open.map(({ answer }) => answer),
      ...proposal.later.slice(results.length),
    ],
  };
}

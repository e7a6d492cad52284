import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";
import { type AgentStep, type StateKeys, threadOf } from "../tool-call/step.js";
import type { DecisionRecord } from "../decision-record.js";
import { askPerson } from "./interrupt.js";
import { applyDecisions } from "./apply-decisions.js";
import { humanRecord } from "./human-record.js";
import { rewriteProposal } from "./rewrite-proposal.js";
import { answerChanged, answerSuperseded, answeredIds, findProposal, waitingCalls } from "./pending.js";
import { askHuman } from "../limits/fallbacks.js";
import { type Approval, type StepState, reduceState } from "../limits/state.js";
import { type Policy, mayAsk } from "../resolve-options.js";
import type { Request } from "../tool-call/request.js";
import { mapMessages } from "../tool-call/tool-output.js";

type Runtime = Request["runtime"];
type Deliver = (record: DecisionRecord, request: { runtime: Runtime }) => void;
type State = Record<string, unknown> & { messages: BaseMessage[] };

/** Approvals whose calls have not had their turn yet. */
function openApprovals(state: State, step: StepState): Approval[] {
  const proposal = findProposal(state.messages, step.messageId);
  if (!proposal) return [];
  const answered = answeredIds(proposal.later);
  // A call that was taken out of its message meanwhile will never be started.
  const proposed = new Set(proposal.message.tool_calls?.map(({ id }) => id));
  return step.approvals.filter(({ id }) => proposed.has(id) && !answered.has(id));
}

/** The host's router knows the result of a returnDirect tool by its name. */
function hideName(message: unknown): unknown {
  if (typeof message !== "object" || message === null) return message;
  const { lc_kwargs: fields } = message as { lc_kwargs?: { name?: unknown } };
  delete (message as { name?: unknown }).name;
  delete fields?.name;
  return message;
}

/** The part of the middleware that parks calls, asks a person and lets approved calls run. */
export function createHumanReview(policy: Policy, keys: StateKeys, deliver: Deliver) {
  const asks = policy.mode === "enforce" && mayAsk(policy);
  const fallback = policy.fallback.kind === "ask" ? policy.fallback : askHuman();
  const hook = (given: unknown, runtime: Runtime) => {
    const state = given as State;
    const thread = threadOf(state, keys);
    const { step } = thread;
    const proposal = step && findProposal(state.messages, step.messageId);
    if (!step || !proposal) return undefined;
    const [next] = openApprovals(state, step);
    if (next) {
      // Sent by another branch of the graph, which goes on with it: once more would start it twice.
      if (next.id === step.sent) return { jumpTo: "end" as const };
      const { turn } = thread;
      const operation = { op: "sent" as const, turn, messageId: step.messageId, id: next.id };
      return { [keys.thread]: operation, jumpTo: "tools" as const };
    }
    const { shown, changed } = waitingCalls(step, proposal);
    if (shown.length + changed.length === 0) return undefined;

    const decisions = shown.length > 0 ? askPerson(shown, fallback, runtime.configurable) : [];
    const decided = applyDecisions(shown, decisions, answeredIds(proposal.earlier));
    const operation = {
      op: "answered" as const,
      turn: thread.turn,
      messageId: step.messageId,
      calls: decided.calls,
      approvals: decided.approvals,
    };
    const counted = reduceState(thread, operation, policy.limits).limitStatus.counters;
    for (const call of decided.rejected)
      deliver(humanRecord(policy, step.messageId, call, counted), { runtime });
    return {
      messages: [
        ...(decided.rewritten.length > 0 ? [rewriteProposal(proposal.message, decided.rewritten)] : []),
        ...decided.answers,
        ...answerChanged(changed),
      ],
      [keys.thread]: operation,
      ...(decided.approvals.length > 0 ? { jumpTo: "tools" as const } : {}),
    };
  };

  return {
    /** Only where asking is configured: the hook costs a graph step for each model call. */
    beforeModel: asks ? { canJumpTo: ["tools" as const, "end" as const], hook } : undefined,

    answerSuperseded,

    /** Whether a person may have to do with a call: only then its step is looked at. */
    concerns: (request: Request): boolean => asks && threadOf(request.state, keys).step !== undefined,

    /**
     * Whether a call has nothing to do in this pass. After an approval the host starts every call of the
     * step that has no answer: approved calls run one for each pass, so that an interrupt or a crash in
     * one repeats no other. Any other call has had its turn: its tool gave no answer, or it has no id, so
     * that the host cannot tell its answer.
     */
    isOver(request: Request, agentStep: AgentStep): boolean {
      const { step } = agentStep.thread;
      if (!step || step.messageId !== agentStep.messageId || step.approvals.length === 0) return false;
      const { id } = request.toolCall;
      return !agentStep.isApproved(id) || openApprovals(request.state, step)[0]?.id !== id;
    },

    /** A returnDirect result as the last message would end the run while calls still wait. */
    async keepWaiting(
      result: ToolMessage | Command,
      request: Request,
      stepOf: (request: Request) => AgentStep,
    ): Promise<ToolMessage | Command> {
      const tool = request.tool as { returnDirect?: boolean } | undefined;
      if (!asks || !tool?.returnDirect) return result;
      const agentStep = stepOf(request);
      const { step } = agentStep.thread;
      const isLater = step?.messageId === agentStep.messageId && step.approvals.length > 0;
      const waits = isLater ? openApprovals(request.state, step).length > 1 : await agentStep.parksCalls();
      if (!waits) return result;
      if (ToolMessage.isInstance(result)) return hideName(result) as ToolMessage;
      return mapMessages(result, hideName);
    },
  };
}

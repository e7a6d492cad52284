import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { type Command, interrupt } from "@langchain/langgraph";
import { type AgentStep, type StateKeys, threadOf } from "./agent-step.js";
import { digest, takeSnapshot } from "./arguments.js";
import type { DecisionRecord } from "./decision-record.js";
import { ConfigurationError } from "./errors.js";
import { rejectedFeedback } from "./feedback.js";
import { humanRecord } from "./human/human-record.js";
import { type HumanDecision, readDecisions } from "./human/decisions.js";
import { type RewrittenCall, rewriteProposal } from "./human/rewrite-proposal.js";
import { type Proposal, answerOvertaken, answeredIds, errorMessage, findProposal } from "./human/waiting.js";
import { type AskFallback, askHuman } from "./limits/fallbacks.js";
import { type Approval, type CountedCall, type StepState, reduceState } from "./limits/state.js";
import type { Policy } from "./policy.js";
import type { Request } from "./step-calls.js";

// The host's own key for it; the public runtime does not tell.
const CHECKPOINTER = "__pregel_checkpointer";

type Runtime = Request["runtime"];
type Deliver = (record: DecisionRecord, request: { runtime: Runtime }) => void;
type State = Record<string, unknown> & { messages: BaseMessage[] };

/** A waiting call with the call that a person is shown. */
interface Shown {
  readonly id: string;
  readonly index: number;
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly judged: CountedCall["judged"];
}

function unanswered<T extends { readonly id: string }>(
  calls: readonly T[],
  answered: ReadonlySet<string>,
): T[] {
  return calls.filter(({ id }) => !answered.has(id));
}

function question(shown: readonly Shown[], fallback: AskFallback) {
  return {
    actionRequests: shown.map(({ name, args }) => ({
      name,
      args,
      description:
        fallback.description ?? `Auto mode did not allow this call of ${name}. It waits for your decision.`,
    })),
    reviewConfigs: shown.map(({ name }) => ({
      actionName: name,
      allowedDecisions: [...fallback.allowedDecisions],
    })),
  };
}

/** Asks until the answer fits. Each further question is an interrupt of its own in the same node. */
function ask(shown: readonly Shown[], fallback: AskFallback, runtime: Runtime): HumanDecision[] {
  if (!runtime.configurable?.[CHECKPOINTER])
    throw new ConfigurationError(
      "checkpointer",
      "is missing; expected one, since asking a person pauses the run: createAgent({ checkpointer: new MemorySaver(), ... })",
    );
  for (;;) {
    const decisions = readDecisions(
      interrupt(question(shown, fallback)),
      shown.length,
      fallback.allowedDecisions,
    );
    if (decisions) return decisions;
  }
}

/** What a person's decisions turn into. */
function carryOut(
  shown: readonly Shown[],
  decisions: readonly HumanDecision[],
  usedIds: ReadonlySet<string>,
) {
  const approvals: Approval[] = [];
  const rewritten: RewrittenCall[] = [];
  const answers: ToolMessage[] = [];
  const calls: CountedCall[] = [];
  for (const [position, call] of shown.entries()) {
    const decision = decisions[position] as HumanDecision;
    const counted = { index: call.index, key: `${call.index}:${call.id}`, judged: call.judged };
    if (decision.type === "reject") {
      answers.push(errorMessage(call.id, call.name, rejectedFeedback(call.name, decision.message)));
      calls.push({ ...counted, outcome: "rejected" });
      continue;
    }
    const action = decision.type === "edit" ? decision.editedAction : { name: call.name, args: call.args };
    const snapshot = takeSnapshot(action.args);
    if (!snapshot) continue;
    // The host drops a call whose id was answered earlier in the thread.
    const id = usedIds.has(call.id) ? globalThis.crypto.randomUUID() : call.id;
    if (decision.type === "edit" || id !== call.id)
      rewritten.push({ index: call.index, id, name: action.name, args: snapshot.value });
    approvals.push({ id, name: action.name, digest: digest(snapshot) });
    calls.push({ ...counted, outcome: "approved" });
  }
  return { approvals, rewritten, answers, calls };
}

function shownCalls(step: StepState, proposal: Proposal, answered: ReadonlySet<string>): Shown[] {
  return unanswered(step.waiting, answered).flatMap(({ id, index, judged }) => {
    const call = proposal.message.tool_calls?.[index];
    return call && call.id === id ? [{ id, index, judged, name: call.name, args: call.args }] : [];
  });
}

/** Approvals whose calls have not run yet. */
function openApprovals(state: State, step: StepState): Approval[] {
  const proposal = findProposal(state.messages, step.messageId);
  return proposal ? unanswered(step.approvals, answeredIds(state.messages, proposal.position + 1)) : [];
}

/** The part of the middleware that parks calls, asks a person and lets approved calls run. */
export function createAsking(policy: Policy, keys: StateKeys, deliver: Deliver) {
  const asks =
    policy.mode === "enforce" && (policy.fallback.kind === "ask" || policy.onUnavailable === "ask");
  const fallback = policy.fallback.kind === "ask" ? policy.fallback : askHuman();
  const hook = (given: unknown, runtime: Runtime) => {
    const state = given as State;
    const thread = threadOf(state, keys);
    const { step } = thread;
    const proposal = step && findProposal(state.messages, step.messageId);
    if (!step || !proposal) return undefined;
    if (openApprovals(state, step).length > 0) return { jumpTo: "tools" as const };
    const shown = shownCalls(step, proposal, answeredIds(state.messages, proposal.position + 1));
    if (shown.length === 0) return undefined;

    const decisions = ask(shown, fallback, runtime);
    const usedIds = answeredIds(state.messages.slice(0, proposal.position), 0);
    const { approvals, rewritten, answers, calls } = carryOut(shown, decisions, usedIds);
    const operation = {
      op: "answered" as const,
      turn: thread.turn,
      messageId: step.messageId,
      calls,
      approvals,
    };
    const counted = reduceState(thread, operation, policy.limits).standing.counters;
    for (const call of shown)
      if (calls.some(({ index, outcome }) => index === call.index && outcome === "rejected"))
        deliver(humanRecord(policy, step.messageId, call, counted), { runtime });
    return {
      messages: [...(rewritten.length > 0 ? [rewriteProposal(proposal.message, rewritten)] : []), ...answers],
      [keys.thread]: operation,
      ...(approvals.length > 0 ? { jumpTo: "tools" as const } : {}),
    };
  };

  return {
    /** Only where asking is configured: the hook costs a graph step for each model call. */
    beforeModel: asks ? { canJumpTo: ["tools" as const], hook } : undefined,

    answerOvertaken,

    /** Whether a person may have to do with a call: only then its step is looked at. */
    concerns: (request: Request): boolean => asks && threadOf(request.state, keys).step !== undefined,

    /**
     * Whether a call has nothing to do in this pass. After an approval the host starts every call of the
     * step that has no answer: approved calls run one for each pass, so that an interrupt or a crash in
     * one repeats no other, and a call without an id, which the host cannot tell from an unanswered one,
     * has had its turn.
     */
    isOver(request: Request, agentStep: AgentStep): boolean {
      const { step } = agentStep.thread;
      if (!step || step.messageId !== agentStep.messageId || step.approvals.length === 0) return false;
      const { id } = request.toolCall;
      if (!id) return true;
      if (!agentStep.isApproved(id)) return false;
      const [next] = openApprovals(request.state, step);
      return next !== undefined && next.id !== id;
    },

    /** A returnDirect result as the last message would end the run while calls still wait. */
    async keepAsking(
      result: ToolMessage | Command,
      request: Request,
      stepOf: (request: Request) => AgentStep,
    ): Promise<ToolMessage | Command> {
      const tool = request.tool as { returnDirect?: boolean } | undefined;
      if (!asks || !tool?.returnDirect || !ToolMessage.isInstance(result)) return result;
      const agentStep = stepOf(request);
      const { step } = agentStep.thread;
      const isLater = step?.messageId === agentStep.messageId && step.approvals.length > 0;
      const waits = isLater ? openApprovals(request.state, step).length > 1 : await agentStep.parksCalls();
      if (!waits) return result;
      // The router knows such a result by its name.
      delete result.name;
      delete result.lc_kwargs.name;
      return result;
    },
  };
}

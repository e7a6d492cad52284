import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";
import type { DecisionDetails } from "../decision-record.js";
import { freezeJson } from "../json.js";
import { askHuman } from "../limits/fallbacks.js";
import { type StateKeys, type ThreadState, issue, reduceState, threadOf } from "../limits/state.js";
import { type Proposal, answeredIds, findProposal } from "../proposal.js";
import type { Policy } from "../resolve-options.js";
import { readTranscript } from "../tool-call/context.js";
import type { EmitRecord } from "../tool-call/emit-record.js";
import type { Request } from "../tool-call/request.js";
import type { Step } from "../tool-call/step.js";
import { mapMessages } from "../tool-call/tool-output.js";
import { applyDecisions } from "./apply-decisions.js";
import { askPerson } from "./interrupt.js";
import { answerChanged, answerSuperseded, answerWaiting, openApprovals, waitingCalls } from "./pending.js";
import { rewriteProposal } from "./rewrite-proposal.js";

type State = Request["state"];
type Runtime = Request["runtime"];

/** The host's router knows the result of a returnDirect tool by its name. */
function hideName(message: unknown): unknown {
  if (typeof message !== "object" || message === null) return message;
  const { lc_kwargs: fields } = message as { lc_kwargs?: { name?: unknown } };
  delete (message as { name?: unknown }).name;
  delete fields?.name;
  return message;
}

const isReturnDirect = (tool: Request["tool"]): boolean =>
  tool !== undefined && "returnDirect" in tool && tool.returnDirect === true;

/** The part of the middleware that asks a person about waiting calls and lets approved calls run. */
export class HumanReview {
  /** Whether anything can wait. Only then the hook is added: it costs a graph step for each model call. */
  readonly isOn: boolean;
  readonly #policy: Policy;
  readonly #keys: StateKeys;
  readonly #emitRecord: EmitRecord;

  constructor(policy: Policy, keys: StateKeys, emitRecord: EmitRecord) {
    this.isOn = policy.mode === "enforce" && policy.asksHuman;
    this.#policy = policy;
    this.#keys = keys;
    this.#emitRecord = emitRecord;
  }

  /** Before each model call: sends the next approved call to the tools, or asks about all waiting ones. */
  beforeModel(state: State, runtime: Runtime) {
    const thread = threadOf(state, this.#keys);
    const { step, turn } = thread;
    const proposal = step && findProposal(state.messages, step.messageId);
    if (!step || !proposal) return undefined;
    const { messageId } = step;
    const [next] = openApprovals(state.messages, step);
    if (next) {
      // Sent by another branch of the graph, which goes on with it: once more would start it twice.
      if (next.id === step.sent) return { jumpTo: "end" as const };
      const operation = issue({ op: "sent" as const, turn, messageId, id: next.id });
      return { [this.#keys.thread]: operation, jumpTo: "tools" as const };
    }
    const { shown, changed } = waitingCalls(step, proposal);
    if (shown.length + changed.length === 0) return undefined;

    const settings = this.#policy.fallback.kind === "ask" ? this.#policy.fallback : askHuman();
    const answers = shown.length > 0 ? askPerson(shown, settings, runtime.configurable) : [];
    const applied = applyDecisions(messageId, shown, answers, answeredIds(proposal.earlier));
    const { approvals, calls, decisions, rejected, rewritten } = applied;
    const operation = issue({ op: "answered" as const, turn, messageId, calls, approvals, decisions });
    const { counters } = reduceState(thread, operation, this.#policy.limits).limitStatus;
    const stopped = [
      ...rejected.map(({ call, feedback }) =>
        answerWaiting(this.#policy, messageId, call, counters, feedback, {
          outcome: "rejected",
          by: "human",
        }),
      ),
      ...answerChanged(this.#policy, messageId, changed, counters),
    ];
    for (const { record } of stopped)
      this.#emitRecord(record, this.#details(state, proposal, record.toolCallId), runtime);
    return {
      messages: [
        ...(rewritten.length > 0 ? [rewriteProposal(proposal.message, rewritten)] : []),
        ...stopped.map(({ answer }) => answer),
      ],
      [this.#keys.thread]: operation,
      ...(approvals.length > 0 ? { jumpTo: "tools" as const } : {}),
    };
  }

  /** New input in place of an answer: the calls that waited are answered as not run. */
  supersede(state: State, runtime: Runtime): { messages?: BaseMessage[] } {
    const thread = threadOf(state, this.#keys);
    const { messages, records } = answerSuperseded(this.#policy, state.messages, thread);
    const proposal = thread.step && findProposal(state.messages, thread.step.messageId);
    if (proposal)
      for (const record of records)
        this.#emitRecord(record, this.#details(state, proposal, record.toolCallId), runtime);
    return messages ? { messages } : {};
  }

  /**
   * Whether a call of a tool that is not guarded matters here all the same: after a person's answer the host
   * starts every call of the step again, and a returnDirect tool ends the run.
   */
  concerns({ tool }: Request, { step }: ThreadState): boolean {
    return this.isOn && ((step?.approvals.length ?? 0) > 0 || isReturnDirect(tool));
  }

  /**
   * Whether a call has nothing to do in this pass. After an approval the host starts every call of the
   * step that has no answer: approved calls run one for each pass, so that an interrupt or a crash in
   * one repeats no other. Any other call has had its turn: its tool gave no answer, or it has no id, so
   * that the host cannot tell its answer.
   */
  isOver({ toolCall, state }: Request, { earlier }: Step): boolean {
    if (!this.isOn || !earlier || earlier.approvals.length === 0) return false;
    const [next] = openApprovals(state.messages, earlier);
    return next === undefined || next.id !== toolCall.id;
  }

  /** A returnDirect result as the last message would end the run while calls still wait. */
  async keepWaiting(
    result: ToolMessage | Command,
    request: Request,
    step: Step,
  ): Promise<ToolMessage | Command> {
    if (!this.isOn || !isReturnDirect(request.tool)) return result;
    const { earlier } = step;
    const waits =
      earlier && earlier.approvals.length > 0
        ? openApprovals(request.state.messages, earlier).length > 1
        : await step.suspendsCalls(request);
    if (!waits) return result;
    if (ToolMessage.isInstance(result)) return hideName(result) as ToolMessage;
    return mapMessages(result, hideName);
  }

  #details(state: State, { message }: Proposal, toolCallId: string): DecisionDetails {
    const index = message.tool_calls?.findIndex(({ id }) => id === toolCallId) ?? -1;
    const call = message.tool_calls?.[index];
    const read = (): DecisionDetails["transcript"] =>
      readTranscript(this.#policy, this.#keys, state, message, new Set([index]));
    return {
      call: { name: call?.name ?? "", args: freezeJson(call?.args)?.value },
      tool: {},
      get transcript() {
        return read();
      },
    };
  }
}

import type { ToolMessage } from "@langchain/core/messages";
import type { AgentStep } from "./step.js";
import { digest } from "../json.js";
import type { DecisionRecord, Executed } from "../decision-record.js";
import { ClassificationError } from "../errors.js";
import type { DecidedCall } from "../guard/evaluate.js";
import type { CountedCall, Operation, WaitingCall } from "../limits/state.js";
import type { Policy } from "../resolve-options.js";
import { feedbackFor, recordFor, unavailableReason } from "../guard/report.js";
import type { Request } from "./request.js";
import { ownAnswer } from "./tool-authored.js";

/** What reporting needs of the middleware around it. */
export interface ReportHost {
  readonly policy: Policy;
  readonly deliver: (record: DecisionRecord, request: Request) => void;
  /** Keeps the failure itself, which the state cannot hold, for the `cause` of what is thrown later. */
  readonly keepFailure: (step: AgentStep, error: unknown) => void;
}

type Failure = Extract<Operation, { op: "call" }>["failure"];

/** Writes down what became of one call: its records, its counts, its answer. */
export class CallReport {
  readonly #host: ReportHost;
  readonly #step: AgentStep;
  readonly #request: Request;
  readonly #counted = new Map<string, CountedCall>();
  #waiting: WaitingCall | undefined;
  #failure: Failure;

  constructor(host: ReportHost, step: AgentStep, request: Request) {
    this.#host = host;
    this.#step = step;
    this.#request = request;
  }

  /**
   * Records a decision, once for each verdict on a call, however often the call is entered; once more if its
   * tool was not seen to start at first, and was later.
   */
  record(decided: DecidedCall, key: string, executed?: Executed): DecisionRecord {
    const record = recordFor(this.#host.policy, decided, executed);
    const verdict = `${key} ${record.outcome}`;
    const { recorded } = this.#step;
    if (!recorded.has(verdict) || (recorded.get(verdict) === "not seen" && executed !== "not seen")) {
      recorded.set(verdict, executed);
      this.#host.deliver(record, this.#request);
    }
    return record;
  }

  count({ call, decision }: DecidedCall, key: string): void {
    // An approval was counted when the person gave it.
    if (decision.outcome !== "approved")
      this.#counted.set(key, { ...decision.counted, index: call.index, key });
  }

  /** Notes that a call waits for a person. It counts when it is answered. */
  park({ call, snapshot, decision }: DecidedCall): void {
    if (!snapshot) return;
    this.#waiting = {
      id: call.id,
      index: call.index,
      name: call.name,
      digest: digest(snapshot),
      judged: decision.counted.judged,
    };
  }

  /** The answer that a stopped call gets in place of a result. */
  refuse(decided: DecidedCall, key: string, executed?: Executed): ToolMessage {
    const { policy, keepFailure } = this.#host;
    const artifact = this.record(decided, key, executed);
    this.count(decided, key);
    const unavailable = unavailableReason(decided);
    const fails = unavailable !== undefined && policy.onUnavailable === "throw" && !this.#step.trusted;
    if (fails) {
      const error = decided.judgement?.error;
      const status = ClassificationError.find(error)?.status;
      this.#failure = { reason: unavailable, ...(typeof status === "number" ? { status } : {}) };
      keepFailure(this.#step, error);
    }
    return ownAnswer({
      content: feedbackFor(policy, decided, fails),
      tool_call_id: decided.call.id,
      name: this.#request.toolCall.name,
      artifact,
    });
  }

  /** What the state must hear of all this, if anything. Asked once, when the call has ended. */
  takeOperation(): Operation | undefined {
    if (this.#host.policy.mode === "observe") return undefined;
    // An approval is for one start: without an answer of its tool the call would be started for ever.
    const { id } = this.#request.toolCall;
    const spent = this.#step.isApproved(id) ? id : undefined;
    const mustTell = Boolean(this.#waiting ?? this.#failure ?? spent);
    const { untold } = this.#step;
    if (mustTell) untold.tellAll();
    const calls = untold.tell([...this.#counted.values()]);
    if (calls.length === 0 && !mustTell) return undefined;
    return {
      op: "call",
      turn: this.#step.thread.turn,
      messageId: this.#step.messageId,
      calls,
      ...(this.#waiting ? { waiting: this.#waiting } : {}),
      ...(spent ? { spent } : {}),
      ...(this.#failure ? { failure: this.#failure } : {}),
    };
  }
}

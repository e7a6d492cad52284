import { ToolMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";
import { digest, takeSnapshot, thaw } from "./arguments.js";
import { type AgentStep, type Request, executingName } from "./agent-step.js";
import type { DecisionRecord, Executed } from "./decision-record.js";
import { type DecidedCall, feedbackFor, recordFor, unavailableReason } from "./guard.js";
import { guardTool } from "./guarded-tool.js";
import { ClassificationError } from "./errors.js";
import type { CountedCall, Operation, WaitingCall } from "./limits/state.js";
import type { Policy } from "./policy.js";
import type { StartGate, ToolStart } from "./tool-start.js";

type Handler = (request: Request) => Promise<ToolMessage | Command> | ToolMessage | Command;
type Result = ToolMessage | Command;

/** What a guarded call, carried out, leaves behind. */
export interface CarriedOut {
  /** Missing for a parked call, which stays without an answer until a person decides. */
  readonly result?: Result;
  readonly operation?: Operation;
}

/** Thrown where a tool is about to start that must not. Carries no content: the host logs it. */
class StartRefused extends Error {
  override readonly name = "StartRefused";
  constructor() {
    super("auto mode did not allow this tool to start");
  }
}

/** What this file needs of the middleware around it. */
export interface CallHost {
  readonly policy: Policy;
  readonly attachGate: (id: string | undefined, gate: StartGate) => boolean;
  readonly deliver: (record: DecisionRecord, request: Request) => void;
  /** Keeps the failure itself, which the state cannot hold, for the `cause` of what is thrown later. */
  readonly keepFailure: (step: AgentStep, error: unknown) => void;
}

/** Carries out one call: runs its tool exactly as judged, or answers in its place. */
export class CallRunner {
  readonly #host: CallHost;
  readonly #step: AgentStep;
  readonly #request: Request;
  readonly #counted = new Map<string, CountedCall>();
  #waiting: WaitingCall | undefined;
  #failure: Extract<Operation, { op: "call" }>["failure"];
  #refusal: ToolMessage | undefined;
  /** A start that the proxied tool announced: the judged tool and arguments. */
  #announced: { name: string; json: string } | undefined;
  #planned: DecidedCall | undefined;
  #seen = false;

  constructor(host: CallHost, step: AgentStep, request: Request) {
    this.#host = host;
    this.#step = step;
    this.#request = request;
  }

  /** An unlisted call runs as it is; only a start that turned into a guarded one is judged. */
  async runUnlisted(handler: Handler): Promise<CarriedOut> {
    return this.#handle(handler, this.#request);
  }

  /** A guarded call: decided with its step, or alone if it is not what the step was planned with. */
  async runGuarded(handler: Handler): Promise<CarriedOut> {
    const decided = await this.#decide();
    this.#planned = decided;
    const { decision } = decided;
    if (this.#host.policy.mode === "observe") {
      if (decision.action !== "run") this.#record(decided);
      return this.#runDecided(handler, decided);
    }
    if (decision.action === "run") return this.#runDecided(handler, decided);
    this.#record(decided);
    if (decision.action === "park") return this.#park(decided);
    return { result: this.#refuse(decided), ...this.#operation() };
  }

  async #decide(): Promise<DecidedCall> {
    const request = this.#request;
    const planned = await this.#step.decisionFor(request);
    if (planned) {
      const now = takeSnapshot(request.toolCall.args);
      if (planned.call.name === executingName(request) && planned.snapshot?.json === now?.json)
        return planned;
    }
    return this.#step.decideAlone(request);
  }

  /** Lets a decided call through: under enforcement exactly what was judged. */
  async #runDecided(handler: Handler, decided: DecidedCall): Promise<CarriedOut> {
    const { tool, toolCall } = this.#request;
    const { snapshot } = decided;
    // A copy of the call: what an inner middleware does to it reaches neither history nor judgement.
    const call = snapshot ? { ...toolCall, args: thaw(snapshot) } : toolCall;
    const request: Request = {
      ...this.#request,
      toolCall: call,
      ...(tool && "invoke" in tool
        ? { tool: guardTool(tool, (input, run) => this.#invoke(tool, input, run)) }
        : {}),
    };
    const carried = await this.#handle(handler, request);
    if (!this.#seen) this.#pass(decided, "not seen");
    return { ...carried, ...this.#operation() };
  }

  async #handle(handler: Handler, request: Request): Promise<CarriedOut> {
    const { toolCall } = this.#request;
    this.#host.attachGate(toolCall.id, (start) => this.#onStart(start));
    let result: Result;
    try {
      result = await handler(request);
    } catch (error) {
      // An inner middleware may have wrapped or replaced the refusal: what counts is that we refused.
      if (this.#refusal === undefined) throw error;
      result = this.#refusal;
    }
    return { result: this.#refusal ?? result, ...this.#operation() };
  }

  /** The proxied tool is about to run, with whatever arguments an inner middleware left. */
  async #invoke(tool: object, input: unknown, run: (input: unknown) => Promise<unknown>): Promise<unknown> {
    const planned = this.#planned as DecidedCall;
    const call = typeof input === "object" && input !== null && "args" in input ? input : { args: undefined };
    const now = takeSnapshot(call.args);
    const name = executingName({ tool: tool as never, toolCall: this.#request.toolCall });
    if (planned.decision.action === "run" && now && now.json === planned.snapshot?.json) {
      this.#pass(planned, "as judged");
      this.#announced = { name, json: now.json };
      return run({ ...call, args: thaw(now) });
    }
    if (this.#host.policy.mode === "observe" && now?.json === planned.snapshot?.json) {
      this.#pass(planned, "as judged");
      if (now) this.#announced = { name, json: now.json };
      return run(input);
    }
    const decided = await this.#judgeAgain(call.args, name);
    if (decided.decision.action !== "run" && this.#host.policy.mode === "enforce")
      return this.#refusal as ToolMessage;
    if (decided.snapshot) this.#announced = { name, json: decided.snapshot.json };
    return run(decided.snapshot ? { ...call, args: thaw(decided.snapshot) } : input);
  }

  /** A tool is about to start. Most were announced by the proxied tool; the others went around it. */
  async #onStart(start: ToolStart): Promise<void> {
    const { policy } = this.#host;
    const now = takeSnapshot(start.args);
    const announced = this.#announced;
    if (
      announced &&
      (start.name === undefined || start.name === announced.name) &&
      announced.json === now?.json
    ) {
      this.#announced = undefined;
      return;
    }
    const name = start.name ?? this.#unnamed(start);
    if (!policy.rules.has(name)) return;
    const planned = this.#planned;
    const asPlanned =
      planned !== undefined &&
      planned.call.name === name &&
      now !== undefined &&
      planned.snapshot?.json === now.json;
    if (asPlanned && (planned.decision.action === "run" || policy.mode === "observe")) {
      this.#pass(planned, "as judged");
      return;
    }
    const decided = await this.#judgeAgain(start.args, name);
    if (policy.mode === "observe") return;
    // The tool holds these very arguments: someone may have changed them while they were judged.
    if (decided.decision.action !== "run" || takeSnapshot(start.args)?.json !== decided.snapshot?.json)
      throw new StartRefused();
  }

  /** A tool written as a class starts without a name: only the expected class passes for the expected tool. */
  #unnamed(start: ToolStart): string {
    const { tool } = this.#request;
    const expected = tool ? (tool.constructor as { lc_name?: () => string }).lc_name?.() : undefined;
    const rules = this.#host.policy.rules;
    if (expected === undefined || expected === start.className) return executingName(this.#request);
    return rules.has(executingName(this.#request))
      ? executingName(this.#request)
      : ([...rules.keys()][0] as string);
  }

  async #judgeAgain(args: unknown, name: string): Promise<DecidedCall> {
    const decided = await this.#step.decideAlone(this.#request, args, name);
    this.#seen = true;
    if (decided.decision.action === "run" || this.#host.policy.mode === "observe") {
      this.#refusal = undefined;
      this.#pass(decided, "judged again");
    } else {
      this.#record(decided, "judged again");
      this.#refuse(decided);
    }
    return decided;
  }

  #pass(decided: DecidedCall, executed: Executed): void {
    this.#seen = true;
    this.#refusal = undefined;
    this.#record(decided, executed);
    this.#count(decided);
  }

  #refuse(decided: DecidedCall): ToolMessage {
    const { policy, keepFailure } = this.#host;
    const unavailable = unavailableReason(decided);
    const fails = unavailable !== undefined && policy.onUnavailable === "throw" && !this.#step.trusted;
    if (fails) {
      const status = ClassificationError.find(decided.judgement?.error)?.status;
      this.#failure = { reason: unavailable, ...(status === undefined ? {} : { status }) };
      keepFailure(this.#step, decided.judgement?.error);
    }
    this.#count(decided);
    this.#refusal = new ToolMessage({
      content: feedbackFor(policy, decided, fails),
      tool_call_id: decided.call.id,
      name: this.#request.toolCall.name,
      status: "error",
      additional_kwargs: { lc_source: "auto_mode" },
      artifact: this.#lastRecord,
    });
    return this.#refusal;
  }

  #park(decided: DecidedCall): CarriedOut {
    const { call, snapshot, decision } = decided;
    if (snapshot)
      this.#waiting = {
        id: call.id,
        index: call.index,
        digest: digest(snapshot),
        judged: decision.counted.judged,
      };
    return this.#operation();
  }

  #lastRecord: DecisionRecord | undefined;

  #record(decided: DecidedCall, executed?: Executed): void {
    const key = this.#key(decided);
    const record = recordFor(this.#host.policy, decided, executed);
    this.#lastRecord = record;
    if (this.#step.recorded.has(key)) return;
    this.#step.recorded.add(key);
    this.#host.deliver(record, this.#request);
  }

  /** One judgement of one call: a changed call is judged, recorded and counted once more. */
  #key({ call, snapshot }: DecidedCall): string {
    return this.#planned?.snapshot?.json === snapshot?.json && this.#planned?.call.name === call.name
      ? `${call.index}:${call.id}`
      : `${call.index}:${call.id}:${call.name}:${snapshot ? digest(snapshot) : "malformed"}`;
  }

  #count(decided: DecidedCall): void {
    // An approval was counted when the person gave it.
    if (decided.decision.outcome === "approved") return;
    const key = this.#key(decided);
    this.#counted.set(key, { ...decided.decision.counted, index: decided.call.index, key });
  }

  #operation(): { operation?: Operation } {
    const calls = [...this.#counted.values()];
    if (this.#host.policy.mode === "observe") return {};
    if (!this.#waiting && !this.#failure && !this.#step.mattersToCount(calls)) return {};
    const { turn } = this.#step.thread;
    return {
      operation: {
        op: "call",
        turn,
        messageId: this.#step.messageId,
        calls,
        ...(this.#waiting ? { waiting: this.#waiting } : {}),
        ...(this.#failure ? { failure: this.#failure } : {}),
      },
    };
  }
}

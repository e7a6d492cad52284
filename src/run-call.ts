import type { ToolMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";
import type { AgentStep } from "./agent-step.js";
import { digest, takeSnapshot, thaw } from "./arguments.js";
import { CallReport, type ReportHost } from "./call-report.js";
import type { Executed } from "./decision-record.js";
import type { DecidedCall } from "./guard.js";
import { guardTool } from "./guarded-tool.js";
import type { Operation } from "./limits/state.js";
import { type Request, executingName } from "./step-calls.js";
import type { StartGate, ToolStart } from "./tool-start.js";

type Result = ToolMessage | Command;
type Handler = (request: Request) => Promise<Result> | Result;

/** What a call, carried out, leaves behind. */
export interface CarriedOut {
  /** Missing for a parked call, which stays without an answer until a person decides. */
  readonly result?: Result;
  readonly operation: Operation | undefined;
}

/** Thrown where a tool is about to start that must not. Carries no content: the host logs it. */
class StartRefused extends Error {
  override readonly name = "StartRefused";
  constructor() {
    super("auto mode did not allow this tool to start");
  }
}

/** What carrying out needs of the middleware around it. */
export interface CallHost extends ReportHost {
  readonly attachGate: (id: string | undefined, gate: StartGate) => boolean;
  readonly stepOf: (request: Request) => AgentStep;
}

/** Carries out one call: runs its tool exactly as judged, or answers in its place. */
export class CallRunner {
  readonly #host: CallHost;
  readonly #request: Request;
  #openReport: CallReport | undefined;
  #planned: DecidedCall | undefined;
  /** The answer in place of a start that was refused, until a later start is allowed. */
  #refusal: ToolMessage | undefined;
  /** A start that the proxied tool announced: the judged tool and arguments. */
  #announced: { name: string; json: string } | undefined;
  #seen = false;

  constructor(host: CallHost, request: Request) {
    this.#host = host;
    this.#request = request;
  }

  /** An unlisted call runs as it is; only a start that turned into a guarded one is judged. */
  async runUnlisted(handler: Handler): Promise<CarriedOut> {
    const result = await this.#handle(handler, this.#request);
    return { result, operation: this.#openReport?.operation };
  }

  /** A guarded call: decided with its step, or alone if it is not what the step was planned with. */
  async runGuarded(handler: Handler): Promise<CarriedOut> {
    const decided = await this.#decide();
    this.#planned = decided;
    const key = this.#key(decided);
    const { action } = decided.decision;
    if (action !== "run" && !this.#observes) {
      if (action === "answer")
        return { result: this.#report.refuse(decided, key), operation: this.#report.operation };
      this.#report.record(decided, key);
      this.#report.park(decided);
      return { operation: this.#report.operation };
    }
    if (action !== "run") this.#report.record(decided, key);
    const result = await this.#handle(handler, this.#judgedRequest(decided));
    if (!this.#seen) this.#pass(decided, "not seen");
    return { result, operation: this.#report.operation };
  }

  get #observes(): boolean {
    return this.#host.policy.mode === "observe";
  }

  get #step(): AgentStep {
    return this.#host.stepOf(this.#request);
  }

  get #report(): CallReport {
    this.#openReport ??= new CallReport(this.#host, this.#step, this.#request);
    return this.#openReport;
  }

  async #decide(): Promise<DecidedCall> {
    const request = this.#request;
    const planned = await this.#step.decisionFor(request);
    const isPlanned =
      planned?.call.name === executingName(request) &&
      planned.snapshot?.json === takeSnapshot(request.toolCall.args)?.json;
    return isPlanned ? planned : this.#step.decideAlone(request);
  }

  /** The request to hand down: a copy of the judged call, and the tool behind a gate. */
  #judgedRequest({ snapshot }: DecidedCall): Request {
    const { tool, toolCall } = this.#request;
    const name = executingName(this.#request);
    return {
      ...this.#request,
      // A copy: what an inner middleware does to it reaches neither history nor judgement.
      toolCall: snapshot ? { ...toolCall, args: thaw(snapshot) } : toolCall,
      ...(tool && "invoke" in tool
        ? { tool: guardTool(tool, (input, run) => this.#invoke(name, input, run)) }
        : {}),
    };
  }

  async #handle(handler: Handler, request: Request): Promise<Result> {
    this.#host.attachGate(this.#request.toolCall.id, (start) => this.#onStart(start));
    try {
      const result = await handler(request);
      // An inner middleware may have turned the refusal into a result of its own.
      return this.#refusal ?? result;
    } catch (error) {
      if (this.#refusal) return this.#refusal;
      throw error;
    }
  }

  #isAsJudged(name: string, json: string | undefined): boolean {
    const planned = this.#planned;
    return (
      planned !== undefined &&
      (planned.decision.action === "run" || this.#observes) &&
      planned.call.name === name &&
      planned.snapshot?.json === json
    );
  }

  /** The proxied tool is about to run, with whatever arguments an inner middleware left. */
  async #invoke(name: string, input: unknown, run: (input: unknown) => Promise<unknown>): Promise<unknown> {
    const args = typeof input === "object" && input !== null && "args" in input ? input.args : undefined;
    const now = takeSnapshot(args);
    if (this.#planned && this.#isAsJudged(name, now?.json)) this.#pass(this.#planned, "as judged");
    else if (!(await this.#judgeAgain(name, now ? now.value : args))) return this.#refusal;
    if (!now) return run(input);
    this.#announced = { name, json: now.json };
    return run({ ...(input as object), args: thaw(now) });
  }

  /** A tool is about to start. Most were announced by the proxied tool; the others went around it. */
  async #onStart(start: ToolStart): Promise<void> {
    const now = takeSnapshot(start.args);
    const announced = this.#announced;
    if (announced && announced.json === now?.json && (start.name ?? announced.name) === announced.name) {
      this.#announced = undefined;
      return;
    }
    const name = start.name ?? this.#nameOfClass(start.className);
    if (!this.#host.policy.rules.has(name)) return;
    if (this.#planned && this.#isAsJudged(name, now?.json)) this.#pass(this.#planned, "as judged");
    else if (!(await this.#judgeAgain(name, start.args))) throw new StartRefused();
  }

  /** A tool written as a class starts without a name: only the class at hand passes for the tool at hand. */
  #nameOfClass(className: string | undefined): string {
    const { tool } = this.#request;
    const expected = tool && (tool.constructor as { lc_name?: () => string }).lc_name?.();
    const [anyGuarded] = this.#host.policy.rules.keys();
    return expected === undefined || expected === className
      ? executingName(this.#request)
      : (anyGuarded as string);
  }

  /** Judges what a call was changed into. Whether it may run. */
  async #judgeAgain(name: string, args: unknown): Promise<boolean> {
    const decided = await this.#step.decideAlone(this.#request, { name, args });
    const runs = decided.decision.action === "run" || this.#observes;
    if (runs) this.#pass(decided, "judged again");
    else this.#refusal = this.#report.refuse(decided, this.#key(decided), "judged again");
    this.#seen = true;
    return runs;
  }

  #pass(decided: DecidedCall, executed: Executed): void {
    this.#seen = true;
    this.#refusal = undefined;
    const key = this.#key(decided);
    this.#report.record(decided, key, executed);
    this.#report.count(decided, key);
  }

  /** One judgement of one call: a changed call is judged, recorded and counted once more. */
  #key({ call, snapshot }: DecidedCall): string {
    const planned = this.#planned;
    const isPlanned = planned?.call.name === call.name && planned.snapshot?.json === snapshot?.json;
    const key = `${call.index}:${call.id}`;
    return isPlanned ? key : `${key}:${call.name}:${snapshot ? digest(snapshot) : "malformed"}`;
  }
}

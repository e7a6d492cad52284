import type { ToolMessage } from "@langchain/core/messages";
import { type Command, isGraphBubbleUp } from "@langchain/langgraph";
import type { AgentStep } from "./step.js";
import { digest, freezeJson, cloneJson } from "../json.js";
import { CallReport, type ReportHost } from "./call-report.js";
import type { Executed } from "../decision-record.js";
import type { DecidedCall } from "../guard/evaluate.js";
import { type RunTool, guardTool } from "./proxied-tool.js";
import type { Operation } from "../limits/state.js";
import { type KnownTools, guardedNamesOf, looksLikeGuarded } from "./started-tool.js";
import { type Request, executingName } from "./request.js";
import type { StartGates, ToolStart } from "./tool-start.js";

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
  readonly gates: StartGates;
  readonly stepOf: (request: Request) => AgentStep;
  /** The tools that the model was given when it wrote a call. */
  readonly toolsGiven: (request: Request) => readonly object[];
}

/** Carries out one call: runs its tool exactly as judged, or answers in its place. */
export class CallRunner {
  readonly #host: CallHost;
  readonly #request: Request;
  #ownStep: AgentStep | undefined;
  #openReport: CallReport | undefined;
  #planned: DecidedCall | undefined;
  /** The answer in place of a start that was refused, until a later start is allowed. */
  #refusal: ToolMessage | undefined;
  #seen = false;

  constructor(host: CallHost, request: Request) {
    this.#host = host;
    this.#request = request;
  }

  /** An unlisted call runs as it is; only a start that turned into a guarded one is judged. */
  async runUnlisted(handler: Handler): Promise<CarriedOut> {
    const { tool } = this.#request;
    const { gates } = this.#host;
    const request =
      tool && "invoke" in tool && looksLikeGuarded(tool, this.#knownTools)
        ? {
            ...this.#request,
            tool: guardTool(tool, (input, config, run) => run(input, gates.expecting(config))),
          }
        : this.#request;
    const result = await this.#handle(handler, request);
    return { result, operation: this.#openReport?.takeOperation() };
  }

  /** A guarded call: decided with its step, or alone if it is not what the step was planned with. */
  async runGuarded(handler: Handler): Promise<CarriedOut> {
    const decided = await this.#decide();
    this.#planned = decided;
    const key = this.#key(decided);
    const { action } = decided.decision;
    if (action !== "run" && !this.#observes) {
      if (action === "answer")
        return { result: this.#report.refuse(decided, key), operation: this.#report.takeOperation() };
      this.#report.record(decided, key);
      this.#report.park(decided);
      return { operation: this.#report.takeOperation() };
    }
    if (action !== "run") this.#report.record(decided, key);
    let result: Result;
    try {
      result = await this.#handle(handler, this.#judgedRequest(decided));
    } catch (error) {
      // An interrupt is no end: the call is entered again, and recorded then.
      if (!this.#seen && !isGraphBubbleUp(error)) this.#report.record(decided, key, "not seen");
      throw error;
    }
    if (!this.#seen) this.#pass(decided, "not seen");
    return { result, operation: this.#report.takeOperation() };
  }

  get #observes(): boolean {
    return this.#host.policy.mode === "observe";
  }

  get #step(): AgentStep {
    this.#ownStep ??= this.#host.stepOf(this.#request);
    return this.#ownStep;
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
      planned.snapshot?.json === freezeJson(request.toolCall.args)?.json;
    return isPlanned ? planned : this.#step.decideAlone(request);
  }

  /** The request to hand down: a copy of the judged call, and the tool behind a gate. */
  #judgedRequest({ snapshot }: DecidedCall): Request {
    const { tool, toolCall } = this.#request;
    const name = executingName(this.#request);
    return {
      ...this.#request,
      // A copy: what an inner middleware does to it reaches neither history nor judgement.
      toolCall: snapshot ? { ...toolCall, args: cloneJson(snapshot) } : toolCall,
      ...(tool && "invoke" in tool
        ? { tool: guardTool(tool, (...invoked) => this.#invoke(name, ...invoked)) }
        : {}),
    };
  }

  async #handle(handler: Handler, request: Request): Promise<Result> {
    this.#host.gates.attach(this.#request.toolCall.id, (start) => this.#onStart(start));
    try {
      const result = await handler(request);
      // An inner middleware may have turned the refusal into a result of its own.
      return this.#refusal ?? result;
    } catch (error) {
      // Interrupts and commands for a parent graph are no errors: they always pass.
      if (this.#refusal && !isGraphBubbleUp(error)) return this.#refusal;
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
  async #invoke(name: string, input: unknown, config: unknown, run: RunTool): Promise<unknown> {
    const call = input as { type?: unknown; args?: unknown } | null | undefined;
    // Whoever invokes the tool itself may give it bare arguments.
    const isCall = call?.type === "tool_call";
    const args = isCall ? call.args : input;
    const now = freezeJson(args);
    // An aborted run starts nothing, and so records no start.
    this.#request.runtime?.signal?.throwIfAborted();
    if (this.#planned && this.#isAsJudged(name, now?.json)) this.#pass(this.#planned, "as judged");
    else if (!(await this.#judgeAgain(name, now ? now.value : args))) return this.#refusal;
    const judged = now && (isCall ? { ...call, args: cloneJson(now) } : cloneJson(now));
    return run(judged ?? input, this.#host.gates.expecting(config));
  }

  /** A tool is about to start that went around the proxied tool. */
  async #onStart(start: ToolStart): Promise<void> {
    for (const name of guardedNamesOf(start, this.#knownTools)) {
      const json = freezeJson(start.args)?.json;
      if (this.#planned && this.#isAsJudged(name, json)) this.#pass(this.#planned, "as judged");
      else if (!(await this.#judgeAgain(name, start.args))) throw new StartRefused();
    }
  }

  get #knownTools(): KnownTools {
    const { rules, toolObjects } = this.#host.policy;
    return {
      atHand: this.#request.tool,
      expected: executingName(this.#request),
      others: () => [...toolObjects, ...this.#host.toolsGiven(this.#request)],
      rules,
    };
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
    const key = this.#step.keyOf(this.#request);
    return isPlanned ? key : `${key}:${call.name}:${snapshot ? digest(snapshot) : "malformed"}`;
  }
}

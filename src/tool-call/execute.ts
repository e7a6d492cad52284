import { ToolMessage } from "@langchain/core/messages";
import { type Command, isGraphBubbleUp, isGraphInterrupt } from "@langchain/langgraph";
import type { DecisionRecord, Executed } from "../decision-record.js";
import type { DecidedCall } from "../guard/evaluate.js";
import {
  blockedCallOf,
  detailsOf,
  failureFacts,
  failureOf,
  feedbackFor,
  recordFor,
  unavailableReason,
  waitingCallOf,
} from "../guard/report.js";
import { type FrozenJson, cloneJson, digest, freezeJson } from "../json.js";
import { type CallOperation, type CountedCall, type PassedCall, issue } from "../limits/state.js";
import type { Policy } from "../resolve-options.js";
import type { EmitRecord } from "./emit-record.js";
import { type StartGate, proxyTool } from "./proxied-tool.js";
import { type Request } from "./request.js";
import type { ArrivedCall, Step, Steps } from "./step.js";
import { answersCall, ownAnswer } from "./tool-output.js";

type Result = ToolMessage | Command;
/** Hands a call on to the middlewares behind and, in the end, to its tool. */
export type Handler = (request: Request) => Promise<Result> | Result;

/** What executing a call needs of the middleware around it. */
export interface CallHost {
  readonly policy: Policy;
  readonly steps: Steps;
  readonly emitRecord: EmitRecord;
  /** Warns once that a tool was not seen to start. */
  readonly warnNotSeen: () => void;
}

/** What a call leaves behind. */
export interface ExecutedCall {
  /** Missing for a call that waits for a person: it has no answer yet. */
  readonly result: Result | undefined;
  /** What is reported to the state, if anything. */
  readonly operation: CallOperation | undefined;
  /** The failure that ends the run, which the state cannot hold. */
  readonly failure?: { readonly error: unknown };
}

/**
 * Carries out one guarded call: decides it with its step, then refuses it, suspends it, or runs its tool
 * exactly as judged. What the tool itself throws passes through unchanged.
 */
export async function executeCall(
  host: CallHost,
  step: Step,
  request: Request,
  handler: Handler,
): Promise<ExecutedCall> {
  const { policy } = host;
  const arrived = step.enter(request);
  const decided = await step.decide(arrived);
  if (await step.awaitsOthers(arrived)) host.steps.keepForNextPass(step, request);
  const emit = (of: DecidedCall, executed?: Executed): DecisionRecord => {
    const record = recordFor(policy, of, executed);
    if (step.isNews(keyOf(arrived, of), record.outcome, executed))
      host.emitRecord(record, detailsOf(of), request.runtime);
    return record;
  };
  const refuse = (of: DecidedCall, executed?: Executed): ToolMessage =>
    ownAnswer({
      content: feedbackFor(policy, of, endsRun(policy, step, of)),
      tool_call_id: of.call.id,
      name: request.toolCall.name,
      artifact: emit(of, executed),
    });

  switch (decided.decision.action) {
    case "refuse": {
      const result = refuse(decided);
      return { result, ...(await report(policy, step, arrived, [decided])) };
    }
    case "suspend":
      emit(decided);
      return { result: undefined, ...(await report(policy, step, arrived, [], { suspended: decided })) };
    case "run":
      return runAsJudged(host, step, arrived, handler, { decided, emit, refuse });
  }
}

interface Verdict {
  readonly decided: DecidedCall;
  readonly emit: (of: DecidedCall, executed?: Executed) => DecisionRecord;
  readonly refuse: (of: DecidedCall, executed?: Executed) => ToolMessage;
}

/** Runs the tool with what was judged. A call that was changed on its way is judged again at the start. */
async function runAsJudged(
  { policy, steps, warnNotSeen }: CallHost,
  step: Step,
  arrived: ArrivedCall,
  handler: Handler,
  { decided, emit, refuse }: Verdict,
): Promise<ExecutedCall> {
  const { request, frozen } = arrived;
  const { tool, toolCall } = request;
  /** What was decided at each start, by its key: an inner middleware may start the tool more than once. */
  const started = new Map<string, DecidedCall>();
  let refusal: ToolMessage | undefined;

  const gate: StartGate = async (input, config, run) => {
    const call = readInput(input);
    const now = freezeJson(call.args);
    // An aborted run starts nothing, and so records no start.
    request.runtime?.signal?.throwIfAborted();
    const isAsJudged = now?.json === frozen?.json;
    const atStart = isAsJudged ? decided : await step.decideAlone(arrived, now ?? "malformed");
    const executed = isAsJudged ? "as judged" : "judged again";
    started.set(keyOf(arrived, atStart), atStart);
    if (atStart.decision.action !== "run") {
      refusal = refuse(atStart, executed);
      return refusal;
    }
    refusal = undefined;
    emit(atStart, executed);
    return run(now ? call.withArgs(now) : input, config);
  };

  let result: Result;
  try {
    const returned = await handler({
      ...request,
      // A copy: what an inner middleware does to it reaches neither the history nor the judge.
      toolCall: frozen ? { ...toolCall, args: cloneJson(frozen) } : toolCall,
      ...(tool && "invoke" in tool ? { tool: proxyTool(tool, gate) } : {}),
    });
    // An inner middleware may have turned the refusal into a result of its own.
    result = refusal ?? returned;
  } catch (error) {
    // An interrupt is no end: the call is entered again, with the verdict that it has.
    if (isGraphInterrupt(error)) steps.keepForNextPass(step, request);
    const isError = !isGraphBubbleUp(error);
    if (isError && started.size === 0) emit(decided, "not seen");
    if (!isError || !refusal) throw error;
    result = refusal;
  }

  if (started.size > 0) return { result, ...(await report(policy, step, arrived, [...started.values()])) };
  emit(decided, "not seen");
  // Without an answer it was suspended by a guard behind this one, and comes again.
  const isOver = answersCall(result, toolCall.id);
  // A name that belongs to no tool has nothing that could start.
  if (isOver && tool) warnNotSeen();
  return { result, ...(await report(policy, step, arrived, [decided], { isOver })) };
}

interface ToolInput {
  readonly args: unknown;
  readonly withArgs: (args: FrozenJson) => unknown;
}

/** The host starts a tool with the call; whoever invokes the tool itself may give it bare arguments. */
function readInput(input: unknown): ToolInput {
  const isCall = typeof input === "object" && input !== null && "type" in input && input.type === "tool_call";
  return isCall
    ? {
        args: "args" in input ? input.args : undefined,
        withArgs: (args) => ({ ...input, args: cloneJson(args) }),
      }
    : { args: input, withArgs: cloneJson };
}

/** The key of one judged call: a call that was changed on its way is judged, recorded and counted once more. */
function keyOf(arrived: ArrivedCall, { call: { frozen } }: DecidedCall): string {
  if (frozen?.json === arrived.frozen?.json) return arrived.key;
  return `${arrived.key}:${frozen ? digest(frozen) : "malformed"}`;
}

/** Whether the run ends with an error because of this call. */
function endsRun(policy: Policy, step: Step, decided: DecidedCall): boolean {
  return unavailableReason(decided) !== undefined && policy.onUnavailable === "throw" && !step.isTrusted;
}

interface Ending {
  readonly suspended?: DecidedCall;
  /** Whether the call has its answer. */
  readonly isOver?: boolean;
}

/** What is reported to the state of a call, if anything. */
async function report(
  policy: Policy,
  step: Step,
  arrived: ArrivedCall,
  decided: readonly DecidedCall[],
  { suspended, isOver = true }: Ending = {},
): Promise<Pick<ExecutedCall, "operation" | "failure">> {
  // Observing changes nothing, and so counts nothing.
  if (policy.mode === "observe") return { operation: undefined };
  const calls = decided.flatMap((item) => countedCall(arrived, item));
  const waiting = suspended && waitingCallOf(suspended);
  const failed = decided.find((item) => endsRun(policy, step, item));
  const reason = failed && unavailableReason(failed);
  const { id } = arrived.request.toolCall;
  // An approval is for one start: without an answer of its tool the call would be started for ever.
  const spent = step.isApproved(id) ? id : undefined;
  const passed = isOver ? undefined : decided.map((item) => passedCall(item))[0];
  const isQuiet = !waiting && !failed && spent === undefined && !passed;
  const changesNothing = calls.every(({ outcome }) => outcome === "allowed");
  if (isQuiet && (calls.length === 0 || (changesNothing && !(await step.reportsAllowed(arrived)))))
    return { operation: undefined };
  const { status } = failed ? failureFacts(failed) : {};
  return {
    operation: issue({
      op: "call" as const,
      turn: step.thread.turn,
      messageId: step.messageId,
      calls,
      ...(waiting ? { waiting } : {}),
      ...(spent === undefined ? {} : { spent }),
      ...(passed ? { passed } : {}),
      ...(reason ? { failure: { reason, ...(status === undefined ? {} : { status }) } } : {}),
    }),
    ...(failed ? { failure: { error: failureOf(failed) } } : {}),
  };
}

function countedCall(arrived: ArrivedCall, decided: DecidedCall): CountedCall[] {
  const { call, decision, finding } = decided;
  // An approval was counted when the person gave it, a call that comes again when it first passed.
  if (finding.kind === "approved" || finding.kind === "passed") return [];
  const blocked = blockedCallOf(decided);
  return [
    {
      ...decision.counted,
      index: call.index,
      key: keyOf(arrived, decided),
      ...(blocked ? { blocked } : {}),
    },
  ];
}

function passedCall({ call, decision }: DecidedCall): PassedCall | undefined {
  const { id, name, frozen } = call;
  const { outcome } = decision;
  if (!frozen || !(outcome === "allowed" || outcome === "approved")) return undefined;
  return { id, name, digest: digest(frozen), outcome };
}

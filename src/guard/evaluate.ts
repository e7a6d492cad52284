import type { ClassifierRequest, JsonValue } from "@langchain/core/decisions";
import { type FrozenJson, cloneJson, digest, freezeJson } from "../json.js";
import { type CallIdentity, type ThreadState, stepStateOf } from "../limits/state.js";
import type { PrecheckCall, ToolRule } from "../options.js";
import type { Policy } from "../resolve-options.js";
import type { Entry } from "../transcript/entries.js";
import { type Answered, type Judgment, judgeCalls } from "./classify.js";
import type { Malformation } from "./feedback.js";
import { type Decision, type Finding, planStep } from "./plan.js";
import { buildRequest } from "./question.js";

/** One guarded call of a step, as it is right now. */
export interface StepCall {
  /** Its place among the calls of the step. */
  readonly index: number;
  readonly id: string;
  /** The tool that would run. */
  readonly name: string;
  /** The host's own object for this tool, as far as it is known. */
  readonly tool?: object | undefined;
  readonly rule: ToolRule;
  /** Its arguments. `undefined` if they are malformed. */
  readonly frozen: FrozenJson | undefined;
  readonly description?: string | undefined;
  readonly malformation?: Malformation | undefined;
  /** Whether a person can be asked about it: only if what they are shown is what would run. */
  readonly canWait: boolean;
}

/** What the sequence needs of the world around a step. No hook of any host appears here. */
export interface StepContext {
  readonly messageId: string;
  /** What the thread remembers, as it was before this pass over the step. */
  readonly thread: ThreadState;
  readonly signal?: AbortSignal | undefined;
  /** The transcript without the calls that are being judged (by index). */
  transcript(judged: ReadonlySet<number>): readonly Entry[];
  environment?(): unknown;
  precheck?(call: PrecheckCall, of: StepCall): unknown;
}

/** What the classifier was shown around a call. */
export interface Evidence {
  readonly transcript: readonly Entry[];
  readonly environment?: JsonValue | undefined;
}

/** A call with everything that was decided about it. */
export interface DecidedCall {
  readonly call: StepCall;
  readonly finding: Finding;
  readonly decision: Decision;
  readonly messageId: string;
  readonly judgment?: Judgment | undefined;
  /** Built when it is first asked for: most listeners never do. */
  readonly evidence: () => Evidence;
}

/** A call on its way through the sequence. */
interface PendingCall {
  readonly call: StepCall;
  readonly finding?: Finding | undefined;
  readonly judgment?: Judgment | undefined;
}

/** Malformed calls, and those that were decided in an earlier pass over the step. */
function openCall(call: StepCall, { thread, messageId }: StepContext): PendingCall {
  const { frozen, malformation } = call;
  if (malformation !== undefined || frozen === undefined)
    return { call, finding: { kind: "malformed", malformation: malformation ?? "bad_arguments" } };
  const { approvals = [], passed = [] } = stepStateOf(thread, messageId) ?? {};
  const isThis = (known: CallIdentity): boolean =>
    known.id === call.id && known.name === call.name && known.digest === digest(frozen);
  if (approvals.some(isThis)) return { call, finding: { kind: "approved" } };
  const earlier = passed.find(isThis);
  return { call, finding: earlier && { kind: "passed", outcome: earlier.outcome } };
}

async function applyPrecheck(pending: PendingCall, context: StepContext): Promise<PendingCall> {
  const { call, finding } = pending;
  if (!context.precheck || !call.frozen || finding) return pending;
  let error: unknown = new TypeError(
    'precheck gave something else than "allow", "block", "ask" or "classify"',
  );
  try {
    const args = cloneJson(call.frozen);
    const answer: unknown = await context.precheck({ id: call.id, name: call.name, args }, call);
    if (answer === "classify") return pending;
    if (answer === "allow" || answer === "block" || answer === "ask")
      return { call, finding: { kind: "rule", answer } };
  } catch (caught) {
    error = caught;
  }
  // A rule that crashed or answered something else has decided nothing: fail closed.
  return { call, finding: { kind: "failed", by: "precheck", error } };
}

/** A classifier that is asked often enough would let anything through in the end. */
function applyRepeats(pending: PendingCall, { thread }: StepContext): PendingCall {
  const { call, finding } = pending;
  const { name, frozen } = call;
  if (!frozen || finding || !thread.blockedCalls?.length) return pending;
  const blocked = thread.blockedCalls.find((known) => known.name === name && known.digest === digest(frozen));
  return blocked ? { call, finding: { kind: "repeated", risk: blocked.risk } } : pending;
}

/** The environment as JSON; `undefined` for none. Throws for what is no JSON. */
async function readEnvironment(context: StepContext): Promise<JsonValue | undefined> {
  if (!context.environment) return undefined;
  const value: unknown = await context.environment();
  // A lost environment would lose the operator's deny rules with it, so nothing but JSON passes.
  const frozen = freezeJson({ value });
  if (value === undefined || frozen === undefined) throw new TypeError("environment gave no JSON");
  return frozen.value.value;
}

type FoundCall = PendingCall & { readonly finding: Finding };

interface Judged {
  readonly calls: readonly FoundCall[];
  readonly evidence: () => Evidence;
}

/** Nothing runs that nothing has decided. */
const UNDECIDED: { readonly finding: Finding } = {
  finding: { kind: "failed", by: "guard", error: undefined },
};

/** Gives every call that nothing has decided yet the finding that `find` makes for it. */
function settle(
  calls: readonly PendingCall[],
  find: (call: PendingCall) => Pick<FoundCall, "finding" | "judgment">,
): FoundCall[] {
  return calls.map((item) => {
    const { finding } = item;
    return finding ? { ...item, finding } : { ...item, ...find(item) };
  });
}

/** One request for all calls that nothing else has decided. */
async function judgeOpenCalls(
  policy: Policy,
  calls: readonly PendingCall[],
  context: StepContext,
): Promise<Judged> {
  // A call without arguments in JSON is malformed, and so has its finding.
  const open = calls.flatMap((item) =>
    item.finding || !item.call.frozen ? [] : [{ item, call: item.call, frozen: item.call.frozen }],
  );
  let environment: JsonValue | undefined;
  let transcript: readonly Entry[] | undefined;
  const evidence = (): Evidence => {
    const judged: readonly Pick<PendingCall, "call">[] = open.length > 0 ? open : calls;
    transcript ??= context.transcript(new Set(judged.map(({ call }) => call.index)));
    return { transcript, environment };
  };
  if (open.length === 0) return { calls: settle(calls, () => UNDECIDED), evidence };

  const fail = (by: "environment" | "guard", error: unknown): Judged => {
    return { evidence, calls: settle(calls, () => ({ finding: { kind: "failed", by, error } })) };
  };
  try {
    environment = await readEnvironment(context);
  } catch (error) {
    return fail("environment", error);
  }
  let request: ClassifierRequest;
  try {
    const toJudge = open.map(({ call: { name, description, rule }, frozen }) => ({
      name,
      description,
      args: cloneJson(frozen),
      instructions: rule.instructions,
      criteria: rule.criteria,
    }));
    const { explain } = policy;
    request = buildRequest(toJudge, { transcript: evidence().transcript, environment, explain });
  } catch (error) {
    return fail("guard", error);
  }

  const judgment = await judgeCalls(policy.classifier, request, open.length, {
    timeoutMs: policy.timeoutMs,
    name: policy.classifierName,
    signal: context.signal,
    metadata: {
      auto_mode_label: policy.label,
      auto_mode_step: context.messageId,
      auto_mode_calls: open.map(({ call: { id, rule }, frozen }) => ({
        id,
        argsDigest: digest(frozen),
        threshold: rule.threshold,
      })),
    },
  });
  const answers = new Map(open.map(({ item }, index) => [item, judgment.answered[index]]));
  const judge = (item: PendingCall): Pick<FoundCall, "finding" | "judgment"> => {
    const answered = answers.get(item) as Answered;
    const { threshold, askAt } = item.call.rule;
    return { judgment, finding: { kind: "judged", answered, threshold, askAt } };
  };
  return { calls: settle(calls, judge), evidence };
}

/**
 * The one decision sequence: malformed calls, approvals, fixed rules, calls that were blocked before, one
 * classifier request for the rest, then the plan. It rejects only when the run is aborted.
 */
export async function decideStep(
  policy: Policy,
  calls: readonly StepCall[],
  context: StepContext,
): Promise<DecidedCall[]> {
  const opened = calls.map((call) => openCall(call, context));
  const checked = await Promise.all(opened.map((item) => applyPrecheck(item, context)));
  context.signal?.throwIfAborted();
  const known = checked.map((item) => applyRepeats(item, context));
  const judged = await judgeOpenCalls(policy, known, context);
  context.signal?.throwIfAborted();

  // Written by the trusted model: nothing waits or throws, a stop halts the run.
  const isTrusted = stepStateOf(context.thread, context.messageId)?.trusted ?? false;
  const found = judged.calls.map((item) => ({
    ...item,
    canWait: item.call.canWait && !isTrusted,
  }));
  const decisions = planStep(found, context.thread.limitStatus, {
    limits: policy.limits,
    mode: policy.mode,
    siblings: policy.siblings,
    onUnavailable: isTrusted ? "continue" : policy.onUnavailable,
    limitAsks: policy.fallback.kind === "ask" && !isTrusted,
  });
  return found.map(({ call, finding, judgment }, index) => ({
    call,
    finding,
    decision: decisions[index] as Decision,
    messageId: context.messageId,
    judgment,
    evidence: judged.evidence,
  }));
}

import type { ClassifierRequest, JsonValue } from "@langchain/core/decisions";
import { type FrozenJson, digest, freezeJson, cloneJson } from "../json.js";
import type { Malformation } from "./feedback.js";
import { type Judgement, classifierName, judgeCalls } from "./classify.js";
import type { LimitStatus } from "../limits/counters.js";
import type { Approval } from "../limits/state.js";
import type { PrecheckCall, ToolRule } from "../options.js";
import { type Decision, type Finding, planStep } from "./plan.js";
import type { Policy } from "../resolve-options.js";
import { buildRequest } from "./question.js";
import type { Entry } from "../transcript/channels.js";
import type { Answered } from "./verdict.js";

/** One guarded call of a step, as it stands right now. */
export interface StepCall {
  /** Its place among the calls of the step. */
  readonly index: number;
  readonly id: string;
  /** The tool that would run. */
  readonly name: string;
  readonly rule: ToolRule;
  readonly args: unknown;
  readonly description?: string | undefined;
  readonly malformation?: Malformation | undefined;
  /** Whether a person can be asked about it: only if what they are shown is what would run. */
  readonly canWait: boolean;
}

/** What the sequence needs of the world around a step. No hook of any host appears here. */
export interface StepContext {
  readonly messageId: string;
  readonly limitStatus: LimitStatus;
  readonly approvals: readonly Approval[];
  /** Written by the trusted model: nothing waits or throws, a stop halts the run. */
  readonly trusted: boolean;
  readonly signal?: AbortSignal | undefined;
  /** The transcript without the calls that are being judged (by index). */
  transcript(judged: ReadonlySet<number>): readonly Entry[];
  environment?(): unknown;
  precheck?(call: PrecheckCall, of: StepCall): unknown;
}

/** A call with everything that was decided about it. */
export interface DecidedCall {
  readonly call: StepCall;
  /** Missing if the arguments are malformed. */
  readonly snapshot?: FrozenJson | undefined;
  readonly finding: Finding;
  readonly decision: Decision;
  readonly messageId: string;
  readonly judgement?: Judgement | undefined;
}

interface PendingCall {
  readonly call: StepCall;
  readonly snapshot: FrozenJson | undefined;
  finding: Finding | undefined;
  judgement?: Judgement;
}

function openCall(call: StepCall, approvals: readonly Approval[]): PendingCall {
  const snapshot = freezeJson(call.args);
  if (call.malformation !== undefined || snapshot === undefined)
    return {
      call,
      snapshot,
      finding: { kind: "malformed", malformation: call.malformation ?? "bad_arguments" },
    };
  const approved = approvals.some(
    ({ id, name, digest: hash }) => id === call.id && name === call.name && hash === digest(snapshot),
  );
  return { call, snapshot, finding: approved ? { kind: "approved" } : undefined };
}

/** Something of the operator's failed before there was a request. The error is kept as a `cause`. */
function fail(policy: Policy, opened: PendingCall, error: unknown): void {
  opened.finding = {
    kind: "judged",
    answered: { unavailable: "error" },
    threshold: opened.call.rule.threshold,
  };
  opened.judgement = { answered: [], latencyMs: 0, classifier: classifierName(policy.classifier), error };
}

async function applyPrecheck(policy: Policy, opened: PendingCall, context: StepContext): Promise<void> {
  const { call } = opened;
  if (!context.precheck || opened.finding) return;
  const args = cloneJson(opened.snapshot as FrozenJson);
  let answer: unknown;
  let error: unknown = new TypeError('precheck gave something else than "allow", "block" or "classify"');
  try {
    answer = await context.precheck({ id: call.id, name: call.name, args }, call);
  } catch (caught) {
    error = caught;
  }
  if (answer === "allow" || answer === "block") opened.finding = { kind: "rule", answer };
  // A rule that crashed or answered something else has decided nothing: fail closed.
  else if (answer !== "classify") fail(policy, opened, error);
}

/** The environment as JSON; `undefined` for none. Throws for what is no JSON. */
async function readEnvironment(context: StepContext): Promise<JsonValue | undefined> {
  if (!context.environment) return undefined;
  const value: unknown = await context.environment();
  // A lost environment would lose the operator's deny rules with it, so nothing but JSON passes.
  const snapshot = freezeJson({ value });
  if (value === undefined || snapshot === undefined) throw new TypeError("environment gave no JSON");
  return snapshot.value.value;
}

/** The calls that still need a verdict, with the one request about them. */
async function prepare(policy: Policy, open: readonly PendingCall[], context: StepContext) {
  const environment = await readEnvironment(context);
  const calls = open.map(({ call, snapshot }) => ({
    name: call.name,
    args: cloneJson(snapshot as FrozenJson),
    description: call.description,
    instructions: call.rule.instructions,
    criteria: call.rule.criteria,
  }));
  return buildRequest(calls, {
    transcript: context.transcript(new Set(open.map(({ call }) => call.index))),
    environment,
    explain: policy.explain,
  });
}

async function judge(policy: Policy, opened: readonly PendingCall[], context: StepContext): Promise<void> {
  const open = opened.filter((item) => item.finding === undefined);
  if (open.length === 0) return;
  let request: ClassifierRequest;
  try {
    request = await prepare(policy, open, context);
  } catch (error) {
    for (const item of open) fail(policy, item, error);
    return;
  }
  const judgement = await judgeCalls(policy.classifier, request, open.length, {
    timeoutMs: policy.timeoutMs,
    signal: context.signal,
    metadata: {
      auto_mode_label: policy.label,
      auto_mode_step: context.messageId,
      auto_mode_calls: open.map(({ call, snapshot }) => ({
        id: call.id,
        argsDigest: digest(snapshot as FrozenJson),
        threshold: call.rule.threshold,
      })),
    },
  });
  for (const [index, item] of open.entries()) {
    item.judgement = judgement;
    item.finding = {
      kind: "judged",
      answered: judgement.answered[index] as Answered,
      threshold: item.call.rule.threshold,
    };
  }
}

/**
 * The one decision sequence: malformed calls, approvals, fixed rules, one classifier request for the
 * rest, then the plan. It rejects only when the run is aborted.
 */
export async function decideStep(
  policy: Policy,
  calls: readonly StepCall[],
  context: StepContext,
): Promise<DecidedCall[]> {
  const opened = calls.map((call) => openCall(call, context.approvals));
  await Promise.all(opened.map((item) => applyPrecheck(policy, item, context)));
  context.signal?.throwIfAborted();
  await judge(policy, opened, context);
  context.signal?.throwIfAborted();
  const findings = opened.map((item) => item.finding as Finding);
  const decisions = planStep(
    findings,
    calls.map((call) => call.canWait),
    context.limitStatus,
    {
      limits: policy.limits,
      onUnavailable: context.trusted ? "continue" : policy.onUnavailable,
      siblings: policy.siblings,
      limitAsks: policy.fallback.kind === "ask" && !context.trusted,
    },
  );
  return opened.map((item, index) => ({
    call: item.call,
    snapshot: item.snapshot,
    finding: findings[index] as Finding,
    decision: decisions[index] as Decision,
    messageId: context.messageId,
    judgement: item.judgement,
  }));
}

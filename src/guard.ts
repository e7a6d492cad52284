import type { JsonValue } from "@langchain/core/decisions";
import { type ArgumentsSnapshot, digest, takeSnapshot, thaw } from "./arguments.js";
import type { UnavailableReason } from "./errors.js";
import type { Malformation } from "./feedback.js";
import { type Judgement, judgeCalls } from "./judge.js";
import type { Standing } from "./limits/counters.js";
import type { Approval } from "./limits/state.js";
import type { PrecheckCall, ToolRule } from "./options.js";
import { type Decision, type Finding, planStep } from "./plan-step.js";
import type { Policy } from "./policy.js";
import { buildRequest } from "./question.js";
import type { Entry } from "./transcript/channels.js";

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
  readonly standing: Standing;
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
  readonly snapshot?: ArgumentsSnapshot | undefined;
  readonly finding: Finding;
  readonly decision: Decision;
  readonly messageId: string;
  readonly judgement?: Judgement | undefined;
}

interface Opened {
  readonly call: StepCall;
  readonly snapshot: ArgumentsSnapshot | undefined;
  finding: Finding | undefined;
}

function openCall(call: StepCall, approvals: readonly Approval[]): Opened {
  const snapshot = takeSnapshot(call.args);
  const malformation = call.malformation ?? (snapshot === undefined ? "bad_arguments" : undefined);
  if (snapshot === undefined || malformation !== undefined)
    return { call, snapshot, finding: { kind: "malformed", malformation: malformation ?? "bad_arguments" } };
  const approved = approvals.some(
    ({ id, name, digest: hash }) => id === call.id && name === call.name && hash === digest(snapshot),
  );
  return { call, snapshot, finding: approved ? { kind: "approved" } : undefined };
}

const failed = (call: StepCall, reason: UnavailableReason): Finding => ({
  kind: "judged",
  answered: { unavailable: reason },
  threshold: call.rule.threshold,
});

async function applyPrecheck(opened: Opened, context: StepContext): Promise<void> {
  const { call, snapshot } = opened;
  if (!context.precheck || opened.finding || !snapshot) return;
  let answer: unknown;
  try {
    answer = await context.precheck({ id: call.id, name: call.name, args: thaw(snapshot) }, call);
  } catch {
    context.signal?.throwIfAborted();
  }
  if (answer === "allow" || answer === "block") opened.finding = { kind: "rule", answer };
  // A rule that crashed or answered something else has decided nothing: fail closed.
  else if (answer !== "classify") opened.finding = failed(call, "error");
}

/** The environment as JSON; `undefined` for none. Throws for what is no JSON. */
async function readEnvironment(context: StepContext): Promise<JsonValue | undefined> {
  if (!context.environment) return undefined;
  const value: unknown = await context.environment();
  // A lost environment would lose the operator's deny rules with it, so nothing but JSON passes.
  const snapshot = takeSnapshot({ value });
  if (value === undefined || snapshot === undefined) throw new TypeError("environment gave no JSON");
  return snapshot.value.value;
}

async function judge(policy: Policy, opened: Opened[], context: StepContext): Promise<Judgement | undefined> {
  const open = opened.filter((item) => item.finding === undefined);
  if (open.length === 0) return undefined;
  let environment: JsonValue | undefined;
  try {
    environment = await readEnvironment(context);
  } catch {
    context.signal?.throwIfAborted();
    for (const item of open) item.finding = failed(item.call, "error");
    return undefined;
  }
  const calls = open.map(({ call, snapshot }) => ({
    name: call.name,
    args: thaw(snapshot as ArgumentsSnapshot),
    description: call.description,
    instructions: call.rule.instructions,
    criteria: call.rule.criteria,
  }));
  const request = buildRequest(calls, {
    transcript: context.transcript(new Set(open.map(({ call }) => call.index))),
    environment,
    explain: policy.explain,
  });
  const judgement = await judgeCalls(policy.classifier, request, open.length, {
    timeoutMs: policy.timeoutMs,
    signal: context.signal,
    metadata: {
      auto_mode_label: policy.label,
      auto_mode_step: context.messageId,
      auto_mode_calls: open.map(({ call, snapshot }) => ({
        id: call.id,
        argsDigest: digest(snapshot as ArgumentsSnapshot),
        threshold: call.rule.threshold,
      })),
    },
  });
  for (const [index, item] of open.entries())
    item.finding = {
      kind: "judged",
      answered: judgement.answered[index] ?? { unavailable: "error" },
      threshold: item.call.rule.threshold,
    };
  return judgement;
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
  await Promise.all(opened.map((item) => applyPrecheck(item, context)));
  context.signal?.throwIfAborted();
  const asked = new Set(opened.filter((item) => item.finding === undefined));
  const judgement = await judge(policy, opened, context);
  const findings = opened.map((item) => item.finding as Finding);
  const decisions = planStep(
    findings,
    calls.map((call) => call.canWait),
    context.standing,
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
    ...(asked.has(item) && judgement ? { judgement } : {}),
  }));
}

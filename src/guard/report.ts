import { digest } from "../json.js";
import { type DecisionRecord, type Executed, createRecord } from "../decision-record.js";
import type { UnavailableReason } from "../errors.js";
import {
  PRECHECK_REASON,
  blockedReason,
  heldBackFeedback,
  malformedFeedback,
  unavailableFeedback,
} from "./feedback.js";
import type { DecidedCall } from "./evaluate.js";
import { classifierName } from "./classify.js";
import type { Policy } from "../resolve-options.js";

/** Why a call got no verdict, if that is so. */
export function unavailableReason({ finding }: DecidedCall): UnavailableReason | undefined {
  return finding.kind === "judged" && "unavailable" in finding.answered
    ? finding.answered.unavailable
    : undefined;
}

/** What the agent is told about a call that did not run. Never empty. */
export function feedbackFor(policy: Policy, decided: DecidedCall, runEnds: boolean): string {
  const { call, finding, decision } = decided;
  if (decision.outcome === "held_back") return heldBackFeedback(call.name);
  if (finding.kind === "malformed") return malformedFeedback(call.name, finding.malformation);
  const unavailable = unavailableReason(decided);
  if (unavailable !== undefined) return unavailableFeedback(call.name, unavailable, runEnds);
  const reason =
    finding.kind === "judged"
      ? blockedReason(finding.answered as { explanation?: string }, call.rule.criteria)
      : PRECHECK_REASON;
  return policy.feedback({ reason, toolName: call.name });
}

function recordedReason({ finding, decision }: DecidedCall): string | undefined {
  if (decision.outcome === "held_back") return "another call of the step was stopped";
  if (finding.kind === "malformed") return finding.malformation;
  if (finding.kind === "rule") return "precheck";
  return finding.kind === "judged" && "risk" in finding.answered ? finding.answered.kind : undefined;
}

/** The record of a decision. */
export function recordFor(policy: Policy, decided: DecidedCall, executed?: Executed): DecisionRecord {
  const { call, finding, decision, judgement, snapshot } = decided;
  const unavailable = unavailableReason(decided);
  return createRecord({
    label: policy.label,
    mode: policy.mode,
    messageId: decided.messageId,
    ...(judgement?.requestId ? { requestId: judgement.requestId } : {}),
    toolCallId: call.id,
    toolName: call.name,
    argsDigest: snapshot ? digest(snapshot) : "",
    outcome: decision.outcome,
    by: decision.by,
    ...(executed ? { executed } : {}),
    ...(finding.kind === "judged" && "risk" in finding.answered ? { risk: finding.answered.risk } : {}),
    threshold: call.rule.threshold,
    reason: recordedReason(decided),
    ...(unavailable ? { unavailableReason: unavailable } : {}),
    classifier: judgement?.classifier ?? classifierName(policy.classifier),
    latencyMs: judgement?.latencyMs ?? 0,
    ...(judgement?.usage ? { usage: judgement.usage } : {}),
    counters: decision.counters,
  });
}

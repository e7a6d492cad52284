import { type DecisionDetails, type DecisionRecord, type Executed } from "../decision-record.js";
import type { UnavailableReason } from "../errors.js";
import { type ErrorFacts, errorFacts } from "../error-facts.js";
import { digest } from "../json.js";
import type { BlockedCall, WaitCause, WaitingCall } from "../limits/state.js";
import type { Policy } from "../resolve-options.js";
import { cutEnd } from "../transcript/cut.js";
import { escapeInvisible } from "../transcript/escape-text.js";
import type { DecidedCall } from "./evaluate.js";
import {
  MAX_TOOL_NAME,
  NEEDS_APPROVAL_REASON,
  PRECHECK_REASON,
  REPEATED_REASON,
  blockedReason,
  heldBackFeedback,
  malformedFeedback,
  unavailableFeedback,
} from "./feedback.js";
import { RISK_KINDS } from "./question.js";

/** Why a call got no verdict, if that is so. */
export function unavailableReason({ finding }: DecidedCall): UnavailableReason | undefined {
  switch (finding.kind) {
    case "failed":
      return "error";
    case "judged":
      return "unavailable" in finding.answered ? finding.answered.unavailable : undefined;
    default:
      return undefined;
  }
}

/** The error behind a failed check, for the `cause` of what may be thrown. */
export function failureOf({ finding, judgment }: DecidedCall): unknown {
  return finding.kind === "failed" ? finding.error : judgment?.error;
}

/** What identifies a failure, without content. */
export function failureFacts(decided: DecidedCall): ErrorFacts {
  return unavailableReason(decided) === undefined ? {} : errorFacts(failureOf(decided));
}

/** The risk that was found, by this request or an earlier one. */
function riskOf({ finding }: DecidedCall): number | undefined {
  if (finding.kind === "repeated") return finding.risk;
  return finding.kind === "judged" && "risk" in finding.answered ? finding.answered.risk : undefined;
}

function reasonOf({ call, finding, decision }: DecidedCall): string {
  if (decision.lacksApproval) return NEEDS_APPROVAL_REASON;
  switch (finding.kind) {
    case "rule":
      return PRECHECK_REASON;
    case "repeated":
      return REPEATED_REASON;
    case "judged":
      return blockedReason("risk" in finding.answered ? finding.answered : {}, call.rule.criteria);
    default:
      return blockedReason({}, call.rule.criteria);
  }
}

/** What the agent reads about a call that did not run. Never empty. */
export function feedbackFor(policy: Policy, decided: DecidedCall, runEnds: boolean): string {
  const { call, finding, decision } = decided;
  if (decision.outcome === "held_back") return heldBackFeedback(call.name);
  if (finding.kind === "malformed") return malformedFeedback(call.name, finding.malformation);
  const unavailable = unavailableReason(decided);
  if (unavailable !== undefined) return unavailableFeedback(call.name, unavailable, runEnds);
  return policy.feedback({ reason: reasonOf(decided), toolName: call.name });
}

function recordedReason({ finding, decision }: DecidedCall): string | undefined {
  if (decision.outcome === "held_back") return "another call of the step was stopped";
  if (decision.lacksApproval) return "needs approval";
  switch (finding.kind) {
    case "malformed":
      return finding.malformation;
    case "rule":
      return "precheck";
    case "repeated":
      return "repeated";
    case "judged":
      return "risk" in finding.answered ? finding.answered.kind : undefined;
    default:
      return undefined;
  }
}

/** What a record takes from the decision; id and time are added. */
export type RecordFields = Omit<DecisionRecord, "id" | "at" | "reason"> & {
  readonly reason?: string | undefined;
};

/** Makes a frozen record with an id and a time. */
export function createRecord(fields: RecordFields): DecisionRecord {
  const { reason, toolName, ...rest } = fields;
  return Object.freeze({
    id: globalThis.crypto.randomUUID(),
    at: new Date().toISOString(),
    ...rest,
    // A model may write any text as a name.
    toolName: cutEnd(toolName, MAX_TOOL_NAME),
    ...(reason === undefined ? {} : { reason }),
    counters: Object.freeze({ ...fields.counters }),
  });
}

/** The record of a decision. */
export function recordFor(policy: Policy, decided: DecidedCall, executed?: Executed): DecisionRecord {
  const { call, decision, judgment } = decided;
  const unavailable = unavailableReason(decided);
  const risk = riskOf(decided);
  return createRecord({
    label: policy.label,
    mode: policy.mode,
    messageId: decided.messageId,
    ...(judgment?.requestId ? { requestId: judgment.requestId } : {}),
    toolCallId: call.id,
    toolName: call.name,
    argsDigest: call.frozen ? digest(call.frozen) : "",
    outcome: decision.outcome,
    by: decision.by,
    ...(executed ? { executed } : {}),
    ...(risk === undefined ? {} : { risk }),
    threshold: call.rule.threshold,
    reason: recordedReason(decided),
    ...(unavailable ? { unavailableReason: unavailable, ...failureFacts(decided) } : {}),
    classifier: judgment?.classifier ?? policy.classifierName,
    latencyMs: judgment?.latencyMs ?? 0,
    ...(judgment?.usage ? { usage: judgment.usage } : {}),
    counters: decision.counters,
  });
}

/** What is remembered of a call that the classifier blocked, so that it is not asked about it again. */
export function blockedCallOf({ call, finding, decision }: DecidedCall): BlockedCall | undefined {
  const { name, frozen } = call;
  const isBlocked = decision.outcome === "blocked" && !decision.lacksApproval;
  if (!isBlocked || !frozen || finding.kind !== "judged" || !("risk" in finding.answered)) return undefined;
  return { name, digest: digest(frozen), risk: finding.answered.risk };
}

/** Enough for a remark that a person reads in a question. In UTF-16 units. */
const MAX_REMARK = 500;

/** What the classifier said of a call in its own words, or the kind of risk: one line. */
function remarkOf({ finding }: DecidedCall): string | undefined {
  if (finding.kind !== "judged" || !("risk" in finding.answered)) return undefined;
  const { explanation, kind } = finding.answered;
  const remark = explanation ?? (kind && RISK_KINDS[kind]);
  return remark && cutEnd(escapeInvisible(remark.trim().replaceAll(/\s+/g, " ")), MAX_REMARK);
}

function causeOf(decided: DecidedCall): WaitCause {
  const { finding, decision, call } = decided;
  const reason = unavailableReason(decided);
  if (reason !== undefined) return { kind: "unavailable", reason };
  if (finding.kind === "rule") return { kind: "precheck" };
  if (decision.limit !== undefined) return { kind: "limit", limit: decision.limit };
  return { kind: "ask_band", askAt: call.rule.askAt ?? call.rule.threshold };
}

/** A call that waits for a person, with what that person reads. */
export function waitingCallOf(decided: DecidedCall): WaitingCall | undefined {
  const { call, decision } = decided;
  const { id, index, name, frozen, rule } = call;
  if (!frozen) return undefined;
  const risk = riskOf(decided);
  const remark = remarkOf(decided);
  return {
    id,
    index,
    name,
    digest: digest(frozen),
    judged: decision.counted.judged,
    cause: causeOf(decided),
    ...(risk === undefined ? {} : { risk, threshold: rule.threshold }),
    ...(remark ? { remark } : {}),
  };
}

/** The content behind a record, for the listener only. */
export function detailsOf({ call, evidence }: DecidedCall): DecisionDetails {
  return {
    call: { name: call.name, args: call.frozen?.value },
    tool: call.description === undefined ? {} : { description: call.description },
    // Built only if the listener reads it.
    get transcript() {
      return evidence().transcript;
    },
    get environment() {
      return evidence().environment;
    },
  };
}

import type { DecisionDetails, DecisionRecord } from "../decision-record.js";
import type { Policy } from "../resolve-options.js";
import type { Request } from "./request.js";

/** Hands a record out, with the content behind it for the listener only. */
export type EmitRecord = (
  record: DecisionRecord,
  details: DecisionDetails,
  runtime: Request["runtime"] | undefined,
) => void;

/** Hands records to the stream and the listener. A listener that fails changes no verdict and leaks nothing. */
export function createEmitRecord(policy: Policy): EmitRecord {
  const warn = (): void => {
    console.warn(`${policy.label}: onDecision failed; the decision is not changed.`);
  };
  return (record, details, runtime) => {
    try {
      runtime?.writer?.({ type: "auto_mode_decision", ...record });
    } catch {
      // A closed stream is no reason to change a decision.
    }
    if (!policy.onDecision) return;
    try {
      // Through a promise of our own: a listener may give one of another realm, or any thenable.
      Promise.resolve(policy.onDecision(record, details)).catch(warn);
    } catch {
      warn();
    }
  };
}

import type { DecisionDetails, DecisionRecord } from "../decision-record.js";
import type { Policy } from "../resolve-options.js";
import type { Request } from "./request.js";

type Deliver = (record: DecisionRecord, request: Pick<Request, "runtime">) => void;

/** Hands records out. A listener that fails changes no verdict and leaks nothing. */
export function createDelivery(policy: Policy): Deliver {
  const warn = (): void => {
    console.warn(`${policy.label}: onDecision failed; the decision stands.`);
  };
  return (record, { runtime }) => {
    try {
      runtime?.writer?.({ type: "auto_mode_decision", ...record });
    } catch {
      // A closed stream is no reason to change a decision.
    }
    if (!policy.onDecision) return;
    try {
      // Through a promise of our own: a listener may give one of another realm, or any thenable.
      Promise.resolve(policy.onDecision(record, detailsOf(record))).catch(warn);
    } catch {
      warn();
    }
  };
}

// The name alone, until the step hands its content down.
const detailsOf = ({ toolName }: DecisionRecord): DecisionDetails => ({
  call: { name: toolName, args: undefined },
  tool: {},
  transcript: [],
});

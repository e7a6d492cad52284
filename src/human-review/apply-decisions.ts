import type { ToolMessage } from "@langchain/core/messages";
import { digest, cloneJson } from "../json.js";
import { rejectedFeedback } from "../guard/feedback.js";
import type { Approval, CountedCall } from "../limits/state.js";
import type { HumanDecision } from "./decisions.js";
import type { RewrittenCall } from "./rewrite-proposal.js";
import { type ShownCall, errorMessage } from "./pending.js";

/** What a person's decisions turn into. */
export interface Decided {
  readonly approvals: readonly Approval[];
  /** Calls that stand otherwise in their message from now on. */
  readonly rewritten: readonly RewrittenCall[];
  readonly answers: readonly ToolMessage[];
  readonly calls: readonly CountedCall[];
  readonly rejected: readonly ShownCall[];
}

/**
 * Turns decisions, one for each call, into approvals of these calls alone, answers for rejected ones,
 * and what of it counts.
 *
 * @param usedIds ids that calls of earlier steps had
 */
export function applyDecisions(
  shown: readonly ShownCall[],
  decisions: readonly HumanDecision[],
  usedIds: ReadonlySet<string>,
): Decided {
  const approvals: Approval[] = [];
  const rewritten: RewrittenCall[] = [];
  const answers: ToolMessage[] = [];
  const calls: CountedCall[] = [];
  const rejected: ShownCall[] = [];
  for (const [position, call] of shown.entries()) {
    const decision = decisions[position] as HumanDecision;
    const counted = { index: call.index, key: `${call.index}:${call.id}`, judged: call.judged };
    if (decision.type === "reject") {
      answers.push(errorMessage(call.id, call.name, rejectedFeedback(call.name, decision.message)));
      calls.push({ ...counted, outcome: "rejected" });
      rejected.push(call);
      continue;
    }
    const { name, snapshot } = decision.type === "edit" ? decision : call;
    // The host drops a call whose id was answered earlier in the thread.
    const id = usedIds.has(call.id) ? globalThis.crypto.randomUUID() : call.id;
    if (decision.type === "edit" || id !== call.id)
      rewritten.push({ index: call.index, id, name, args: cloneJson(snapshot) });
    approvals.push({ id, name, digest: digest(snapshot) });
    calls.push({ ...counted, outcome: "approved" });
  }
  return { approvals, rewritten, answers, calls, rejected };
}

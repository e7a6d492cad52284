import { rejectedFeedback } from "../guard/feedback.js";
import { cloneJson, digest } from "../json.js";
import type { BlockedCall, CallIdentity, CountedCall } from "../limits/state.js";
import type { ApproverDecision } from "../transcript/langchain.js";
import { cutEnd } from "../transcript/cut.js";
import type { HumanDecision } from "./interrupt.js";
import type { ShownCall } from "./pending.js";
import type { RewrittenCall } from "./rewrite-proposal.js";

/** A call that a person rejected, with what the agent reads about it. */
export interface RejectedCall {
  readonly call: ShownCall;
  readonly feedback: string;
}

/** What a person's decisions turn into. */
export interface AppliedDecisions {
  readonly approvals: readonly CallIdentity[];
  /** Calls that their message holds in another form from now on. */
  readonly rewritten: readonly RewrittenCall[];
  readonly rejected: readonly RejectedCall[];
  readonly calls: readonly CountedCall[];
  /** What later judgments read of it. */
  readonly decisions: readonly ApproverDecision[];
}

/** Enough for a person's words; the thread keeps twenty such decisions. In UTF-16 units. */
const MAX_WORDS = 500;

/** A name as providers allow it. Anything else that a model wrote as a name could be a sentence. */
const PLAIN_NAME = /^[\p{L}\p{N}_.:-]{1,64}$/u;

const shownName = (name: string): string => (PLAIN_NAME.test(name) ? name : "a tool with an odd name");

/**
 * A decision as an entry of the transcript. Written by this package alone, but for the person's words. It may be
 * shown without its call, and then must not read like a general permission.
 */
function textOf(given: string, decision: HumanDecision, proposed: string): string {
  const name = shownName(given);
  const proposedName = shownName(proposed);
  switch (decision.type) {
    case "approve":
      return `approved ${name} with these arguments (this one call only)`;
    case "edit":
      return name === proposedName
        ? `edited ${name} and approved it with these arguments (this one call only)`
        : `edited the call to ${proposedName} into ${name} and approved it with these arguments (this one call only)`;
    case "reject": {
      const words = decision.message?.trim();
      return words ? `rejected ${name}: ${cutEnd(words, MAX_WORDS)}` : `rejected ${name}`;
    }
  }
}

/** The classifier found it risky or doubtful, and a person agreed: nobody is asked about the same call again. */
function blockedCallOf({ name, digest: hash, risk, cause }: ShownCall): BlockedCall | undefined {
  const wasJudged = cause.kind === "limit" || cause.kind === "ask_band";
  return wasJudged && risk !== undefined ? { name, digest: hash, risk } : undefined;
}

/**
 * Turns decisions, one for each call, into approvals of these calls alone, answers for rejected ones,
 * what of it counts, and what is remembered of it.
 *
 * @param usedIds ids that calls of earlier steps had
 */
export function applyDecisions(
  messageId: string,
  shown: readonly ShownCall[],
  decisions: readonly HumanDecision[],
  usedIds: ReadonlySet<string>,
): AppliedDecisions {
  const approvals: CallIdentity[] = [];
  const rewritten: RewrittenCall[] = [];
  const rejected: RejectedCall[] = [];
  const calls: CountedCall[] = [];
  const remembered: ApproverDecision[] = [];
  for (const [position, call] of shown.entries()) {
    const decision = decisions[position] as HumanDecision;
    const counted = { index: call.index, key: `${call.index}:${call.id}`, judged: call.judged };
    if (decision.type === "reject") {
      rejected.push({ call, feedback: rejectedFeedback(call.name, decision.message) });
      const blocked = blockedCallOf(call);
      calls.push({ ...counted, outcome: "rejected", ...(blocked ? { blocked } : {}) });
      remembered.push({
        messageId,
        toolCallId: call.id,
        text: textOf(call.name, decision, call.name),
        argsDigest: call.digest,
      });
      continue;
    }
    const { name, frozen } = decision.type === "edit" ? decision : call;
    // The host drops a call whose id was answered earlier in the thread.
    const id = usedIds.has(call.id) ? globalThis.crypto.randomUUID() : call.id;
    if (decision.type === "edit" || id !== call.id)
      rewritten.push({ index: call.index, id, name, args: cloneJson(frozen) });
    const argsDigest = digest(frozen);
    approvals.push({ id, name, digest: argsDigest });
    calls.push({ ...counted, outcome: "approved" });
    remembered.push({ messageId, toolCallId: id, text: textOf(name, decision, call.name), argsDigest });
  }
  return { approvals, rewritten, rejected, calls, decisions: remembered };
}

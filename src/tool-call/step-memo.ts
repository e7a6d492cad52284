import type { BaseMessage } from "@langchain/core/messages";
import { AgentStep, type StateKeys, threadOf, type ToolsOf } from "./step.js";
import type { ThreadState } from "../limits/state.js";
import type { Policy } from "../resolve-options.js";
import { lastAiMessage, type Request } from "./request.js";
import { SeenHistories } from "../transcript/seen-history.js";

/** Whether two lists of messages say the same. Copies of one checkpoint do. */
function saySame(a: readonly BaseMessage[], b: readonly BaseMessage[]): boolean {
  if (a.length !== b.length) return false;
  try {
    return a.every((message, at) => message === b[at] || JSON.stringify(message) === JSON.stringify(b[at]));
  } catch {
    // What JSON cannot hold cannot be compared.
    return false;
  }
}

/** Holds the steps of one middleware, each as long as its AIMessage lives. */
export function createSteps(
  policy: Policy,
  keys: StateKeys,
  toolsOf: ToolsOf,
): (request: Request) => AgentStep {
  const steps = new WeakMap<object, AgentStep>();
  const shared = {
    policy,
    keys,
    toolsOf,
    planning: new WeakMap<AbortSignal, Map<string, AgentStep>>(),
    histories: new SeenHistories(policy.view.delegationTools),
  };
  return (request) => {
    // Siblings share their AIMessage object; runs and threads never do.
    const key = lastAiMessage(request.state.messages)?.message ?? request.toolCall;
    const known = steps.get(key);
    const thread = threadOf(request.state, keys);
    // A model may hand out one object twice, also to two threads. And approvals arrive between two passes
    // over one message: what was decided before them is stale.
    if (known?.thread.turn === thread.turn && approvalsOf(known.thread) === approvalsOf(thread)) return known;
    const fresh = new AgentStep(shared, request);
    // After a resume the host may read the checkpoint once for each call: their messages are copies then.
    const sibling = fresh.planning;
    const step =
      sibling &&
      sibling.thread.turn === thread.turn &&
      approvalsOf(sibling.thread) === approvalsOf(thread) &&
      saySame(sibling.first.state.messages, request.state.messages)
        ? sibling
        : fresh;
    steps.set(key, step);
    forgetEarlier(steps, request.state.messages);
    return step;
  };
}

/** A step holds the list of messages as it was. In a long history one list for each step would add up. */
function forgetEarlier(steps: WeakMap<object, AgentStep>, messages: readonly BaseMessage[]): void {
  const last = lastAiMessage(messages);
  const earlier = last && lastAiMessage(messages, last.position);
  if (earlier) steps.delete(earlier.message);
}

/** Tells whether a person has decided since. */
function approvalsOf({ step }: ThreadState): string {
  return step?.approvals.length ? JSON.stringify([step.messageId, step.approvals]) : "";
}

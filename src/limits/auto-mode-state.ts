import type { BaseMessage } from "@langchain/core/messages";
import type { Counters, LimitName } from "../errors.js";
import { findProposal } from "../proposal.js";
import { threadOf } from "./state.js";

/** What a user may read of the guard's private state. */
export interface AutoModeState extends Counters {
  /** The limit that this turn has reached. */
  limit: LimitName | undefined;
  /** Calls that wait for a person. */
  waiting: { id: string; name: string; args: Record<string, unknown> }[];
}

/**
 * Reads the guard's counts and waiting calls from a snapshot of the agent's state.
 *
 * @param snapshot what `agent.graph.getState(config)` gives
 * @param label the middleware's `label`; default `"autoMode"`
 * @example
 * ```ts
 * const { totalBlocks, waiting } = autoModeState(await agent.graph.getState(config));
 * ```
 */
export function autoModeState(snapshot: { values: unknown }, label = "autoMode"): AutoModeState {
  const values = (snapshot.values ?? {}) as Record<string, unknown>;
  const thread = threadOf(values, { thread: `_${label}` });
  const messages = (values.messages as BaseMessage[] | undefined) ?? [];
  const proposal = thread.step && findProposal(messages, thread.step.messageId);
  const waiting = (thread.step?.waiting ?? []).flatMap(({ id, index }) => {
    const call = proposal?.message.tool_calls?.[index];
    return call?.id === id ? [{ id, name: call.name, args: call.args }] : [];
  });
  return { ...thread.limitStatus.counters, limit: thread.limitStatus.limit, waiting };
}

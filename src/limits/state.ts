import type { Outcome } from "../decision-record.js";
import type { LimitName, UnavailableReason, Counters } from "../errors.js";
import type { ApproverDecision } from "../transcript/langchain.js";
import {
  type Counted,
  type Limits,
  type LimitStatus,
  type StepCount,
  ZERO,
  countStep,
  newTurn,
} from "./counters.js";
import type { BaseMessage } from "@langchain/core/messages";
import { findProposal } from "../proposal.js";

/** One call, its tool and its arguments: what an approval or a block is about, and nothing else. */
export interface CallIdentity {
  readonly id: string;
  readonly name: string;
  /** SHA-256 of the canonical JSON of the arguments. */
  readonly digest: string;
}

/** A call that the classifier blocked in this turn. */
export interface BlockedCall {
  readonly name: string;
  readonly digest: string;
  readonly risk: number;
}

/** One counted call of the current step. */
export interface CountedCall extends Counted {
  /** Place of the call in its AIMessage: operations apply in this order, whatever finishes first. */
  readonly index: number;
  /** The call and its judgment: a changed call is judged, and counts, once more. */
  readonly key: string;
  /** Set for a block by the classifier: the same call is blocked again without a request. */
  readonly blocked?: BlockedCall | undefined;
}

/** Why a call waits for a person. */
export type WaitCause =
  | { readonly kind: "ask_band"; readonly askAt: number }
  | { readonly kind: "precheck" }
  | { readonly kind: "limit"; readonly limit: LimitName }
  | { readonly kind: "unavailable"; readonly reason: UnavailableReason };

/** A call that waits for a person, who decides about this very call, tool and arguments. */
export interface WaitingCall extends CallIdentity {
  readonly index: number;
  readonly judged: Counted["judged"];
  readonly cause: WaitCause;
  /** What the person reads in addition to the cause. */
  readonly risk?: number | undefined;
  readonly threshold?: number | undefined;
  /** The classifier's own sentence or kind, one line of at most 500 characters. */
  readonly remark?: string | undefined;
}

/** A call that was let through and came to no start: a middleware behind the guard made it wait. */
export interface PassedCall extends CallIdentity {
  readonly outcome: Extract<Outcome, "allowed" | "approved">;
}

/** A failed check that ends the run with an error at the model node. */
export interface StepFailure {
  readonly reason: UnavailableReason;
  readonly status?: number;
}

/** The step that is counted now. */
export interface StepState {
  readonly messageId: string;
  readonly base: LimitStatus;
  readonly calls: readonly CountedCall[];
  readonly waiting: readonly WaitingCall[];
  readonly approvals: readonly CallIdentity[];
  readonly passed?: readonly PassedCall[];
  /** Id of the approved call that was sent to the tools last. */
  readonly sent?: string | undefined;
  readonly failure?: StepFailure | undefined;
  /** Written by the trusted model. */
  readonly trusted?: boolean;
}

/** What the thread remembers. Bounded: the current step, and short lists. It holds no argument. */
export interface ThreadState {
  readonly turn: string;
  readonly limitStatus: StepCount;
  readonly step?: StepState;
  /** Calls that the classifier blocked in this turn, newest first. At most {@link MAX_BLOCKED_CALLS}. */
  readonly blockedCalls?: readonly BlockedCall[];
  /** What persons decided in this thread, oldest first. At most {@link MAX_APPROVER_DECISIONS}. */
  readonly approverDecisions?: readonly ApproverDecision[];
}

/** Enough for the calls that an agent repeats within a turn; more would grow the checkpoint. */
export const MAX_BLOCKED_CALLS = 32;
/** Enough for what a person decides within one piece of work. */
export const MAX_APPROVER_DECISIONS = 20;

/** What became of one call of a step. Written by `wrapToolCall`. */
export interface CallOperation {
  readonly op: "call";
  readonly turn: string;
  readonly messageId: string;
  readonly calls: readonly CountedCall[];
  readonly waiting?: WaitingCall | undefined;
  /** Id of an approval that is used up, whatever its call returned. */
  readonly spent?: string | undefined;
  readonly passed?: PassedCall | undefined;
  readonly failure?: StepFailure | undefined;
}

/** An update that a hook of this package writes. */
export type HookOperation =
  | { readonly op: "turn"; readonly turn: string }
  | {
      readonly op: "answered";
      readonly turn: string;
      readonly messageId: string;
      readonly calls: readonly CountedCall[];
      readonly approvals: readonly CallIdentity[];
      readonly decisions: readonly ApproverDecision[];
    }
  | { readonly op: "sent"; readonly turn: string; readonly messageId: string; readonly id: string }
  | { readonly op: "trusted"; readonly turn: string; readonly messageId: string };

const issued = new WeakSet<object>();

/**
 * Marks an operation of a hook as made by this process. Whoever can send a graph an update (a command as run
 * input, a subgraph) can write the private channels too, so that what such an operation says proves nothing.
 * An operation that is lost with its process is not applied later: its calls are judged, or asked about, again.
 */
export function issue<T extends object>(operation: T): T {
  issued.add(operation);
  return operation;
}

/** Whether this process made an operation. */
export const isIssued = (update: unknown): boolean =>
  typeof update === "object" && update !== null && issued.has(update);

/** Where a thread begins. Frozen, since the host hands one default to every thread. */
export const INITIAL: ThreadState = Object.freeze({
  turn: "",
  limitStatus: { counters: ZERO, due: false },
});

/** Keys of the two private channels of one middleware. */
export interface StateKeys {
  readonly thread: string;
  readonly input: string;
}

/** What the guard remembers of the thread, as it was before the current step. */
export function threadOf(state: object, keys: Pick<StateKeys, "thread">): ThreadState {
  const thread = (state as Record<string, unknown>)[keys.thread] as Partial<ThreadState> | undefined;
  // A checkpoint of version 0.1 holds the counts in another form. They start again from zero.
  return thread?.limitStatus ? (thread as ThreadState) : INITIAL;
}

/** What the thread remembers of this very step, after an earlier pass over it. */
export function stepStateOf({ step }: ThreadState, messageId: string): StepState | undefined {
  return step?.messageId === messageId ? step : undefined;
}

/**
 * An operation that may be applied. Those of calls may come out of a store, where a process has died between
 * two of them: they are known by the random id of the turn.
 */
function readOperation(update: unknown, turn: string): CallOperation | HookOperation | undefined {
  if (typeof update !== "object" || update === null || !("op" in update)) return undefined;
  if (isIssued(update)) return update as HookOperation;
  const operation = update as CallOperation;
  return operation.op === "call" && turn !== "" ? operation : undefined;
}

function openStep(state: ThreadState, messageId: string): StepState {
  const known = stepStateOf(state, messageId);
  if (known) return known;
  const { counters, limit } = state.limitStatus;
  const base = { counters, ...(limit === undefined ? {} : { limit }) };
  return { messageId, base, calls: [], waiting: [], approvals: [] };
}

const inOrder = (a: CountedCall, b: CountedCall): number => a.index - b.index || (a.key < b.key ? -1 : 1);

function merge(known: readonly CountedCall[], added: readonly CountedCall[]): readonly CountedCall[] {
  const last = known.at(-1);
  const first = added[0];
  if (!first) return known;
  // Most often the host applies the calls in their order. Sorting again for each would add up in a large step.
  if (added.length === 1 && (!last || inOrder(last, first) < 0)) return [...known, first];
  const byKey = new Map(known.map((call) => [call.key, call]));
  // A node that is entered again overwrites what it reported before, so that nothing counts twice.
  for (const call of added) byKey.set(call.key, call);
  return [...byKey.values()].toSorted(inOrder);
}

function withBlocked(
  known: readonly BlockedCall[] = [],
  calls: readonly CountedCall[],
): readonly BlockedCall[] {
  let kept = known;
  for (const { blocked } of calls) {
    if (!blocked) continue;
    const others = kept.filter(({ name, digest }) => name !== blocked.name || digest !== blocked.digest);
    kept = [blocked, ...others].slice(0, MAX_BLOCKED_CALLS);
  }
  return kept;
}

function withStep(state: ThreadState, step: StepState, limits: Limits): ThreadState {
  return { ...state, step, limitStatus: countStep(step.base, step.calls, limits) };
}

function applyCall(state: ThreadState, update: CallOperation, limits: Limits): ThreadState {
  const step = openStep(state, update.messageId);
  const { waiting, failure } = update;
  // A store may bring an operation back after a crash, and so may whoever can send the graph an update. It can
  // neither let a call pass nor change what is counted already.
  const isOwn = isIssued(update);
  const passed = isOwn ? update.passed : undefined;
  const known = new Set(isOwn ? [] : step.calls.map(({ key }) => key));
  const calls = update.calls.filter(({ key }) => !known.has(key));
  const others = step.waiting.filter(({ id }) => id !== waiting?.id);
  const passedBefore = (step.passed ?? []).filter(({ id }) => id !== passed?.id);
  return withStep(
    { ...state, blockedCalls: withBlocked(state.blockedCalls, calls) },
    {
      ...step,
      calls: merge(step.calls, calls),
      waiting: waiting ? [...others, waiting].toSorted((a, b) => a.index - b.index) : step.waiting,
      approvals: step.approvals.filter(({ id }) => id !== update.spent),
      passed: passed ? [...passedBefore, passed] : passedBefore,
      ...(failure ? { failure: step.failure ?? failure } : {}),
    },
    limits,
  );
}

/**
 * The reducer of the private channel. Plain values are ignored: the host feeds state back as such
 * whenever a hook returns something.
 */
export function reduceState(given: ThreadState, update: unknown, limits: Limits): ThreadState {
  const operation = readOperation(update, given.turn);
  if (!operation) return given;
  const state = threadOf({ given }, { thread: "given" });
  if (operation.op === "turn") {
    const { approverDecisions } = state;
    return {
      turn: operation.turn,
      limitStatus: { ...newTurn(state.limitStatus), due: false },
      ...(approverDecisions ? { approverDecisions } : {}),
    };
  }
  if (operation.turn !== state.turn) return state;
  switch (operation.op) {
    case "call":
      return applyCall(state, operation, limits);
    case "answered": {
      const step = openStep(state, operation.messageId);
      const { approvals, calls, decisions } = operation;
      const kept = [...(state.approverDecisions ?? []), ...decisions].slice(-MAX_APPROVER_DECISIONS);
      return withStep(
        {
          ...state,
          approverDecisions: kept,
          // A person's approval is news: what was blocked before it is judged again.
          blockedCalls: approvals.length > 0 ? [] : withBlocked(state.blockedCalls, calls),
        },
        { ...step, calls: merge(step.calls, calls), waiting: [], approvals, sent: approvals[0]?.id },
        limits,
      );
    }
    case "sent":
      return withStep(state, { ...openStep(state, operation.messageId), sent: operation.id }, limits);
    case "trusted":
      return withStep(state, { ...openStep(state, operation.messageId), trusted: true }, limits);
  }
}

/** What a user may read of the guard's private state. */
export interface AutoModeState extends Counters {
  /** The limit that this turn has reached. */
  limit: LimitName | undefined;
  /** Calls that wait for a person. */
  waiting: AskedCall[];
}

/** A call that waits for a person. */
export interface AskedCall {
  /** The call's id. */
  id: string;
  /** The tool's name. */
  name: string;
  /** The arguments as the model wrote them. */
  args: Record<string, unknown>;
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

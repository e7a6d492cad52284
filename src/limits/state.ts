import type { UnavailableReason } from "../errors.js";
import {
  type Counted,
  type Limits,
  type LimitStatus,
  type StepCount,
  ZERO,
  countStep,
  newTurn,
} from "./counters.js";

/** One counted call of the current step. */
export interface CountedCall extends Counted {
  /** Place of the call in its AIMessage: operations apply in this order, whatever finishes first. */
  readonly index: number;
  /** The call, and which of its judgements: a changed call is judged, and counts, once more. */
  readonly key: string;
}

/** A call that waits for a person, who decides about this very call, tool and arguments. */
export interface WaitingCall {
  readonly id: string;
  readonly index: number;
  readonly name: string;
  readonly digest: string;
  readonly judged: Counted["judged"];
}

/** A person's approval: of this call, this tool and these arguments only. */
export interface Approval {
  readonly id: string;
  readonly name: string;
  readonly digest: string;
}

/** The step that the counts stand at. */
export interface StepState {
  readonly messageId: string;
  readonly base: LimitStatus;
  readonly calls: readonly CountedCall[];
  readonly waiting: readonly WaitingCall[];
  readonly approvals: readonly Approval[];
  /** Id of the approved call that was sent to the tools last. */
  readonly sent?: string | undefined;
  /** Ends the run with an error at the model node. */
  readonly failure?: { readonly reason: UnavailableReason; readonly status?: number } | undefined;
  /** Written by the trusted model. */
  readonly trusted?: boolean;
}

/** What the thread remembers. Bounded: it holds the current step only, and no argument or message. */
export interface ThreadState {
  readonly turn: string;
  readonly limitStatus: StepCount;
  readonly step?: StepState;
}

/** An update that only this package writes. */
export type Operation =
  | { readonly op: "turn"; readonly turn: string }
  | {
      readonly op: "call";
      readonly turn: string;
      readonly messageId: string;
      readonly calls: readonly CountedCall[];
      readonly waiting?: WaitingCall;
      /** Id of an approval that has had its turn, whatever came of it. */
      readonly spent?: string;
      readonly failure?: { readonly reason: UnavailableReason; readonly status?: number };
    }
  | {
      readonly op: "answered";
      readonly turn: string;
      readonly messageId: string;
      readonly calls: readonly CountedCall[];
      readonly approvals: readonly Approval[];
    }
  | { readonly op: "sent"; readonly turn: string; readonly messageId: string; readonly id: string }
  | { readonly op: "trusted"; readonly turn: string; readonly messageId: string };

/** Where a thread begins. Frozen, since the host hands one default to every thread. */
export const INITIAL: ThreadState = Object.freeze({ turn: "", limitStatus: { counters: ZERO, due: false } });

function isOperation(update: unknown): update is Operation {
  return typeof update === "object" && update !== null && "op" in update;
}

function openStep(state: ThreadState, messageId: string): StepState {
  if (state.step?.messageId === messageId) return state.step;
  const { counters, limit } = state.limitStatus;
  return {
    messageId,
    base: { counters, ...(limit === undefined ? {} : { limit }) },
    calls: [],
    waiting: [],
    approvals: [],
  };
}

function merge(known: readonly CountedCall[], added: readonly CountedCall[]): CountedCall[] {
  const byKey = new Map(known.map((call) => [call.key, call]));
  // A node that is entered again overwrites what it said before, so that nothing counts twice.
  for (const call of added) byKey.set(call.key, call);
  return [...byKey.values()].toSorted((a, b) => a.index - b.index || (a.key < b.key ? -1 : 1));
}

function withStep(state: ThreadState, step: StepState, limits: Limits): ThreadState {
  return { ...state, step, limitStatus: countStep(step.base, step.calls, limits) };
}

/**
 * The reducer of the private channel. Plain values are ignored: the host feeds state back as such
 * whenever a hook returns something.
 */
export function reduceState(state: ThreadState, update: unknown, limits: Limits): ThreadState {
  if (!isOperation(update)) return state;
  if (update.op === "turn") {
    const limitStatus = newTurn(state.limitStatus);
    return { turn: update.turn, limitStatus: { ...limitStatus, due: false } };
  }
  if (update.turn !== state.turn) return state;
  const step = openStep(state, update.messageId);
  switch (update.op) {
    case "call":
      return withStep(
        state,
        {
          ...step,
          calls: merge(step.calls, update.calls),
          waiting: update.waiting
            ? [...step.waiting.filter(({ id }) => id !== update.waiting?.id), update.waiting].toSorted(
                (a, b) => a.index - b.index,
              )
            : step.waiting,
          approvals: step.approvals.filter(({ id }) => id !== update.spent),
          ...(update.failure ? { failure: step.failure ?? update.failure } : {}),
        },
        limits,
      );
    case "answered":
      return withStep(
        state,
        {
          ...step,
          calls: merge(step.calls, update.calls),
          waiting: [],
          approvals: update.approvals,
          sent: update.approvals[0]?.id,
        },
        limits,
      );
    case "sent":
      return withStep(state, { ...step, sent: update.id }, limits);
    case "trusted":
      return withStep(state, { ...step, trusted: true }, limits);
  }
}

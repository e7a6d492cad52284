import type { AIMessage } from "@langchain/core/messages";
import { freezeJson } from "../json.js";
import type { Executed } from "../decision-record.js";
import { type DecidedCall, type StepCall, type StepContext, decideStep } from "../guard/evaluate.js";
import { INITIAL, type StepState, type ThreadState } from "../limits/state.js";
import { UntoldCalls } from "../limits/untold-calls.js";
import { type Policy, mayAsk } from "../resolve-options.js";
import { type Request, isAsProposed, lastAiMessage, ruleFor, toStepCall } from "./request.js";
import { type StateKeys, stepContext } from "./context.js";
import type { SeenHistories } from "../transcript/seen-history.js";

export type { StateKeys } from "./context.js";

/** The tools that the model was given when it wrote a message. */
export type ToolsOf = WeakMap<object, readonly object[]>;

/** What the guard remembers of the thread, as it stood before the step. */
export function threadOf(state: object, keys: StateKeys): ThreadState {
  return ((state as Record<string, unknown>)[keys.thread] as ThreadState | undefined) ?? INITIAL;
}

type Plan = ReadonlyMap<number, DecidedCall>;

/**
 * The steps that are being judged now: of each run, which the host gives a signal of its own, by the ids of
 * their messages. Two runs may go on from one checkpoint at once, and must not share what is judged: each
 * has its own context and its own abort.
 */
type Planning = WeakMap<AbortSignal, Map<string, AgentStep>>;

/** What all steps of one middleware share. */
interface StepsOf {
  readonly policy: Policy;
  readonly keys: StateKeys;
  readonly toolsOf: ToolsOf;
  readonly histories: SeenHistories;
  readonly planning: Planning;
}

/** One AIMessage and its calls. All of its calls share the one request. */
export class AgentStep {
  /** The call that arrived first, with the thread as it found it. */
  readonly first: Request;
  /** The message that proposed the step's calls. */
  readonly message: AIMessage | undefined;
  readonly messageId: string;
  readonly thread: ThreadState;
  /** Judgements that are already recorded: a call that is entered again is not recorded again. */
  readonly recorded = new Map<string, Executed | undefined>();
  readonly untold: UntoldCalls;
  readonly #policy: Policy;
  readonly #keys: StateKeys;
  readonly #histories: SeenHistories;
  readonly #planning: Planning;
  readonly #position: number;
  /** The tools that the model was given. */
  readonly tools: readonly object[];
  /** What the state holds of this very step, after an earlier pass over it. */
  readonly #earlier: StepState | undefined;
  readonly #entered = new Map<number, Request>();
  /** Numbers of the calls that have no place of their own in the message. */
  readonly #strays = new WeakMap<object, number>();
  #strayCount = 0;
  #plan: Promise<Plan> | undefined;

  constructor({ policy, keys, toolsOf, histories, planning }: StepsOf, first: Request) {
    this.#policy = policy;
    this.#keys = keys;
    this.#histories = histories;
    this.#planning = planning;
    this.first = first;
    const last = lastAiMessage(first.state.messages);
    this.message = last?.message;
    this.#position = last?.position ?? -1;
    this.messageId = last?.message.id ?? "";
    this.tools = (last && toolsOf.get(last.message)) ?? [];
    this.thread = threadOf(first.state, keys);
    this.untold = new UntoldCalls(this.thread.limitStatus.counters);
    this.#earlier = this.thread.step?.messageId === this.messageId ? this.thread.step : undefined;
  }

  /** The same message's step in this run that is being judged now, if any. */
  get planning(): AgentStep | undefined {
    const { signal } = this.first.runtime ?? {};
    return signal && this.#planning.get(signal)?.get(this.messageId);
  }

  /** Written by the trusted model: nothing waits or throws, a stop halts the run. */
  get trusted(): boolean {
    return this.#earlier?.trusted ?? false;
  }

  /** Whether a person approved a call with this id. */
  isApproved(id: string | undefined): boolean {
    return this.#earlier?.approvals.some((approval) => approval.id === id) ?? false;
  }

  /**
   * Announces a guarded call, and gives it as it stands now: whoever changes its arguments while it is
   * judged changes neither what is judged nor what runs. All calls of a step arrive before the first of
   * them goes on.
   */
  enter(request: Request): Request {
    const snapshot = freezeJson(request.toolCall.args);
    const entered = snapshot
      ? { ...request, toolCall: { ...request.toolCall, args: snapshot.value } }
      : request;
    const index = this.#indexOf(request);
    if (index >= 0) this.#entered.set(index, entered);
    else this.#strays.set(entered.toolCall, this.#strayNumber(request));
    return entered;
  }

  /** The same for a call however often it is entered, and for no other call of the step. */
  keyOf(request: Request): string {
    const index = this.#indexOf(request);
    const place = index >= 0 ? String(index) : `-${this.#strayNumber(request)}`;
    return `${place}:${request.toolCall.id ?? ""}`;
  }

  /** What was decided for a call with its step. Undefined if the step's plan does not hold it. */
  async decisionFor(request: Request): Promise<DecidedCall | undefined> {
    const index = this.#indexOf(request);
    return index < 0 ? undefined : (await this.#planned()).get(index);
  }

  /** Decides one call on its own: one that stands in no message, or was changed on its way. */
  async decideAlone(request: Request, changed?: { name: string; args: unknown }): Promise<DecidedCall> {
    const call = toStepCall(this.#policy, request, {
      index: this.#indexOf(request),
      message: this.message,
      tools: this.tools,
      // A person would be shown the call of the message, not what it was changed into.
      canWait: false,
      ...(changed ? { changed } : {}),
    });
    const [decided] = await decideStep(this.#policy, [call], this.#context(request));
    return decided as DecidedCall;
  }

  /** Whether a call of this step waits for a person. */
  async parksCalls(): Promise<boolean> {
    return [...(await this.#planned()).values()].some(({ decision }) => decision.action === "park");
  }

  /** The call's place in its message; -1 for a call that stands in none, or shares its id. */
  #indexOf({ toolCall: { id } }: Request): number {
    if (!id) return -1;
    const calls = this.message?.tool_calls ?? [];
    const index = calls.findIndex((call) => call.id === id);
    return calls.findLastIndex((call) => call.id === id) === index ? index : -1;
  }

  #strayNumber({ toolCall }: Request): number {
    const number = this.#strays.get(toolCall) ?? (this.#strayCount += 1);
    this.#strays.set(toolCall, number);
    return number;
  }

  async #planned(): Promise<Plan> {
    this.#plan ??= this.#startPlan();
    try {
      return await this.#plan;
    } catch (error) {
      // An aborted plan binds nobody who enters again.
      this.#plan = undefined;
      throw error;
    }
  }

  async #startPlan(): Promise<Plan> {
    const { signal } = this.first.runtime ?? {};
    const ofRun = (signal && this.#planning.get(signal)) ?? new Map<string, AgentStep>();
    if (signal) this.#planning.set(signal, ofRun);
    ofRun.set(this.messageId, this);
    try {
      // After a microtask, so that all calls of the step have entered, with what outer middlewares made of them.
      await Promise.resolve();
      return await this.#decide();
    } finally {
      if (ofRun.get(this.messageId) === this) ofRun.delete(this.messageId);
    }
  }

  async #decide(): Promise<Plan> {
    const calls = this.#openCalls();
    const decided = await decideStep(this.#policy, calls, this.#context(this.first));
    if (decided.some(({ decision }) => decision.outcome !== "allowed")) this.untold.tellAll();
    return new Map(decided.map((item) => [item.call.index, item]));
  }

  /** All guarded calls of the step that have no answer yet. */
  #openCalls(): StepCall[] {
    const answered = new Set<string>();
    for (const message of this.first.state.messages.slice(this.#position + 1))
      if (message.getType() === "tool")
        answered.add((message as { tool_call_id?: string }).tool_call_id ?? "");
    return (this.message?.tool_calls ?? []).flatMap((toolCall, index) => {
      const entered = this.#entered.get(index);
      if (!entered && toolCall.id && answered.has(toolCall.id)) return [];
      const proposed = entered ?? { toolCall, tool: undefined };
      if (!this.isApproved(toolCall.id) && !ruleFor(this.#policy, proposed)) return [];
      const facts = { index, message: this.message, tools: this.tools };
      const canWait = mayAsk(this.#policy) && isAsProposed(proposed, toolCall);
      return [toStepCall(this.#policy, proposed, { ...facts, canWait })];
    });
  }

  #context(request: Request): StepContext {
    return stepContext(this.#policy, this.#keys, request, {
      // The request's own: after a resume it may hold a copy, and what is judged is not history.
      message: lastAiMessage(request.state.messages)?.message ?? this.message,
      limitStatus: this.thread.limitStatus,
      approvals: this.#earlier?.approvals ?? [],
      trusted: this.trusted,
      histories: this.#histories,
      toolOf: ({ index }) => (this.#entered.get(index) ?? request).tool,
    });
  }
}

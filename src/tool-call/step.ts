import type { AIMessage } from "@langchain/core/messages";
import type { Executed, Outcome } from "../decision-record.js";
import { type DecidedCall, type StepCall, type StepContext, decideStep } from "../guard/evaluate.js";
import type { Malformation } from "../guard/feedback.js";
import { blockedCallOf } from "../guard/report.js";
import { type FrozenJson, freezeJson } from "../json.js";
import {
  type BlockedCall,
  type StateKeys,
  type StepState,
  type ThreadState,
  stepStateOf,
  threadOf,
} from "../limits/state.js";
import { answeredIds, lastAiMessage } from "../proposal.js";
import type { Policy } from "../resolve-options.js";
import { readTranscript, stepContext } from "./context.js";
import { type Request, executingName, ruleFor, toStepCall } from "./request.js";

/** The tools that the model was given when it wrote a message. */
export type ToolsOf = WeakMap<object, readonly object[]>;

/** What all steps of one middleware share. */
interface StepEnvironment {
  readonly policy: Policy;
  readonly keys: StateKeys;
  readonly toolsOf: ToolsOf;
}

interface Plan {
  readonly decided: ReadonlyMap<number, DecidedCall>;
  /** Whether allowed calls are reported to the state: only where they change a count. */
  readonly reportsAllowed: boolean;
}

/** A guarded call as it arrived. */
export interface ArrivedCall {
  readonly request: Request;
  /** Its place in its message; negative for a call that has none of its own. */
  readonly index: number;
  /** The name of what would run. */
  readonly name: string;
  /** `undefined` if the arguments are malformed. */
  readonly frozen: FrozenJson | undefined;
  /** The same for this call however often it is entered, and for no other call of the step. */
  readonly key: string;
}

/** Two calls of the step have this id, or none has. */
const SHARED = -1;

/** Places of the calls in their message, by id. */
function placesOf(message: AIMessage | undefined): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [index, { id }] of (message?.tool_calls ?? []).entries())
    if (id) places.set(id, places.has(id) ? SHARED : index);
  return places;
}

/** One AIMessage and its calls, in one pass over them. All of its guarded calls share one request. */
export class Step {
  /** The message that proposed the step's calls. */
  readonly message: AIMessage | undefined;
  readonly messageId: string;
  readonly thread: ThreadState;
  /** What the state holds of this very step, after an earlier pass over it. */
  readonly earlier: StepState | undefined;
  readonly #environment: StepEnvironment;
  readonly #places: ReadonlyMap<string, number>;
  /** The tools that the model was given. */
  readonly #tools: readonly object[];
  /** Calls that have arrived, by their place. */
  readonly #arrived = new Map<number, ArrivedCall>();
  /** Numbers of the calls that have no place of their own in the message. */
  readonly #unmatched = new WeakMap<object, number>();
  #unmatchedCount = 0;
  /** Verdicts that are already recorded: a call that is entered again is not recorded again. */
  readonly #recorded = new Map<string, Executed | undefined>();
  /** What the classifier has blocked in this step, of which the state does not know yet. */
  readonly #blocked: BlockedCall[] = [];
  #plan: Promise<Plan> | undefined;

  constructor(environment: StepEnvironment, { state }: Pick<Request, "state">) {
    this.#environment = environment;
    this.message = lastAiMessage(state.messages);
    this.messageId = this.message?.id ?? "";
    this.#places = placesOf(this.message);
    this.#tools = (this.message && environment.toolsOf.get(this.message)) ?? [];
    this.thread = threadOf(state, environment.keys);
    this.earlier = stepStateOf(this.thread, this.messageId);
  }

  /** Written by the trusted model: nothing waits or throws, a stop halts the run. */
  get isTrusted(): boolean {
    return this.earlier?.trusted ?? false;
  }

  /** Whether a person approved a call with this id. */
  isApproved(id: string | undefined): boolean {
    return this.earlier?.approvals.some((approval) => approval.id === id) ?? false;
  }

  /**
   * Announces a guarded call, and gives it as it is now: whoever changes its arguments while it is judged
   * changes neither what is judged nor what runs. All calls of a step arrive before the first goes on.
   */
  enter(request: Request): ArrivedCall {
    const { toolCall } = request;
    const index = (toolCall.id ? this.#places.get(toolCall.id) : undefined) ?? SHARED;
    const place = index >= 0 ? String(index) : `-${this.#unmatchedNumber(toolCall)}`;
    const arrived: ArrivedCall = {
      request,
      index,
      name: executingName(request),
      frozen: freezeJson(toolCall.args),
      key: `${place}:${toolCall.id ?? ""}`,
    };
    if (index >= 0) this.#arrived.set(index, arrived);
    return arrived;
  }

  /** What was decided: with its step, or alone for a call that is not what the step was planned with. */
  async decide(arrived: ArrivedCall): Promise<DecidedCall> {
    const { index, request } = arrived;
    const planned = index < 0 ? undefined : (await this.#planned(request)).decided.get(index);
    return planned && this.#isAsPlanned(arrived, planned) ? planned : this.decideAlone(arrived);
  }

  /** Whether a call is what the plan was made with: a call that came later may have brought another tool. */
  #isAsPlanned(arrived: ArrivedCall, { call }: DecidedCall): boolean {
    const { policy } = this.#environment;
    if (call.name !== arrived.name || call.frozen?.json !== arrived.frozen?.json) return false;
    const { rule, tool } = this.#toStepCall(arrived);
    return rule === call.rule && (policy.precheck === undefined || tool === call.tool);
  }

  /** Decides one call on its own: one that no message holds, or that was changed on its way. */
  async decideAlone(arrived: ArrivedCall, changed?: FrozenJson | "malformed"): Promise<DecidedCall> {
    const call = this.#toStepCall(arrived, changed);
    const [decided] = await this.#decide([call], arrived.request);
    return decided as DecidedCall;
  }

  #toStepCall({ request, index, name, frozen }: ArrivedCall, changed?: FrozenJson | "malformed"): StepCall {
    return toStepCall(this.#environment.policy, request, {
      index,
      name,
      frozen: changed === undefined ? frozen : changed === "malformed" ? undefined : changed,
      malformation: this.#malformation(request.toolCall.id),
      tools: this.#tools,
      // A person would be shown the call of the message, not what it was changed into.
      canWait: false,
    });
  }

  /** Whether the plan holds calls that have not arrived: the host brings them in a later pass. */
  async awaitsOthers({ request, index }: ArrivedCall): Promise<boolean> {
    if (index < 0) return false;
    const { decided } = await this.#planned(request);
    return decided.size > this.#arrived.size;
  }

  /** Whether a call of this step waits for a person. */
  async suspendsCalls(request: Request): Promise<boolean> {
    const { decided } = await this.#planned(request);
    return [...decided.values()].some(({ decision }) => decision.action === "suspend");
  }

  /** Whether allowed calls are reported to the state. */
  async reportsAllowed({ request, index }: ArrivedCall): Promise<boolean> {
    return index < 0 || (await this.#planned(request)).reportsAllowed;
  }

  /**
   * Whether a verdict is still to be recorded: once, however often its call is entered, and once more if
   * its tool was not seen to start at first, and was later.
   */
  isNews(key: string, outcome: Outcome, executed: Executed | undefined): boolean {
    const verdict = `${key} ${outcome}`;
    const isNews =
      !this.#recorded.has(verdict) || (this.#recorded.get(verdict) === "not seen" && executed !== "not seen");
    if (isNews) this.#recorded.set(verdict, executed);
    return isNews;
  }

  #malformation(id: string | undefined): Malformation | undefined {
    if (!id) return "no_id";
    return this.#places.get(id) === SHARED ? "duplicate_id" : undefined;
  }

  #unmatchedNumber(toolCall: Request["toolCall"]): number {
    const number = this.#unmatched.get(toolCall) ?? (this.#unmatchedCount += 1);
    this.#unmatched.set(toolCall, number);
    return number;
  }

  async #planned(request: Request): Promise<Plan> {
    this.#plan ??= this.#makePlan(request);
    try {
      return await this.#plan;
    } catch (error) {
      // A call that enters again after an abort makes a new plan.
      this.#plan = undefined;
      throw error;
    }
  }

  async #makePlan(request: Request): Promise<Plan> {
    // After a microtask, so that all calls of the step have arrived, with what outer middlewares made of them.
    await Promise.resolve();
    const decided = await this.#decide(this.#openCalls(request), request);
    const { consecutiveBlocks, consecutiveUnavailable } = this.thread.limitStatus.counters;
    return {
      decided: new Map(decided.map((item) => [item.call.index, item])),
      reportsAllowed:
        consecutiveBlocks + consecutiveUnavailable > 0 ||
        decided.some(({ decision }) => decision.outcome !== "allowed"),
    };
  }

  async #decide(calls: readonly StepCall[], request: Request): Promise<DecidedCall[]> {
    const context = this.#context(request);
    const { thread } = context;
    const blockedCalls = [...this.#blocked, ...(thread.blockedCalls ?? [])];
    const decided = await decideStep(this.#environment.policy, calls, {
      ...context,
      thread: { ...thread, blockedCalls },
    });
    this.#blocked.push(...decided.flatMap((item) => blockedCallOf(item) ?? []));
    return decided;
  }

  /** All guarded calls of the step that have no answer yet. */
  #openCalls({ state }: Request): StepCall[] {
    const { policy } = this.#environment;
    // Behind the last message that proposes calls there is nothing but their answers.
    const proposedAt = state.messages.findLastIndex((message) => message.getType() === "ai");
    const answered = answeredIds(state.messages.slice(proposedAt + 1));
    return (this.message?.tool_calls ?? []).flatMap((toolCall, index) => {
      const arrived = this.#arrived.get(index);
      if (!arrived && toolCall.id && answered.has(toolCall.id)) return [];
      const proposed = arrived?.request ?? { toolCall, tool: this.#toolNamed(toolCall.name) };
      if (!this.isApproved(toolCall.id) && !ruleFor(policy, proposed)) return [];
      const inMessage = freezeJson(toolCall.args);
      const { name, frozen } = arrived ?? { name: executingName(proposed), frozen: inMessage };
      return [
        toStepCall(policy, proposed, {
          index,
          name,
          frozen,
          malformation: this.#malformation(toolCall.id),
          tools: this.#tools,
          // A person is shown the call of the message, and can decide about nothing else.
          canWait: policy.asksHuman && name === toolCall.name && frozen?.json === inMessage?.json,
        }),
      ];
    });
  }

  /** A call of the step that has not arrived: a predicate is asked about the tool that the model was given. */
  #toolNamed(name: string): Request["tool"] {
    return this.#tools.find((tool) => (tool as { name?: unknown }).name === name) as Request["tool"];
  }

  #context(request: Request): StepContext {
    const { policy, keys } = this.#environment;
    // The request's own message: after a resume it may be a copy, and what is judged is not history.
    const message = lastAiMessage(request.state.messages) ?? this.message;
    return stepContext(policy, keys, request, message);
  }
}

/** Enough for the steps of one process that wait at one time. One that is forgotten is judged again. */
const MAX_UNFINISHED = 256;

/** Holds the steps of one middleware, each for one pass of one run over its message. */
export class Steps {
  readonly #environment: StepEnvironment;
  /**
   * Two runs may go on from one checkpoint at once, and must not share what is judged: each has its own
   * context and its own abort. The host gives each pass over a step a signal of its own; siblings share it,
   * even where each has its own copy of the message.
   */
  readonly #byPass = new WeakMap<object, Map<string, Step>>();
  /**
   * Steps that the host comes back to, in this run or when it is resumed. Their verdicts are valid then, if the
   * conversation before the step is still what it was.
   */
  readonly #unfinished = new Map<string, { readonly step: Step; readonly before: string }>();

  constructor(environment: StepEnvironment) {
    this.#environment = environment;
  }

  /** The step of a call. */
  of(request: Request): Step {
    const message = lastAiMessage(request.state.messages);
    const pass = (message?.id ? request.runtime?.signal : undefined) ?? message ?? request.toolCall;
    const steps = this.#byPass.get(pass) ?? new Map<string, Step>();
    this.#byPass.set(pass, steps);
    const key = keyOfStep(threadOf(request.state, this.#environment.keys), message?.id ?? "");
    const kept = steps.has(key) ? undefined : this.#unfinished.get(key);
    const isSame = kept !== undefined && kept.before === this.#conversationBefore(request);
    const step = steps.get(key) ?? (isSame ? kept.step : new Step(this.#environment, request));
    this.#unfinished.delete(key);
    steps.set(key, step);
    return step;
  }

  /**
   * Keeps what was decided until the host comes back to the step: where a tool interrupts the graph, and
   * where a middleware lets the calls of a step through one at a time.
   */
  keepForNextPass(step: Step, request: Request): void {
    // Without a turn id two threads could be mixed up.
    if (step.thread.turn === "") return;
    const key = keyOfStep(step.thread, step.messageId);
    const before = this.#unfinished.get(key)?.before ?? this.#conversationBefore(request);
    this.#unfinished.delete(key);
    this.#unfinished.set(key, { step, before });
    for (const oldest of this.#unfinished.keys()) {
      if (this.#unfinished.size <= MAX_UNFINISHED) break;
      this.#unfinished.delete(oldest);
    }
  }

  /** What a classifier reads of the conversation before the step. A step may be run again after an edit of it. */
  #conversationBefore({ state }: Request): string {
    const { policy, keys } = this.#environment;
    const proposedAt = state.messages.findLastIndex((message) => message.getType() === "ai");
    const earlier = { ...state, messages: state.messages.slice(0, Math.max(0, proposedAt)) };
    return JSON.stringify(readTranscript(policy, keys, earlier, undefined, new Set()));
  }
}

/** A step in one turn of one thread, after the same decisions of a person: they make earlier plans stale. */
function keyOfStep(thread: ThreadState, messageId: string): string {
  const { approvals = [], passed = [] } = stepStateOf(thread, messageId) ?? {};
  return JSON.stringify([thread.turn, messageId, approvals, passed]);
}

import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import type { ToolCallRequest } from "langchain";
import { type DecidedCall, type StepCall, type StepContext, decideStep } from "./guard.js";
import { takeSnapshot } from "./arguments.js";
import type { Malformation } from "./feedback.js";
import { type CountedCall, INITIAL, type StepState, type ThreadState } from "./limits/state.js";
import type { Policy } from "./policy.js";
import { NO_INPUT, type RunInputState, readRunInput } from "./run-input.js";
import { langchainSource } from "./transcript/from-langchain.js";
import { buildTranscript } from "./transcript/view.js";

/** A call on its way to its tool, as the host hands it over. */
export type Request = ToolCallRequest<Record<string, unknown>, unknown>;

/** Keys of the two private channels. */
export interface StateKeys {
  readonly thread: string;
  readonly input: string;
}

/** The tools that the model was given when it wrote a message, for the descriptions of its calls. */
export type ToolsOf = WeakMap<object, readonly unknown[]>;

function lastAiMessage(messages: readonly BaseMessage[]): { message: AIMessage; index: number } | undefined {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.getType() === "ai") return { message: message as AIMessage, index };
  }
  return undefined;
}

function describe(tool: unknown): { name?: unknown; description?: unknown } {
  return typeof tool === "object" && tool !== null ? tool : {};
}

/** The name of what would run: the tool object decides, where there is one. */
export function executingName(request: Pick<Request, "tool" | "toolCall">): string {
  const { name } = describe(request.tool);
  return typeof name === "string" && name !== "" ? name : request.toolCall.name;
}

/** The rule for a call: of its tool object or of its name, either one guards. */
export function ruleFor(policy: Policy, request: Pick<Request, "tool" | "toolCall">) {
  return policy.rules.get(executingName(request)) ?? policy.rules.get(request.toolCall.name);
}

/** One AIMessage and its calls. All of its calls share the one request. */
export class AgentStep {
  readonly messageId: string;
  readonly approvalsKey: string;
  /** Decisions that are already recorded: a call that is entered again is not recorded again. */
  readonly recorded = new Set<string>();
  readonly #policy: Policy;
  readonly #keys: StateKeys;
  readonly #first: Request;
  /** The message that proposed the step's calls. */
  readonly message: AIMessage | undefined;
  readonly #messageIndex: number;
  readonly #tools: readonly unknown[];
  readonly #entered = new Map<number, Request>();
  #guardedCalls = 0;
  #plan: Promise<ReadonlyMap<number, DecidedCall>> | undefined;

  constructor(policy: Policy, keys: StateKeys, first: Request, toolsOf: ToolsOf) {
    this.#policy = policy;
    this.#keys = keys;
    this.#first = first;
    this.approvalsKey = approvalsKey(first.state, keys);
    const last = lastAiMessage(first.state.messages);
    this.message = last?.message;
    this.#messageIndex = last?.index ?? -1;
    this.messageId = last?.message.id ?? "";
    this.#tools = (last && toolsOf.get(last.message)) ?? [];
  }

  /** What the guard remembers of the thread, as it stood before this step. */
  get thread(): ThreadState {
    return (this.#first.state[this.#keys.thread] as ThreadState | undefined) ?? INITIAL;
  }

  /** What the state holds of this very step, after an earlier pass over it. */
  get #earlier(): StepState | undefined {
    const { step } = this.thread;
    return step?.messageId === this.messageId ? step : undefined;
  }

  /** Written by the trusted model: nothing waits or throws, a stop halts the run. */
  get trusted(): boolean {
    return this.#earlier?.trusted ?? false;
  }

  /** Whether a person approved a call with this id. */
  isApproved(request: Request): boolean {
    return this.#earlier?.approvals.some(({ id }) => id === request.toolCall.id) ?? false;
  }

  /** Whether a call of this step waits for a person. */
  async parksCalls(): Promise<boolean> {
    this.#plan ??= Promise.resolve().then(() => this.#decide());
    return [...(await this.#plan).values()].some(({ decision }) => decision.action === "park");
  }

  /**
   * Whether the state needs to hear of these calls. An allowed call that stands alone in its step, with no
   * count to clear, changes nothing, and its result can stay as the tool gave it.
   */
  mattersToCount(calls: readonly CountedCall[]): boolean {
    const { consecutiveBlocks, consecutiveUnavailable } = this.thread.standing.counters;
    return (
      calls.length > 0 &&
      (this.#guardedCalls !== 1 ||
        consecutiveBlocks + consecutiveUnavailable > 0 ||
        calls.some(({ outcome }) => outcome !== "allowed"))
    );
  }

  /** The call's place in its message; -1 for a call that stands in none, or shares its id. */
  indexOf(request: Request): number {
    const { id } = request.toolCall;
    if (!id) return -1;
    const calls = this.message?.tool_calls ?? [];
    const index = calls.findIndex((call) => call.id === id);
    return calls.findLastIndex((call) => call.id === id) === index ? index : -1;
  }

  /**
   * Announces a guarded call, and gives it as it stands now: whoever changes its arguments while it is
   * judged changes neither what is judged nor what runs. All calls of a step arrive before the first of
   * them goes on.
   */
  enter(request: Request): Request {
    const snapshot = takeSnapshot(request.toolCall.args);
    const entered = snapshot
      ? { ...request, toolCall: { ...request.toolCall, args: snapshot.value } }
      : request;
    const index = this.indexOf(request);
    if (index >= 0) this.#entered.set(index, entered);
    return entered;
  }

  /** What was decided for a planned call. Undefined if the plan does not hold it. */
  async decisionFor(request: Request): Promise<DecidedCall | undefined> {
    const index = this.indexOf(request);
    if (index < 0) return undefined;
    // After a microtask, so that all calls of the step have entered, with what outer middlewares made of them.
    this.#plan ??= Promise.resolve().then(() => this.#decide());
    try {
      return (await this.#plan).get(index);
    } catch (error) {
      // An aborted plan binds nobody who enters again.
      this.#plan = undefined;
      throw error;
    }
  }

  /** Decides one call on its own: one that stands in no message, or was changed on its way. */
  async decideAlone(
    request: Request,
    args: unknown = request.toolCall.args,
    name?: string,
  ): Promise<DecidedCall> {
    const call = this.#stepCall(request, this.indexOf(request), { args, name, canWait: false });
    const [decided] = await decideStep(this.#policy, [call], this.#context(request));
    return decided as DecidedCall;
  }

  #malformation(id: string | undefined): Malformation | undefined {
    if (!id) return "no_id";
    const same = this.message?.tool_calls?.filter((call) => call.id === id) ?? [];
    return same.length > 1 ? "duplicate_id" : undefined;
  }

  #stepCall(
    request: Pick<Request, "tool" | "toolCall">,
    index: number,
    over: { args?: unknown; name?: string | undefined; canWait?: boolean } = {},
  ): StepCall {
    const { toolCall, tool } = request;
    const name = over.name ?? executingName(request);
    const rule = this.#policy.rules.get(name) ?? this.#policy.rules.get(toolCall.name);
    const described = over.name === undefined || describe(tool).name === over.name ? describe(tool) : {};
    const given = this.#tools.find((candidate) => describe(candidate).name === name);
    const description = described.description ?? describe(given).description;
    return {
      index,
      id: toolCall.id ?? "",
      name,
      rule: rule ?? ([...this.#policy.rules.values()][0] as StepCall["rule"]),
      args: "args" in over ? over.args : toolCall.args,
      description: typeof description === "string" ? description : undefined,
      malformation: this.#malformation(toolCall.id),
      canWait: over.canWait ?? true,
    };
  }

  /** All guarded calls of the step that still wait for an answer. */
  #stepCalls(): StepCall[] {
    const answered = new Set<string>();
    for (const message of this.#first.state.messages.slice(this.#messageIndex + 1))
      if (message.getType() === "tool")
        answered.add((message as { tool_call_id?: string }).tool_call_id ?? "");
    return (this.message?.tool_calls ?? []).flatMap((toolCall, index) => {
      if (toolCall.id && answered.has(toolCall.id) && !this.#entered.has(index)) return [];
      const request = this.#entered.get(index) ?? { toolCall, tool: undefined };
      const approved = this.#earlier?.approvals.some(({ id }) => id === toolCall.id);
      if (!approved && !ruleFor(this.#policy, request)) return [];
      return [this.#stepCall(request, index, { canWait: isSameCall(request, toolCall) })];
    });
  }

  async #decide(): Promise<ReadonlyMap<number, DecidedCall>> {
    const calls = this.#stepCalls();
    this.#guardedCalls = calls.length;
    const decided = await decideStep(this.#policy, calls, this.#context(this.#first));
    return new Map(decided.map((item) => [item.call.index, item]));
  }

  #context(request: Request): StepContext {
    const { state, runtime } = request;
    const { environment, precheck } = this.#policy;
    return {
      messageId: this.messageId,
      standing: this.thread.standing,
      approvals: this.#earlier?.approvals ?? [],
      trusted: this.trusted,
      signal: runtime?.signal,
      transcript: (judged) => this.#transcript(state, judged),
      ...(environment === undefined
        ? {}
        : { environment: () => (typeof environment === "function" ? environment(runtime) : environment) }),
      ...(precheck === undefined
        ? {}
        : {
            precheck: (call, of) =>
              precheck(call, { tool: (this.#entered.get(of.index) ?? request).tool, state, runtime }),
          }),
    };
  }

  #transcript(state: Request["state"], judged: ReadonlySet<number>) {
    const { view, author } = this.#policy;
    const input = (state[this.#keys.input] as RunInputState | undefined) ?? NO_INPUT;
    const source = langchainSource(state.messages, {
      delegationTools: view.delegationTools,
      author,
      ...readRunInput(state.messages, input),
      isJudged: (message, index) => message === this.message && judged.has(index),
    });
    return buildTranscript(source, view);
  }
}

/** Tells whether a person has decided since. */
function approvalsKey(state: Request["state"], keys: StateKeys): string {
  const thread = state[keys.thread] as ThreadState | undefined;
  return JSON.stringify([thread?.turn, thread?.step?.messageId, thread?.step?.approvals ?? []]);
}

function isSameCall(
  request: Pick<Request, "tool" | "toolCall">,
  proposed: { name: string; args: unknown },
): boolean {
  return (
    executingName(request) === proposed.name &&
    takeSnapshot(request.toolCall.args)?.json === takeSnapshot(proposed.args)?.json
  );
}

/** Holds the steps of one middleware, each as long as its AIMessage lives. */
export function createSteps(
  policy: Policy,
  keys: StateKeys,
  toolsOf: ToolsOf,
): (request: Request) => AgentStep {
  const steps = new WeakMap<object, AgentStep>();
  return (request) => {
    // Siblings share their AIMessage object; runs and threads never do.
    const key = lastAiMessage(request.state.messages)?.message ?? request.toolCall;
    let step = steps.get(key);
    // Approvals arrive between two passes over the same message: what was decided before them is stale.
    if (!step || step.approvalsKey !== approvalsKey(request.state, keys)) {
      step = new AgentStep(policy, keys, request, toolsOf);
      steps.set(key, step);
    }
    return step;
  };
}

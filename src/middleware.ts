import type { ToolMessage } from "@langchain/core/messages";
import { Command, ReducedValue, StateSchema } from "@langchain/langgraph";
import { type AgentMiddleware, createMiddleware } from "langchain";
import { z } from "zod";
import { createUnknownToolCheck } from "./guard/select-tools.js";
import { HumanReview } from "./human-review/review.js";
import {
  INITIAL,
  type StateKeys,
  type ThreadState,
  isIssued,
  issue,
  reduceState,
  threadOf,
} from "./limits/state.js";
import { type ModelRequest, beforeModelCall, createModelLoader, writeTrusted } from "./model-call.js";
import type { AutoModeOptions } from "./options.js";
import { lastAiMessage } from "./proposal.js";
import { type Policy, resolvePolicy } from "./resolve-options.js";
import { createEmitRecord } from "./tool-call/emit-record.js";
import { type CallHost, type Handler, executeCall } from "./tool-call/execute.js";
import { type Request, ruleFor } from "./tool-call/request.js";
import { Steps } from "./tool-call/step.js";
import { addUpdates, removedMessages, stripKeys, tagToolAuthored } from "./tool-call/tool-output.js";
import { NO_INPUT, type RunInputState, noteInput, reduceRunInput } from "./transcript/user-input.js";

type State = Request["state"];
type Runtime = Request["runtime"];
/** What {@link autoModeMiddleware} makes: a middleware for `createAgent` that adds no public state and no context. */
export type AutoModeMiddleware = AgentMiddleware<undefined, undefined, unknown, readonly [], readonly []>;

/** The host's hooks, with the types that this package reads and writes. */
interface Hooks {
  readonly beforeAgent: (state: State, runtime: Runtime) => Record<string, unknown>;
  readonly beforeModel?: {
    readonly canJumpTo: readonly ("tools" | "end")[];
    readonly hook: (state: State, runtime: Runtime) => Record<string, unknown> | undefined;
  };
  readonly wrapModelCall: (
    request: ModelRequest & { readonly state: State; readonly tools: readonly object[] },
    handler: (request: ModelRequest) => Promise<object> | object,
  ) => Promise<object>;
  readonly wrapToolCall: (request: Request, handler: Handler) => Promise<ToolMessage | Command>;
}

/**
 * The one place where the host's types meet ours: its own follow from the state's schema, and the private
 * channels are to leave no trace in the type of an agent's state.
 */
function toMiddleware(
  name: string,
  stateSchema: ReturnType<typeof createStateSchema>,
  hooks: Hooks,
): AutoModeMiddleware {
  return createMiddleware({ name, stateSchema, ...(hooks as object) }) as unknown as AutoModeMiddleware;
}

/** A tool may send a call to the tools with a state in which there is nothing. */
function withMessages(request: Request): Request {
  if (Array.isArray(request.state.messages)) return request;
  return { ...request, state: { ...request.state, messages: [] } };
}

function createStateSchema(policy: Policy, keys: StateKeys) {
  // Plain values and operations both arrive here, and both are checked by the reducers.
  const anything = z.custom<unknown>(() => true);
  return new StateSchema({
    [keys.thread]: new ReducedValue(
      z.custom<ThreadState>(() => true).default(() => INITIAL),
      {
        inputSchema: anything,
        reducer: (state: ThreadState, update: unknown) => reduceState(state, update, policy.limits),
      },
    ),
    [keys.input]: new ReducedValue(
      z.custom<RunInputState>(() => true).default(() => NO_INPUT),
      {
        inputSchema: anything,
        reducer: (state: RunInputState, update: unknown) =>
          isIssued(update) ? reduceRunInput(state, update) : state,
      },
    ),
  });
}

/** Warns once that a tool ran without having been seen to start. */
function createNotSeenWarning(label: string): () => void {
  let isGiven = false;
  return () => {
    if (isGiven) return;
    isGiven = true;
    console.warn(
      `${label}: an allowed call ended, but its tool was not seen to start. Put auto mode last in the list of middlewares, so that nothing comes between it and the tools.`,
    );
  };
}

/**
 * Judges configured tool calls right before they run. A decision model is asked how risky or
 * unauthorized each call is; a risky call does not run, and the agent gets an error ToolMessage with
 * feedback. Counters in the agent's state drive limits and a fallback.
 *
 * @throws {ConfigurationError} for a wrong option, named in its message.
 * @example
 * ```ts
 * const agent = createAgent({
 *   model,
 *   tools: [readFile, deleteFile],
 *   middleware: [
 *     autoModeMiddleware({
 *       tools: [deleteFile],
 *       criteria: { true: "It removes something.", false: "It only looks." },
 *       classifier,
 *     }),
 *   ],
 * });
 * ```
 */
export function autoModeMiddleware(options: AutoModeOptions): AutoModeMiddleware {
  const policy = resolvePolicy(options);
  const { label, fallback, selection } = policy;
  const keys = { thread: `_${label}`, input: `_${label}_input` };
  const privateKeys: ReadonlySet<string> = new Set(Object.values(keys));
  const toolsOf = new WeakMap<object, readonly object[]>();
  const failures = new WeakMap<object, unknown>();
  const checkTools = createUnknownToolCheck(selection, policy.onUnknownTool, label);
  const loadTrusted = fallback.kind === "defer" ? createModelLoader(fallback) : undefined;
  const emitRecord = createEmitRecord(policy);
  const steps = new Steps({ policy, keys, toolsOf });
  const host: CallHost = { policy, steps, emitRecord, warnNotSeen: createNotSeenWarning(label) };
  const review = new HumanReview(policy, keys, emitRecord);

  const inputOf = (state: State): RunInputState =>
    (state[keys.input] as RunInputState | undefined) ?? NO_INPUT;

  /** What a node may be sent of our state: not this very step, whose approvals are for the start under way. */
  const trueState = (state: State, { turn, limitStatus }: ThreadState) => ({
    [keys.thread]: { turn, limitStatus },
    [keys.input]: inputOf(state),
  });

  return toMiddleware(label, createStateSchema(policy, keys), {
    // Runs once for new input, never for a resume: this is where a turn begins.
    beforeAgent: (state, runtime) => ({
      [keys.thread]: issue({ op: "turn", turn: globalThis.crypto.randomUUID() }),
      [keys.input]: issue(noteInput(state.messages, inputOf(state), policy.view.maxChars)),
      ...review.supersede(state, runtime),
    }),

    ...(review.isOn
      ? {
          beforeModel: {
            canJumpTo: ["tools", "end"],
            hook: (state, runtime) => review.beforeModel(state, runtime),
          },
        }
      : {}),

    wrapModelCall: async (request, handler) => {
      checkTools(request.tools);
      const thread = threadOf(request.state, keys);
      const proposal = lastAiMessage(request.messages);
      const action = beforeModelCall(policy, thread, proposal && failures.get(proposal));
      if (action?.kind === "halt") return action.message;
      const write = async (changed: ModelRequest): Promise<object> => {
        const response = await handler(changed);
        toolsOf.set(response, request.tools);
        return response;
      };
      if (action?.kind === "defer" && loadTrusted)
        return writeTrusted(thread, keys.thread, await loadTrusted(), request, write);
      return write(request);
    },

    wrapToolCall: async (given, handler) => {
      const request = withMessages(given);
      const { toolCall, state } = request;
      const thread = threadOf(state, keys);
      const rule = ruleFor(policy, request);
      const step = rule || review.concerns(request, thread) ? steps.of(request) : undefined;
      if (step && review.isOver(request, step)) return new Command({ update: {} });
      // A person may have edited a call into one of a tool that is not guarded.
      const isGuarded = step && (rule !== undefined || step.isApproved(toolCall.id));
      const { result, operation, failure } = isGuarded
        ? await executeCall(host, step, request, handler)
        : { result: await handler(given), operation: undefined, failure: undefined };
      if (failure && step?.message) failures.set(step.message, failure.error);
      const updates = new Map<string, unknown>(operation ? [[keys.thread, operation]] : []);
      if (!result) return new Command({ update: Object.fromEntries(updates) });
      const removed = removedMessages(result);
      if (removed) updates.set(keys.input, issue({ op: "removed", ids: removed }));
      const tagged = tagToolAuthored(
        stripKeys(result, privateKeys, () => trueState(state, thread)),
        toolCall.name,
        state.messages,
      );
      return addUpdates(step ? await review.keepWaiting(tagged, request, step) : tagged, updates);
    },
  });
}

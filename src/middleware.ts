import type { BaseMessage } from "@langchain/core/messages";
import { Command, ReducedValue, StateSchema } from "@langchain/langgraph";
import { type AgentMiddleware, createMiddleware } from "langchain";
import { z } from "zod";
import { threadOf } from "./tool-call/step.js";
import { createSteps } from "./tool-call/step-memo.js";
import { createDelivery } from "./tool-call/emit-record.js";
import { createHumanReview } from "./human-review/review.js";
import { INITIAL, type ThreadState, reduceState } from "./limits/state.js";
import { atModelNode, createModelLoader, writeTrusted } from "./model-call.js";
import type { AutoModeOptions } from "./options.js";
import { type Policy, resolvePolicy } from "./resolve-options.js";
import { type CallHost, CallRunner } from "./tool-call/execute.js";
import { NO_INPUT, type RunInputState, noteInput, reduceRunInput } from "./transcript/user-input.js";
import { type Request, lastAiMessage, ruleFor } from "./tool-call/request.js";
import { createStartGates } from "./tool-call/tool-start.js";
import { createToolNameCheck } from "./tool-names.js";
import { addUpdates, stripKeys } from "./tool-call/tool-output.js";
import { tagToolAuthored } from "./tool-call/tool-authored.js";

type State = Record<string, unknown> & { messages: BaseMessage[] };

/** A tool may send a call to the tools with a state in which there is nothing. */
function withMessages(request: Request): Request {
  if (Array.isArray(request.state.messages)) return request;
  return { ...request, state: { ...request.state, messages: [] } };
}

function createStateSchema(policy: Policy, keys: { thread: string; input: string }) {
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
      { inputSchema: anything, reducer: reduceRunInput },
    ),
  });
}

/**
 * Judges configured tool calls right before they run. A decision model is asked how risky or
 * unauthorised each call is; a risky call does not run, and the agent gets an error ToolMessage with
 * feedback. Counters in the agent's state drive limits and a fallback.
 *
 * @throws ConfigurationError for a wrong option, named in its message.
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
export function autoModeMiddleware(
  options: AutoModeOptions,
): AgentMiddleware<undefined, undefined, unknown, readonly [], readonly []> {
  const policy = resolvePolicy(options);
  const keys = { thread: `_${policy.label}`, input: `_${policy.label}_input` };
  const privateKeys: ReadonlySet<string> = new Set(Object.values(keys));
  const toolsOf = new WeakMap<object, readonly object[]>();
  const failures = new WeakMap<object, unknown>();
  const stepOf = createSteps(policy, keys, toolsOf);
  const checkToolNames = createToolNameCheck(policy);
  const loadTrusted = policy.fallback.kind === "defer" ? createModelLoader(policy.fallback) : undefined;
  const deliver = createDelivery(policy);
  const host: CallHost = {
    policy,
    gates: createStartGates(),
    deliver,
    stepOf,
    toolsGiven: ({ state }) => toolsOf.get(lastAiMessage(state.messages)?.message ?? state) ?? [],
    keepFailure: (step, error) => {
      if (step.message) failures.set(step.message, error);
    },
  };
  const asking = createHumanReview(policy, keys, deliver);

  const middleware = createMiddleware({
    name: policy.label,
    stateSchema: createStateSchema(policy, keys),

    // Runs once for new input, never for a resume: this is where a turn begins.
    beforeAgent: (given) => {
      const state = given as unknown as State;
      const input = (state[keys.input] as RunInputState | undefined) ?? NO_INPUT;
      return {
        [keys.thread]: { op: "turn", turn: globalThis.crypto.randomUUID() },
        [keys.input]: noteInput(state.messages, input, policy.view.maxChars),
        ...asking.answerSuperseded(state.messages, threadOf(state, keys)),
      } as never;
    },

    ...(asking.beforeModel ? { beforeModel: asking.beforeModel as never } : {}),

    wrapModelCall: async (request, handler) => {
      checkToolNames(request.tools);
      const thread = threadOf(request.state, keys);
      const proposal = request.messages.findLast((message) => message.getType() === "ai");
      const action = atModelNode(policy, thread, proposal && failures.get(proposal));
      if (action?.kind === "halt") return action.message;
      if (action?.kind === "defer" && loadTrusted)
        return writeTrusted(
          policy,
          thread,
          keys.thread,
          await loadTrusted(),
          request as never,
          handler as never,
        );
      const response = await handler(request);
      toolsOf.set(response, request.tools as readonly object[]);
      return response;
    },

    wrapToolCall: async (given, handler) => {
      const request = withMessages(given);
      const run = handler as never;
      const concerned = asking.concerns(request);
      if (concerned && asking.isOver(request, stepOf(request))) return new Command({ update: {} });
      // A person may have edited a call into one of a tool that is not listed.
      const isGuarded =
        ruleFor(policy, request) !== undefined ||
        (concerned && stepOf(request).isApproved(request.toolCall.id));
      const { result, operation } = isGuarded
        ? await new CallRunner(host, stepOf(request).enter(request)).runGuarded(run)
        : await new CallRunner(host, request).runUnlisted(run);
      const updates = new Map<string, unknown>();
      if (operation) updates.set(keys.thread, operation);
      if (!result) return new Command({ update: Object.fromEntries(updates) });
      const { toolCall, state } = request;
      // Not of this very step: an approval is for the start that is under way.
      const { turn, limitStatus } = threadOf(state, keys);
      const truth = { [keys.thread]: { turn, limitStatus }, [keys.input]: state[keys.input] ?? NO_INPUT };
      const told = tagToolAuthored(stripKeys(result, privateKeys, truth), toolCall.name, state.messages);
      return addUpdates(await asking.keepWaiting(told, request, stepOf), updates);
    },
  });
  // The private channels are nobody's business: the agent's own state type stays as it is.
  return middleware as unknown as AgentMiddleware<undefined, undefined, unknown, readonly [], readonly []>;
}

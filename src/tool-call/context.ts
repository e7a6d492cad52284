import type { AIMessage } from "@langchain/core/messages";
import type { StepContext } from "../guard/evaluate.js";
import { type StateKeys, threadOf } from "../limits/state.js";
import type { Policy } from "../resolve-options.js";
import { buildTranscript } from "../transcript/build.js";
import { langchainSource } from "../transcript/langchain.js";
import { NO_INPUT, type RunInputState, readRunInput } from "../transcript/user-input.js";
import type { Request } from "./request.js";

/** The parts of a host's request, or of a hook's arguments, that a judgment reads. */
export type Surroundings = Pick<Request, "state" | "runtime">;

/** The conversation as the classifier reads it, without the calls of `message` that are being judged. */
export function readTranscript(
  policy: Policy,
  keys: StateKeys,
  state: Request["state"],
  message: AIMessage | undefined,
  judged: ReadonlySet<number>,
) {
  const { view, author } = policy;
  const input = ((state as Record<string, unknown>)[keys.input] as RunInputState | undefined) ?? NO_INPUT;
  const source = langchainSource(state.messages, {
    delegationTools: view.delegationTools,
    author,
    ...readRunInput(state.messages, input),
    approverDecisions: threadOf(state, keys).approverDecisions ?? [],
    isJudged: (candidate, index) => candidate === message && judged.has(index),
  });
  return buildTranscript(source, view);
}

/** Shows the decision sequence the world around a step of an agent. */
export function stepContext(
  policy: Policy,
  keys: StateKeys,
  { state, runtime }: Surroundings,
  message: AIMessage | undefined,
): StepContext {
  const { environment, precheck } = policy;
  return {
    messageId: message?.id ?? "",
    thread: threadOf(state, keys),
    signal: runtime?.signal,
    transcript: (judged) => readTranscript(policy, keys, state, message, judged),
    ...(environment === undefined
      ? {}
      : { environment: () => (typeof environment === "function" ? environment(runtime) : environment) }),
    ...(precheck === undefined
      ? {}
      : {
          precheck: (call, { tool }) => precheck(call, { tool: tool as Request["tool"], state, runtime }),
        }),
  };
}

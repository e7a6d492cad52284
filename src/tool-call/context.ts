import type { AIMessage } from "@langchain/core/messages";
import type { StepCall, StepContext } from "../guard/evaluate.js";
import type { LimitStatus } from "../limits/counters.js";
import type { Approval } from "../limits/state.js";
import type { Policy } from "../resolve-options.js";
import { NO_INPUT, type RunInputState, readRunInput } from "../transcript/user-input.js";
import type { Request } from "./request.js";
import { langchainSource } from "../transcript/from-langchain.js";
import { buildTranscript } from "../transcript/build-transcript.js";
import type { SeenHistories } from "../transcript/seen-history.js";

/** Keys of the two private channels. */
export interface StateKeys {
  readonly thread: string;
  readonly input: string;
}

/** What a step knows of itself. */
export interface StepFacts {
  readonly message: AIMessage | undefined;
  readonly limitStatus: LimitStatus;
  readonly approvals: readonly Approval[];
  readonly trusted: boolean;
  /** The tool object with which a call entered. */
  readonly toolOf: (call: StepCall) => Request["tool"];
  /** What is known of threads from their earlier steps. */
  readonly histories?: SeenHistories;
}

/** Shows the decision sequence the world around a step of an agent. */
export function stepContext(
  policy: Policy,
  keys: StateKeys,
  request: Request,
  { message, toolOf, histories, ...facts }: StepFacts,
): StepContext {
  const { state, runtime } = request;
  const { environment, precheck, view, author } = policy;
  return {
    ...facts,
    messageId: message?.id ?? "",
    signal: runtime?.signal,
    transcript: (judged) => {
      const input = (state[keys.input] as RunInputState | undefined) ?? NO_INPUT;
      const seen = histories?.of(state.messages);
      const source = langchainSource(state.messages, {
        delegationTools: view.delegationTools,
        author,
        ...readRunInput(state.messages, input, seen),
        ...(seen ? { seen } : {}),
        isJudged: (candidate, index) => candidate === message && judged.has(index),
      });
      return buildTranscript(source, view);
    },
    ...(environment === undefined
      ? {}
      : { environment: () => (typeof environment === "function" ? environment(runtime) : environment) }),
    ...(precheck === undefined
      ? {}
      : {
          precheck: (call, of) => {
            const tool = toolOf(of);
            // Of a call that was changed on its way the tool is not at hand, only the one it had before.
            return precheck(call, { tool: tool?.name === call.name ? tool : undefined, state, runtime });
          },
        }),
  };
}

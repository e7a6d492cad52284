import { interrupt } from "@langchain/langgraph";
import { ConfigurationError } from "../errors.js";
import type { AskFallback } from "../limits/fallbacks.js";
import { type HumanDecision, readDecisions } from "./decisions.js";
import type { ShownCall } from "./pending.js";

// The host's own key for it; the public runtime does not tell.
const CHECKPOINTER = "__pregel_checkpointer";

function question(shown: readonly ShownCall[], fallback: AskFallback) {
  return {
    actionRequests: shown.map(({ name, args }) => ({
      name,
      args,
      description:
        fallback.description ?? `Auto mode did not allow this call of ${name}. It waits for your decision.`,
    })),
    reviewConfigs: shown.map(({ name }) => ({
      actionName: name,
      allowedDecisions: [...fallback.allowedDecisions],
    })),
  };
}

/**
 * Asks a person about all waiting calls of a step, in the shapes of LangChain's human-in-the-loop
 * middleware, until the answer fits. Each further question is an interrupt of its own in the same node.
 *
 * @throws ConfigurationError without a checkpointer, since nothing could go on later.
 */
export function askPerson(
  shown: readonly ShownCall[],
  fallback: AskFallback,
  configurable: Readonly<Record<string, unknown>> | undefined,
): HumanDecision[] {
  if (!configurable?.[CHECKPOINTER])
    throw new ConfigurationError(
      "checkpointer",
      "is missing; expected one, since asking a person pauses the run: createAgent({ checkpointer: new MemorySaver(), ... })",
    );
  for (;;) {
    const answer: unknown = interrupt(question(shown, fallback));
    const decisions = readDecisions(answer, shown.length, fallback.allowedDecisions);
    if (decisions) return decisions;
  }
}

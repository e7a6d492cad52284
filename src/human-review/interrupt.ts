import { interrupt } from "@langchain/langgraph";
import { ConfigurationError } from "../errors.js";
import { type FrozenJson, freezeJson } from "../json.js";
import type { AllowedDecision, AskFallback } from "../limits/fallbacks.js";
import type { WaitingCall } from "../limits/state.js";
import { LIMIT_TEXT, UNAVAILABLE_TEXT } from "../guard/feedback.js";
import type { ShownCall } from "./pending.js";

/** One decision of a person. */
export type HumanDecision =
  | { readonly type: "approve" }
  | { readonly type: "edit"; readonly name: string; readonly frozen: FrozenJson }
  | { readonly type: "reject"; readonly message?: string };

// The host's own key for it; the public runtime does not tell.
const CHECKPOINTER = "__pregel_checkpointer";

/** What happened, in one sentence. */
function outcomeOf({ name, cause }: WaitingCall): string {
  switch (cause.kind) {
    case "ask_band":
      return `The call to ${name} needs your approval: from a risk of ${cause.askAt} on a person decides.`;
    case "precheck":
      return `The call to ${name} needs your approval: a fixed rule of the operator asks for it.`;
    case "limit":
      return `Auto mode blocked the call to ${name} and asks you, because ${LIMIT_TEXT[cause.limit]}.`;
    case "unavailable":
      return `The call to ${name} could not be checked: ${UNAVAILABLE_TEXT[cause.reason]}. It waits for your decision.`;
  }
}

/**
 * What a person reads about a waiting call: what happened, the risk, and what the classifier said, as a
 * quoted line that is marked as the classifier's.
 *
 * @param description the operator's own text in place of the first sentence
 */
export function describeWaiting(waiting: WaitingCall, description?: string): string {
  const { risk, threshold, remark } = waiting;
  const parts = [description ?? outcomeOf(waiting)];
  if (risk !== undefined) parts.push(`Risk: ${Number(risk.toFixed(3))} (blocked from ${threshold} on).`);
  if (remark !== undefined) parts.push(`The classifier says: ${JSON.stringify(remark)}`);
  return parts.join("\n");
}

function question(shown: readonly ShownCall[], { allowedDecisions, description }: AskFallback) {
  return {
    actionRequests: shown.map((call) => ({
      name: call.name,
      args: call.args,
      description: describeWaiting(call, description),
    })),
    reviewConfigs: shown.map(({ name }) => ({
      actionName: name,
      allowedDecisions: [...allowedDecisions],
    })),
  };
}

/** Reads one decision in the shape of LangChain's human-in-the-loop middleware. */
function readDecision(value: unknown, allowed: readonly AllowedDecision[]): HumanDecision | undefined {
  if (typeof value !== "object" || value === null || !("type" in value)) return undefined;
  if (!allowed.includes(value.type as AllowedDecision)) return undefined;
  switch (value.type) {
    case "approve":
      return { type: "approve" };
    case "reject": {
      const message = "message" in value ? value.message : undefined;
      if (message === undefined || message === null) return { type: "reject" };
      return typeof message === "string" ? { type: "reject", message } : undefined;
    }
    default: {
      const action = "editedAction" in value ? value.editedAction : undefined;
      if (typeof action !== "object" || action === null || !("name" in action) || !("args" in action))
        return undefined;
      const frozen = freezeJson(action.args);
      if (typeof action.name !== "string" || action.name === "" || !frozen) return undefined;
      return { type: "edit", name: action.name, frozen };
    }
  }
}

/**
 * Reads a person's answer: one allowed decision for each waiting call, in their order. `undefined` if it
 * is anything else, in which case the person is asked again: a thrown error would come back for ever.
 */
export function readDecisions(
  answer: unknown,
  count: number,
  allowed: readonly AllowedDecision[],
): HumanDecision[] | undefined {
  if (typeof answer !== "object" || answer === null || !("decisions" in answer)) return undefined;
  if (!Array.isArray(answer.decisions) || answer.decisions.length !== count) return undefined;
  const decisions = answer.decisions.map((decision: unknown) => readDecision(decision, allowed));
  return decisions.every((decision) => decision !== undefined) ? decisions : undefined;
}

/**
 * Asks a person about all waiting calls of a step, in the shapes of LangChain's human-in-the-loop
 * middleware, until the answer fits. Each further question is an interrupt of its own in the same node.
 *
 * @throws {ConfigurationError} without a checkpointer, since nothing could go on later.
 */
export function askPerson(
  shown: readonly ShownCall[],
  settings: AskFallback,
  configurable: Readonly<Record<string, unknown>> | undefined,
): HumanDecision[] {
  if (!configurable?.[CHECKPOINTER])
    throw new ConfigurationError(
      "checkpointer",
      "is missing; expected one, since asking a person pauses the run: createAgent({ checkpointer: new MemorySaver(), ... })",
    );
  for (;;) {
    const answer: unknown = interrupt(question(shown, settings));
    const decisions = readDecisions(answer, shown.length, settings.allowedDecisions);
    if (decisions) return decisions;
  }
}

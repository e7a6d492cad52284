import type { AllowedDecision } from "../limits/fallbacks.js";
import { type FrozenJson, freezeJson } from "../json.js";

/** One decision of a person. */
export type HumanDecision =
  | { readonly type: "approve" }
  | { readonly type: "edit"; readonly name: string; readonly snapshot: FrozenJson }
  | { readonly type: "reject"; readonly message?: string };

/** Reads one in the shape of LangChain's human-in-the-loop middleware. */
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
      const snapshot = freezeJson(action.args);
      if (typeof action.name !== "string" || action.name === "" || !snapshot) return undefined;
      return { type: "edit", name: action.name, snapshot };
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

import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import type { ToolCallRequest } from "langchain";
import { freezeJson } from "../json.js";
import type { Malformation } from "../guard/feedback.js";
import type { StepCall } from "../guard/evaluate.js";
import type { ToolRule } from "../options.js";
import type { Policy } from "../resolve-options.js";

/** A call on its way to its tool, as the host hands it over. */
export type Request = ToolCallRequest;

/** The part of it that says which tool would run with what. */
export type Proposed = Pick<Request, "tool" | "toolCall">;

/** The message that proposed the calls of the current step; or, with `before`, of the one before it. */
export function lastAiMessage(
  messages: readonly BaseMessage[],
  before = messages.length,
): { message: AIMessage; position: number } | undefined {
  let position = before - 1;
  while (position >= 0 && messages[position]?.getType() !== "ai") position -= 1;
  return position < 0 ? undefined : { message: messages[position] as AIMessage, position };
}

function describe(tool: unknown): { name?: unknown; description?: unknown } {
  return typeof tool === "object" && tool !== null ? tool : {};
}

/** The name of what would run: the tool object decides, where there is one. */
export function executingName({ tool, toolCall }: Proposed): string {
  const { name } = describe(tool);
  return typeof name === "string" && name !== "" ? name : toolCall.name;
}

/** The rule for a call: of its tool object or of its name, either one guards. */
export function ruleFor(policy: Policy, proposed: Proposed): ToolRule | undefined {
  return policy.rules.get(executingName(proposed)) ?? policy.rules.get(proposed.toolCall.name);
}

/** What is wrong with a call's id, if anything. */
function idProblem(id: string | undefined, message: AIMessage | undefined): Malformation | undefined {
  if (!id) return "no_id";
  const same = message?.tool_calls?.filter((call) => call.id === id) ?? [];
  return same.length > 1 ? "duplicate_id" : undefined;
}

/** Whether what would run is what stands in the message, and so what a person would be shown. */
export function isAsProposed(proposed: Proposed, inMessage: { name: string; args: unknown }): boolean {
  return (
    executingName(proposed) === inMessage.name &&
    freezeJson(proposed.toolCall.args)?.json === freezeJson(inMessage.args)?.json
  );
}

/** What is known of a call beside the request itself. */
export interface CallFacts {
  readonly index: number;
  /** The message that proposed it. */
  readonly message: AIMessage | undefined;
  /** The tools that the model was given: they describe a call whose tool object is not at hand. */
  readonly tools: readonly unknown[];
  readonly canWait: boolean;
  /** For a call that was changed on its way: what would run instead. */
  readonly changed?: { readonly name: string; readonly args: unknown };
}

/** Describes a guarded call for the decision sequence. */
export function toStepCall(policy: Policy, proposed: Proposed, facts: CallFacts): StepCall {
  const { tool, toolCall } = proposed;
  const name = facts.changed?.name ?? executingName(proposed);
  const atHand = describe(tool).name === name ? tool : undefined;
  const given = atHand ?? facts.tools.find((candidate) => describe(candidate).name === name);
  const { description } = describe(given);
  return {
    index: facts.index,
    id: toolCall.id ?? "",
    name,
    // An approved call may be one that the person edited into a tool without a rule: it needs none.
    rule: policy.rules.get(name) ?? policy.rules.get(toolCall.name) ?? policy.general,
    args: facts.changed ? facts.changed.args : toolCall.args,
    description: typeof description === "string" ? description : undefined,
    malformation: idProblem(toolCall.id, facts.message),
    canWait: facts.canWait,
  };
}

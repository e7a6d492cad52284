import type { ToolCallRequest } from "langchain";
import type { StepCall } from "../guard/evaluate.js";
import type { Malformation } from "../guard/feedback.js";
import type { FrozenJson } from "../json.js";
import type { ToolRule } from "../options.js";
import type { Policy } from "../resolve-options.js";

/** A call on its way to its tool, as the host hands it over. */
export type Request = ToolCallRequest;

/** The part of it that says which tool would run with what. */
export type Proposed = Pick<Request, "tool" | "toolCall">;

function describe(tool: unknown): { name?: unknown; description?: unknown } {
  return typeof tool === "object" && tool !== null ? tool : {};
}

/** The name of what would run: the tool object decides, where there is one. */
export function executingName({ tool, toolCall }: Proposed): string {
  const { name } = describe(tool);
  return typeof name === "string" && name !== "" ? name : toolCall.name;
}

/** The settings for a call, by the tool object or by its name: either one guards. */
export function ruleFor(policy: Policy, proposed: Proposed): ToolRule | undefined {
  const { tool, toolCall } = proposed;
  return policy.selection.ruleFor({ names: [executingName(proposed), toolCall.name], tool });
}

/** What is known of a call in addition to the request itself. */
export interface CallFacts {
  readonly index: number;
  /** What would run: the name and the arguments, which a middleware may have changed. */
  readonly name: string;
  readonly frozen: FrozenJson | undefined;
  readonly malformation: Malformation | undefined;
  /** The tools that the model was given: they describe a call whose tool object is not at hand. */
  readonly tools: readonly unknown[];
  readonly canWait: boolean;
}

/** Describes a guarded call for the decision sequence. */
export function toStepCall(policy: Policy, { tool, toolCall }: Proposed, facts: CallFacts): StepCall {
  const { name, tools, ...others } = facts;
  const atHand = describe(tool).name === name ? tool : undefined;
  const known = atHand ?? tools.find((candidate) => describe(candidate).name === name);
  const { description } = describe(known);
  return {
    ...others,
    id: toolCall.id ?? "",
    name,
    tool: typeof known === "object" && known !== null ? known : undefined,
    // An approved call may be one that the person edited into a tool without settings: it needs none.
    rule: policy.selection.ruleFor({ names: [name, toolCall.name], tool }) ?? policy.general,
    description: typeof description === "string" ? description : undefined,
  };
}

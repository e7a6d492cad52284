import { ApiError } from "./api-error.js";
import type { MessagesRequest } from "./messages-request.js";

/** A tool as `bindTools` of every provider's package takes it. */
export interface BoundTool {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description?: string; readonly parameters: object };
}

/** The tools of a request, and which of them the model may or must call. */
export interface ToolUse {
  readonly tools: readonly BoundTool[];
  /** `"auto"`, `"any"`, `"none"` or a tool's name. */
  readonly toolChoice: string | undefined;
  /** How many calls the reply may hold. No provider's package is relied on to keep to it. */
  readonly maxCalls: number;
}

/**
 * Translates the tools of a request. All deferred tools are given from the start, so Anthropic's tool search has
 * nothing left to find and is dropped.
 *
 * @throws {ApiError} with status 400 for a tool that is Anthropic's own, and for a choice of a tool that is not there.
 */
export function toolsToLangChain(request: Pick<MessagesRequest, "tools" | "tool_choice">): ToolUse {
  const tools = (request.tools ?? []).flatMap((tool, index): BoundTool[] => {
    const { type, name, description, input_schema } = tool;
    if (type?.startsWith("tool_search_tool_")) return [];
    if (type !== undefined && type !== null && type !== "custom")
      throw new ApiError(
        400,
        `tools[${index}]: a tool of this type is Anthropic's own; this model cannot have it`,
      );
    if (!input_schema) throw new ApiError(400, `tools[${index}].input_schema: expected an object`);
    const { $schema: _, ...parameters } = input_schema;
    return [{ type: "function", function: { name, ...(description ? { description } : {}), parameters } }];
  });
  const choice = request.tool_choice;
  if (!choice || tools.length === 0) return { tools, toolChoice: undefined, maxCalls: Infinity };
  if (choice.type === "none") return { tools, toolChoice: "none", maxCalls: 0 };
  const maxCalls = choice.disable_parallel_tool_use === true ? 1 : Infinity;
  if (choice.type !== "tool") return { tools, toolChoice: choice.type, maxCalls };
  if (!tools.some((tool) => tool.function.name === choice.name))
    throw new ApiError(400, "tool_choice.name: there is no tool with this name");
  return { tools, toolChoice: choice.name, maxCalls };
}

import { AIMessage } from "@langchain/core/messages";
import type { JsonObject } from "../json.js";

/** A call after a person edited it, or after it needed a fresh id. */
export interface RewrittenCall {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  readonly args: JsonObject;
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;

/** Providers send these back as they are, so that they would tell the model another call than the one that ran. */
function rewriteBlock(block: unknown, byId: ReadonlyMap<string, RewrittenCall>): unknown {
  if (!isFields(block)) return block;
  // An item of a response has an id of its own, other than its call's.
  const call = byId.get((block.call_id ?? block.id) as string);
  if (!call) return block;
  if (block.type === "tool_use") return { ...block, id: call.id, name: call.name, input: call.args };
  if (block.type === "tool_call") return { ...block, id: call.id, name: call.name, args: call.args };
  if (block.type === "function_call")
    return { ...block, call_id: call.id, name: call.name, arguments: JSON.stringify(call.args) };
  return block;
}

function rewriteFunction(item: unknown, byId: ReadonlyMap<string, RewrittenCall>): unknown {
  const call = isFields(item) ? byId.get(item.id as string) : undefined;
  if (!call || !isFields(item)) return item;
  return {
    ...item,
    id: call.id,
    function: { ...(item.function as Fields), name: call.name, arguments: JSON.stringify(call.args) },
  };
}

// Where an OpenAI model keeps the ids of the items that hold its calls.
const ITEM_IDS = "__openai_function_call_ids__";

function rewriteKwargs(kwargs: Fields, byId: ReadonlyMap<string, RewrittenCall>): Fields {
  const { tool_calls: toolCalls, [ITEM_IDS]: itemIds } = kwargs;
  return {
    ...kwargs,
    ...(Array.isArray(toolCalls)
      ? { tool_calls: toolCalls.map((item: unknown) => rewriteFunction(item, byId)) }
      : {}),
    ...(isFields(itemIds)
      ? {
          [ITEM_IDS]: Object.fromEntries(
            Object.entries(itemIds).map(([id, item]) => [byId.get(id)?.id ?? id, item]),
          ),
        }
      : {}),
  };
}

/** A list of whatever, with the calls in it rewritten. */
const rewriteBlocks = (list: readonly unknown[], byId: ReadonlyMap<string, RewrittenCall>): unknown[] =>
  list.map((block) => rewriteBlock(block, byId));

/** The proposal under its own id, with some of its calls rewritten wherever a provider reads them. */
export function rewriteProposal(proposal: AIMessage, calls: readonly RewrittenCall[]): AIMessage {
  const toolCalls = [...(proposal.tool_calls ?? [])];
  const byId = new Map<string, RewrittenCall>();
  for (const call of calls) {
    const old = toolCalls[call.index];
    if (!old) continue;
    if (old.id) byId.set(old.id, call);
    toolCalls[call.index] = { ...old, id: call.id, name: call.name, args: call.args };
  }
  const metadata = proposal.response_metadata as Fields;
  return new AIMessage({
    ...(proposal.id === undefined ? {} : { id: proposal.id }),
    ...(proposal.name === undefined ? {} : { name: proposal.name }),
    content: (Array.isArray(proposal.content)
      ? rewriteBlocks(proposal.content, byId)
      : proposal.content) as AIMessage["content"],
    tool_calls: toolCalls,
    invalid_tool_calls: proposal.invalid_tool_calls ?? [],
    additional_kwargs: rewriteKwargs(proposal.additional_kwargs, byId),
    response_metadata: {
      ...metadata,
      // An OpenAI model sends the items of its response back as they came.
      ...(Array.isArray(metadata.output) ? { output: rewriteBlocks(metadata.output, byId) } : {}),
    },
    ...(proposal.usage_metadata ? { usage_metadata: proposal.usage_metadata } : {}),
  });
}

import { ToolMessage } from "@langchain/core/messages";
import { type AgentMiddleware, type ToolCallRequest, createMiddleware } from "langchain";

type Wrap = NonNullable<AgentMiddleware["wrapToolCall"]>;
type Handler = Parameters<Wrap>[1];
export type Request = ToolCallRequest;

/** A middleware that does something to calls on their way to the tool. */
export function onToolCall(
  change: (request: Request, handler: Handler) => ReturnType<Wrap>,
  name = "between",
): AgentMiddleware {
  return createMiddleware({
    name,
    wrapToolCall: (request, handler) => change(request as unknown as Request, handler as Handler),
  });
}

/** Replaces the arguments of calls of one tool. */
export const replacingArgs = (args: Record<string, unknown>, tool = "delete_file"): AgentMiddleware =>
  onToolCall((request, handler) =>
    request.toolCall.name === tool
      ? handler({ ...request, toolCall: { ...request.toolCall, args } })
      : handler(request),
  );

/** A result in the place of the tool's. */
export const answerFrom = ({ toolCall }: Request, content: string): ToolMessage =>
  new ToolMessage({ content, tool_call_id: toolCall.id ?? "", name: toolCall.name });

import type { Entry } from "../transcript/entries.js";
import { buildTranscript } from "../transcript/build.js";
import { fromAnthropic } from "../transcript/from-anthropic.js";
import type { MonitorView } from "../transcript/view.js";
import { isLoose, type Loose } from "./protocol.js";
import type { Reply } from "./reply.js";
import { inputOf } from "./reply-calls.js";

/** A request's conversation, for judging the reply to it. */
export interface Conversation {
  /** What the classifier reads: the request's messages, and what the model's service did within the reply. */
  transcript(reply: Reply, view: MonitorView): Entry[];
  /** The description that the agent was given of a tool. */
  descriptionOf(toolName: string): string | undefined;
}

/** Reads a conversation out of a request's body and the session's settings, which may hold anything. */
export function createConversation(body: Loose, context: unknown, author: "user" | "agent"): Conversation {
  const messages: unknown[] = Array.isArray(body["messages"]) ? body["messages"] : [];
  const tools: unknown[] = Array.isArray(body["tools"]) ? body["tools"] : [];
  const refused: unknown = isLoose(context) ? context["refused_calls"] : undefined;
  const refusedCalls = new Set<unknown>(Array.isArray(refused) ? refused : []);
  return {
    transcript(reply, view) {
      const content = reply.blocks
        // The client's calls are what is judged; the rest has happened already.
        .filter(({ start }) => start["type"] !== "tool_use" && start["type"] !== "text")
        .map((block) => ({ ...block.start, ...("input" in block.start ? { input: inputOf(block) } : {}) }));
      const { delegationTools } = view;
      return buildTranscript(
        fromAnthropic([...messages, { role: "assistant", content }], {
          delegationTools,
          refusedCalls,
          author,
        }),
        view,
      );
    },
    descriptionOf(toolName) {
      const tool = tools.find((candidate) => isLoose(candidate) && candidate["name"] === toolName);
      const description = isLoose(tool) ? tool["description"] : undefined;
      return typeof description === "string" ? description : undefined;
    },
  };
}

/** What became of each judged call of a run, in plain words. */
import { type AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { DecisionRecord } from "langchain-auto-mode";

/** What an example collects of a run. */
export interface Run {
  readonly records: readonly DecisionRecord[];
  readonly messages: readonly BaseMessage[];
  /** What a person was asked, by the id of the call. */
  readonly questions?: ReadonlyMap<string, string>;
}

/** What became of one call. */
export interface ShownCall {
  readonly tone: "good" | "asked" | "bad";
  /** One word for each decision: `allowed`, `waits for a person → approved`, `blocked`. */
  readonly verdict: string;
  readonly risk: number | undefined;
  /** The tool, and the file or address it was aimed at. */
  readonly call: string;
  /** Who read what about it. */
  readonly notes: readonly { readonly who: string; readonly text: string }[];
}

// A record holds no arguments; the messages of the run do.
function nameCall({ messageId, toolCallId, toolName }: DecisionRecord, messages: Run["messages"]): string {
  const proposal = messages.find(({ id }) => id === messageId) as AIMessage | undefined;
  const args = proposal?.tool_calls?.find(({ id }) => id === toolCallId)?.args ?? {};
  return `${toolName} ${String(args.path ?? args.url ?? "")}`.trim();
}

/** The calls of a run in the order in which they were judged. A call that waited also shows what it came to. */
export function describeRun({ records, messages, questions }: Run): ShownCall[] {
  const ids = [...new Set(records.map(({ toolCallId }) => toolCallId))];
  return ids.flatMap((id) => {
    const decisions = records.filter(({ toolCallId }) => toolCallId === id);
    const [first] = decisions;
    if (!first) return [];
    const outcomes = decisions.map(({ outcome }) => outcome);
    const ran = outcomes.includes("allowed") || outcomes.includes("approved");
    const question = questions?.get(id);
    const answer = messages.find((message) => ToolMessage.isInstance(message) && message.tool_call_id === id);
    return {
      tone: outcomes.includes("waiting") ? "asked" : ran ? "good" : "bad",
      verdict: outcomes.join(" → ").replace("waiting", "waits for a person"),
      risk: first.risk,
      call: nameCall(first, messages),
      notes: [
        ...(question ? [{ who: "person reads", text: question }] : []),
        ...(answer ? [{ who: ran ? "tool says" : "agent reads", text: answer.text }] : []),
      ],
    };
  });
}

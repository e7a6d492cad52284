import type { AIMessage, BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { DecisionRecord } from "langchain-auto-mode";

// A record holds no arguments; the messages of the run do.
function describeCall(record: DecisionRecord, messages: readonly BaseMessage[]): string {
  const proposal = messages.find((message) => message.id === record.messageId) as AIMessage | undefined;
  const args = proposal?.tool_calls?.find(({ id }) => id === record.toolCallId)?.args ?? {};
  const target = String(args.path ?? args.url ?? "");
  return `${record.toolName} ${target.length > 40 ? `${target.slice(0, 39)}…` : target}`;
}

/** What the agent was told. It stands in its error message, as records hold no words of the classifier. */
function describeReason(record: DecisionRecord, messages: readonly BaseMessage[], prefix: string): string {
  if (record.outcome !== "blocked") return record.reason ?? record.unavailableReason ?? "";
  const answer = messages.find((message) => (message as ToolMessage).tool_call_id === record.toolCallId);
  return answer?.text.replace(prefix, "") ?? "";
}

const REASON_WIDTH = 62;

/** Breaks a text between words, so that the table stays on the screen. */
function wrap(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1) as string;
    if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}

/** A table of decisions: call, risk, the bar at which it is blocked, verdict, reason. */
export function formatDecisions(
  records: readonly DecisionRecord[],
  messages: readonly BaseMessage[],
  prefix: string,
): string {
  const rows = records.flatMap((record) => {
    const [reason, ...more] = wrap(describeReason(record, messages, prefix), REASON_WIDTH);
    const first = [
      describeCall(record, messages),
      record.risk === undefined ? "-" : record.risk.toFixed(2),
      String(record.threshold),
      record.outcome,
      reason ?? "",
    ];
    return [first, ...more.map((line) => ["", "", "", "", line])];
  });
  const header = ["call", "risk", "bar", "verdict", "reason"];
  const table = [header, ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  const line = (row: string[]): string =>
    `  ${row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd()}`;
  const rule = `  ${widths
    .map((width) => "─".repeat(width))
    .join("  ")
    .trimEnd()}`;
  return [line(header), rule, ...rows.map(line)].join("\n");
}

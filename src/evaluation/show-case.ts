import type { Entry } from "../transcript/entries.js";
import { toDisplayJson } from "../transcript/json.js";
import type { EvaluationCase } from "./read-cases.js";
import { visible } from "./visible.js";

const RECENT = 12;
const LONGEST = 600;

/**
 * A case as a person reads it: the user's words, what happened last, and the proposed call. Every line of content
 * begins with a bar, so that no text can pose as a heading; what would command the terminal is shown as an escape.
 * What the classifier said is not in it: it would lead the person.
 */
export function showCase({ tool, args, description, transcript, environment }: EvaluationCase): string {
  const entries = transcript?.({ channels: ["user", "toolCalls", "subagentReports", "toolResults"] }) ?? [];
  const said = entries.filter(({ from }) => from === "user" || from === "delegator");
  const last = entries.filter((entry) => !said.includes(entry)).slice(-RECENT);
  const call = args === undefined ? "(malformed)" : JSON.stringify(toDisplayJson(args), undefined, 2);
  return [
    section("The user said", said.map(textOf)),
    section("What happened before", last.map(textOf)),
    environment === undefined ? "" : section("Environment", [JSON.stringify(toDisplayJson(environment))]),
    section("Proposed call", [`${tool}${description ? ` (${cut(description)})` : ""}`, call]),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** What the classifier said of a case, if it is recorded. */
export function showAnswer({ answer, decision }: EvaluationCase): string | undefined {
  if (decision === undefined) return undefined;
  const threshold = decision.threshold === undefined ? "" : ` (threshold ${decision.threshold})`;
  const outcome = visible(decision.outcome);
  if (answer?.risk !== undefined)
    return `The judge gave ${answer.risk.toFixed(2)}; the call was ${outcome}${threshold}.`;
  if (answer?.unavailable !== undefined) return `The judge gave no answer (${answer.unavailable}).`;
  return `The judge was not asked; the call was ${outcome}.`;
}

function section(title: string, texts: readonly string[]): string {
  if (texts.length === 0) return `${title}\n  | (nothing)`;
  const lines = texts.flatMap((text) => visible(text).split("\n"));
  return [title, ...lines.map((line) => `  | ${line}`)].join("\n");
}

function textOf(entry: Entry): string {
  switch (entry.from) {
    case "user":
      return entry.text;
    case "omitted":
      return `(${entry.count} messages are left out)`;
    case "no_user_message":
      return "(no message of the user)";
    case "tool_call":
    case "server_tool_call":
      return cut(`called ${entry.name} ${JSON.stringify(entry.args)}`);
    default: {
      const { from, text } = entry;
      const name = "name" in entry ? ` of ${entry.name}` : "";
      return cut(`${from}${name}: ${text}`);
    }
  }
}

function cut(text: string): string {
  return text.length <= LONGEST
    ? text
    : `${text.slice(0, LONGEST)} … (${text.length - LONGEST} more characters)`;
}

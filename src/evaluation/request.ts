import type { ClassifierRequest } from "@langchain/core/decisions";
import { buildRequest, DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "../guard/question.js";
import { renderTranscript } from "../transcript/render.js";
import { toDisplayJson } from "../transcript/json.js";
import type { MonitorView } from "../transcript/view.js";
import type { Case } from "./cases.js";
import { type EvaluationCase, fromMade } from "./read-cases.js";

/** What a classifier is sent for a case, through the guard's own view and question. `undefined`: the case holds too little. */
export function requestFor(
  { tool, args, description, environment, transcript }: EvaluationCase,
  view: Partial<MonitorView> = {},
): ClassifierRequest | undefined {
  if (args === undefined || transcript === undefined) return undefined;
  const question = { instructions: DEFAULT_INSTRUCTIONS, criteria: DEFAULT_CRITERIA };
  return buildRequest([{ name: tool, args, description, ...question }], {
    transcript: transcript(view),
    environment,
  });
}

/** The same for a case that is put together by hand. */
export function requestOf(labeled: Case, view: Partial<MonitorView> = {}): ClassifierRequest {
  const request = requestFor(fromMade({ ...labeled, label: labeled.label === "risky" }), view);
  if (request === undefined) throw new Error("The case holds no call.");
  return request;
}

/** The same for a person. `undefined`: the case holds no conversation. */
export function readable(
  { tool, args, description, transcript }: EvaluationCase,
  view: Partial<MonitorView> = {},
): string | undefined {
  if (transcript === undefined) return undefined;
  return [
    renderTranscript(transcript(view)),
    `Proposed call: ${tool}\n${args === undefined ? "(malformed)" : JSON.stringify(toDisplayJson(args), undefined, 2)}`,
    `Description: ${description ?? "none"}`,
  ].join("\n\n");
}

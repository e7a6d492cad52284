import type { ClassifierRequest } from "@langchain/core/decisions";
import { buildRequest, DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "../guard/question.js";
import { renderTranscript } from "../transcript/render.js";
import type { MonitorView } from "../transcript/view.js";
import { viewTranscript } from "../transcript/view-transcript.js";
import { type Case, descriptionOf, messagesOf } from "./cases.js";

/** What a classifier is sent for one case, through the guard's own view and question. */
export function requestOf(labelled: Case, view: Partial<MonitorView> = {}): ClassifierRequest {
  const transcript = viewTranscript(messagesOf(labelled), view);
  const { name, args } = labelled.call;
  const call = {
    name,
    args,
    description: descriptionOf(labelled),
    instructions: DEFAULT_INSTRUCTIONS,
    criteria: DEFAULT_CRITERIA,
  };
  return buildRequest([call], { transcript });
}

/** The same for a person. */
export function readable(labelled: Case, view: Partial<MonitorView> = {}): string {
  const { name, args } = labelled.call;
  return [
    renderTranscript(viewTranscript(messagesOf(labelled), view)),
    `Proposed call: ${name}\n${JSON.stringify(args, undefined, 2)}`,
    `Description: ${descriptionOf(labelled) ?? "none"}`,
  ].join("\n\n");
}

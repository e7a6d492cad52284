import type { ClassifierRequest } from "@langchain/core/decisions";
import type { MonitorView } from "../../src/transcript/view.js";
import { viewTranscript } from "../../src/transcript/view-transcript.js";
import type { Entry } from "../../src/transcript/channels.js";
import { buildRequest, DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "../../src/question.js";
import { type Case, descriptionOf, messagesOf } from "./cases.js";

/** What a classifier is sent for one case, through the guard's own view and question. */
export function requestOf(
  labelled: Case,
  view: Partial<MonitorView> = {},
): { request: ClassifierRequest; transcript: readonly Entry[] } {
  const transcript = viewTranscript(messagesOf(labelled), view);
  const { name, args } = labelled.call;
  const call = {
    name,
    args,
    description: descriptionOf(labelled),
    instructions: DEFAULT_INSTRUCTIONS,
    criteria: DEFAULT_CRITERIA,
  };
  return { request: buildRequest([call], { transcript }), transcript };
}

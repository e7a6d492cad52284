import type { Question, State } from "@langchain/core/decisions";
import type { JsonObject } from "../json.js";
import type { Entry } from "../transcript/entries.js";

/** A proposed call as the classifier was shown it. */
export interface JudgedCall {
  /** Its key in the request: `call_1`, `call_2`, … */
  key: string;
  name: string;
  args: JsonObject;
  description?: string;
}

/** One recorded request. */
export interface RecordedRequest {
  /** The calls it was about, in order. */
  calls: JudgedCall[];
  /** What of the conversation it showed. */
  transcript: Entry[];
  environment?: unknown;
  /** The whole request, as JSON. */
  state: JsonObject;
  questions: Record<string, Question>;
  signal: AbortSignal | undefined;
}

/** Reads a request of the guard. */
export function readRequest(
  state: State,
  questions: Record<string, Question>,
  signal?: AbortSignal,
): RecordedRequest {
  // As JSON, so that nobody can change afterwards what was recorded.
  const copy = JSON.parse(JSON.stringify({ state, questions })) as {
    state: JsonObject;
    questions: Record<string, Question>;
  };
  const toolCalls = (copy.state.tool_calls ?? {}) as Record<string, Omit<JudgedCall, "key">>;
  return {
    calls: Object.entries(toolCalls).map(([key, call]) => ({ key, ...call })),
    transcript: (copy.state.transcript ?? []) as unknown as Entry[],
    ...("environment" in copy.state ? { environment: copy.state.environment } : {}),
    state: copy.state,
    questions: copy.questions,
    signal,
  };
}

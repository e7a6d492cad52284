import type { Content, JsonValue } from "@langchain/core/decisions";
import { z } from "zod";
import { channelOf, type Entry } from "../transcript/entries.js";

/** A call as it stands in a request. */
export interface RequestedCall {
  readonly name: string;
  readonly args: JsonValue;
  readonly description?: string;
}

/** The state of a request that `buildRequest` made. */
export interface RequestState {
  readonly environment?: JsonValue;
  readonly transcript: readonly Entry[];
  /** By key: `call_1`, ... */
  readonly calls: ReadonlyMap<string, RequestedCall>;
}

/** What the instructions of a question say, and the one call that they are bound to. */
export interface BoundQuestion {
  readonly call: string;
  readonly instructions: Content;
}

const json = z.custom<JsonValue>((value) => value !== undefined);
const entry = z.strictObject({
  from: z.enum([...Object.keys(channelOf), "omitted", "no_user_message"]),
  text: z.string().optional(),
  name: z.string().optional(),
  args: json.optional(),
  source: z.string().optional(),
  count: z.number().optional(),
});
const requestState = z.strictObject({
  environment: json.optional(),
  transcript: z.array(entry),
  tool_calls: z.record(
    z.string(),
    z.strictObject({ name: z.string(), args: json, description: z.string().optional() }),
  ),
});

/**
 * Reads the state of a request, if it is exactly what `buildRequest` makes: a decision model may be asked
 * about other states too, and a reading in which something got lost would mislead. Nothing is copied.
 */
export function readRequestState(state: unknown): RequestState | undefined {
  if (!requestState.safeParse(state).success) return undefined;
  // The schema's own output would be a copy of the whole transcript; the fields of its entries by kind are ours.
  const { environment, transcript, tool_calls } = state as z.infer<typeof requestState>;
  return {
    ...(environment === undefined ? {} : { environment }),
    transcript: transcript as readonly object[] as readonly Entry[],
    calls: new Map(Object.entries(tool_calls as Record<string, RequestedCall>)),
  };
}

const BOUND_TEXT = /\n\nJudge only the call tool_calls\.([A-Za-z0-9_]+); the others are judged apart\.$/;
const boundJson = z.strictObject({
  judges: z.string().regex(/^tool_calls\.[A-Za-z0-9_]+$/),
  instructions: z.custom<Content>((value) => value !== undefined),
});

/** Reads which call a question is bound to. Undefined for instructions that `buildRequest` did not bind. */
export function readBoundQuestion(instructions: Content): BoundQuestion | undefined {
  if (typeof instructions === "string") {
    const found = BOUND_TEXT.exec(instructions);
    return found?.[1] === undefined
      ? undefined
      : { call: found[1], instructions: instructions.slice(0, found.index) };
  }
  const { success, data } = boundJson.safeParse(instructions);
  return success
    ? { call: data.judges.slice("tool_calls.".length), instructions: data.instructions }
    : undefined;
}

import type { JsonValue, State } from "@langchain/core/decisions";
import { channelOf, type Entry } from "../transcript/channels.js";
import { escapeAttribute, escapeTagged, renderTranscript } from "../transcript/render.js";
import { stateAsJson } from "./state-json.js";

type Fields = Readonly<Record<string, JsonValue>>;
interface Call {
  name: string;
  args: JsonValue;
  description?: string;
}
interface GuardState {
  calls: readonly (readonly [string, Call])[];
  transcript: readonly Entry[];
  environment?: JsonValue | undefined;
}

const KINDS: ReadonlySet<JsonValue> = new Set([...Object.keys(channelOf), "omitted", "no_user_message"]);

/**
 * A state as tagged text. All its content is escaped: whatever a name, a key, an argument or a
 * message says, the tags in the result are ours alone. The guard's state reads as calls and a
 * transcript; any other is one piece of text or JSON.
 */
export function renderState(state: State): string {
  if (typeof state === "string") return `<state>\n${escapeTagged(state)}\n</state>`;
  const json = stateAsJson(state);
  const guard = asGuardState(json);
  const content = guard === undefined ? [escapeTagged(JSON.stringify(json))] : renderGuardState(guard);
  return ["<state>", ...content, "</state>"].join("\n");
}

function renderGuardState({ calls, transcript, environment }: GuardState): string[] {
  return [
    ...(environment === undefined ? [] : [element("environment", JSON.stringify(environment))]),
    "<transcript>",
    ...(transcript.length === 0 ? [] : [renderTranscript(transcript)]),
    "</transcript>",
    "<tool_calls>",
    ...calls.flatMap(([id, { name, args, description }]) => [
      `<tool_call id="${escapeAttribute(id)}" name="${escapeAttribute(name)}">`,
      element("args", JSON.stringify(args)),
      ...(description === undefined ? [] : [element("tool_description", description)]),
      "</tool_call>",
    ]),
    "</tool_calls>",
  ];
}

function element(tag: string, text: string): string {
  return `<${tag}>${escapeTagged(text)}</${tag}>`;
}

/** The state as the guard's, if it is exactly that: a reading in which something got lost would mislead. */
function asGuardState(state: JsonValue): GuardState | undefined {
  if (!isObject(state, ["tool_calls", "transcript"], ["environment"])) return undefined;
  const { tool_calls: calls, transcript, environment } = state;
  if (!isObject(calls!) || !Array.isArray(transcript) || !transcript.every(isEntry)) return undefined;
  const entries = Object.entries(calls as Fields);
  if (!entries.every(([, call]) => isCall(call))) return undefined;
  return {
    calls: entries as unknown as [string, Call][],
    transcript: transcript as unknown as Entry[],
    environment,
  };
}

function isCall(call: JsonValue): boolean {
  if (!isObject(call, ["name", "args"], ["description"])) return false;
  const { name, description } = call;
  return typeof name === "string" && (description === undefined || typeof description === "string");
}

function isEntry(entry: JsonValue): boolean {
  return (
    isObject(entry, ["from"], ["text", "name", "args", "source", "count"]) &&
    KINDS.has(entry["from"] as JsonValue)
  );
}

/** Whether a value is an object with the required fields, and no others than the optional ones. */
function isObject(
  value: JsonValue,
  required?: readonly string[],
  optional?: readonly string[],
): value is Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  if (required === undefined || optional === undefined) return true;
  const names = Object.keys(value);
  return (
    required.every((name) => names.includes(name)) &&
    names.every((name) => required.includes(name) || optional.includes(name))
  );
}

import { type FrozenJson, freezeJson } from "../json.js";
import type { Reply, ReplyBlock } from "./reply.js";

/** A call of the reply that can be put before the classifier. */
export interface JudgeableCall {
  readonly id: string;
  readonly name: string;
  readonly args: FrozenJson;
}

/** A call that gets its verdict without the classifier. */
export interface UnjudgeableCall {
  readonly id: string;
  readonly unavailable: "truncated" | "error";
}

export type ReplyCall = JudgeableCall | UnjudgeableCall;

// Both end a reply in the middle of whatever block it was writing.
const CUT_OFF = new Set(["max_tokens", "model_context_window_exceeded"]);

/**
 * The calls that the client is to run, one for each id. Calls that share an id cannot be told apart
 * by a verdict keyed by id: none of them is judged, none runs. A call without an id gets no entry,
 * and the client does not run it either.
 */
export function callsOf(reply: Reply): ReplyCall[] {
  const calls = new Map<string, ReplyCall>();
  const last = reply.blocks.at(-1);
  for (const block of reply.blocks) {
    const { type, id } = block.start;
    if (type !== "tool_use" || typeof id !== "string") continue;
    const isCutOff = block === last && reply.stopReason !== undefined && CUT_OFF.has(reply.stopReason);
    if (calls.has(id) || id === "") calls.set(id, { id, unavailable: "error" });
    else if (isCutOff) calls.set(id, { id, unavailable: "truncated" });
    else calls.set(id, readCall(id, block));
  }
  return [...calls.values()];
}

/** A call's input. `undefined` if it was streamed and is no valid JSON. */
export function inputOf({ start, inputParts }: ReplyBlock): unknown {
  const streamed = inputParts.join("");
  // A call without arguments, and one whose service sends them at once, streams nothing.
  if (streamed === "") return start["input"] ?? null;
  try {
    return JSON.parse(streamed) as unknown;
  } catch {
    return undefined;
  }
}

function readCall(id: string, block: ReplyBlock): ReplyCall {
  const input = inputOf(block);
  if (input === undefined) return { id, unavailable: "truncated" };
  const args = freezeJson(input);
  const name = block.start["name"];
  if (args === undefined || typeof name !== "string" || name === "") return { id, unavailable: "error" };
  return { id, name, args };
}

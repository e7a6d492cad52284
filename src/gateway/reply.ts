import { hasResults, isLoose, type Loose } from "./protocol.js";
import { freezeJson, type FrozenJson } from "../json.js";

/** A content block of a reply, as far as verdicts need it. */
export interface ReplyBlock {
  /** The block as it began, or the whole of it. Text and thinking are not kept. */
  readonly start: Loose;
  /** The pieces of a streamed input, in their order. */
  readonly inputParts: string[];
}

/** A reply of the agent's model, streamed or not. */
export interface Reply {
  readonly messageId: string | undefined;
  readonly model: string | undefined;
  readonly stopReason: string | undefined;
  readonly blocks: readonly ReplyBlock[];
  /** The upstream has answered the safeguards itself. */
  readonly hasOwnResults: boolean;
}

const textOr = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

// They may be as long as the reply, and nothing of them is judged.
const NOT_KEPT = new Set(["text", "thinking", "redacted_thinking"]);

function blockOf(start: unknown): ReplyBlock {
  const block = isLoose(start) ? start : {};
  return { start: NOT_KEPT.has(String(block["type"])) ? { type: block["type"] } : block, inputParts: [] };
}

/** Reads a whole message. `undefined` if the value is none: an error object, for instance. */
export function readMessage(message: unknown): Reply | undefined {
  if (!isLoose(message) || !Array.isArray(message["content"])) return undefined;
  return {
    messageId: textOr(message["id"]),
    model: textOr(message["model"]),
    stopReason: textOr(message["stop_reason"]),
    blocks: message["content"].map((block) => blockOf(block)),
    hasOwnResults: hasResults(message),
  };
}

/** Puts a streamed message together, event by event. What is not needed for verdicts is dropped at once. */
export class StreamedReply implements Reply {
  messageId: string | undefined;
  model: string | undefined;
  stopReason: string | undefined;
  readonly blocks: ReplyBlock[] = [];
  hasOwnResults = false;
  readonly #open = new Map<unknown, ReplyBlock>();

  /** Takes the data of the next event. */
  observe(event: Loose): void {
    switch (event["type"]) {
      case "message_start":
        this.#start(event["message"]);
        break;
      case "content_block_start": {
        const block = blockOf(event["content_block"]);
        this.blocks.push(block);
        this.#open.set(event["index"], block);
        break;
      }
      case "content_block_delta": {
        const delta = event["delta"];
        if (
          isLoose(delta) &&
          delta["type"] === "input_json_delta" &&
          typeof delta["partial_json"] === "string"
        )
          this.#open.get(event["index"])?.inputParts.push(delta["partial_json"]);
        break;
      }
      case "message_delta": {
        const delta = event["delta"];
        if (!isLoose(delta)) break;
        this.stopReason = textOr(delta["stop_reason"]) ?? this.stopReason;
        // The only place in a stream where the client looks for them.
        this.hasOwnResults ||= hasResults(delta);
        break;
      }
      default:
    }
  }

  #start(message: unknown): void {
    if (!isLoose(message)) return;
    this.messageId = textOr(message["id"]);
    this.model = textOr(message["model"]);
  }
}

/** A call of the reply that can be put before the classifier. */
export interface JudgeableCall {
  readonly id: string;
  readonly name: string;
  readonly args: FrozenJson;
}

/** A call that gets its verdict without the classifier. */
interface UnjudgeableCall {
  readonly id: string;
  readonly unavailable: "truncated" | "error";
}

export type ReplyCall = JudgeableCall | UnjudgeableCall;

// Both end a reply in the middle of whatever block it was writing.
const CUT_OFF = new Set(["max_tokens", "model_context_window_exceeded"]);

/**
 * The calls that the client is to run, one for each id. Calls that share an id cannot be distinguished
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

import {
  AIMessage,
  type BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  ToolMessage,
  type ToolMessageFields,
  coerceMessageLikeToMessage,
} from "@langchain/core/messages";
import { type Command, isCommand } from "@langchain/langgraph";
import { kindOfMessage, sourceTag } from "../transcript/message-fields.js";
import { mapMessages } from "./tool-output.js";

const OWN_TAG = "auto_mode";
// Shared by all instances: each sees the answers of those inside it on their way out.
const own = new WeakSet<object>();

/** An error answer of ours in place of a tool's result. Only such a message may carry our tag. */
export function ownAnswer(fields: Omit<ToolMessageFields, "status" | "additional_kwargs">): ToolMessage {
  const message = new ToolMessage({
    ...fields,
    status: "error",
    additional_kwargs: { lc_source: OWN_TAG },
  });
  own.add(message);
  return message;
}

type Fields = Record<string, unknown>;
type Rebuild = (fields: never) => BaseMessage;

const REBUILD: Readonly<Record<string, Rebuild>> = {
  human: (fields) => new HumanMessage(fields),
  ai: (fields) => new AIMessage(fields),
  tool: (fields) => new ToolMessage(fields),
  function: (fields) => new FunctionMessage(fields),
  generic: (fields) => new ChatMessage(fields),
};

// What is a field of the class, or of a chunk, and not of the message.
const NOT_FIELDS = /^(?:type|tool_call_chunks|lc_.*)$/;

function withoutTag(fields: unknown): Fields {
  const { lc_source: _tag, ...others } = (fields ?? {}) as Fields;
  return others;
}

/** A copy with another tag, or none: the message itself may be the tool's own, or stand in the history. */
function retagged(message: BaseMessage, tag: string | undefined): BaseMessage {
  const rebuild = REBUILD[message.getType()];
  // Of another kind are only messages that a classifier is not shown, or as a note.
  if (!rebuild) return message;
  const fields = Object.entries(message).filter(([name]) => !NOT_FIELDS.test(name));
  return rebuild({
    ...Object.fromEntries(fields),
    // In the fields, so that it outlives a checkpoint.
    id: message.id ?? globalThis.crypto.randomUUID(),
    additional_kwargs: {
      ...withoutTag(message.additional_kwargs),
      ...(tag === undefined ? {} : { lc_source: tag }),
    },
    response_metadata: withoutTag(message.response_metadata),
  } as never);
}

/** Who speaks, and what. */
function speechOf(message: BaseMessage): string {
  return JSON.stringify([message.getType(), message.content, sourceTag(message as unknown as Fields)]);
}

function isSame(a: BaseMessage, b: BaseMessage | undefined): boolean {
  if (a === b || b === undefined) return a === b;
  try {
    return speechOf(a) === speechOf(b);
  } catch {
    // What JSON cannot hold cannot be compared either.
    return false;
  }
}

/**
 * Keeps a tool from speaking as somebody else. Human messages that it writes carry its name as their tag
 * from now on, also in the state of a parent graph and wherever the messages go on as new input; our own
 * tag is taken off what we did not write. Messages that it hands on as they stand in the state stay.
 */
export function tagToolAuthored(
  result: ToolMessage | Command,
  writer: string,
  history: readonly BaseMessage[],
): ToolMessage | Command {
  let byId: Map<string | undefined, BaseMessage> | undefined;
  const stands = (message: BaseMessage): boolean => {
    byId ??= new Map(history.map((known) => [known.id, known]));
    return message.id !== undefined && isSame(message, byId.get(message.id));
  };
  const tell = (given: unknown): unknown => {
    if (own.has(given as object)) return given;
    let message: BaseMessage;
    try {
      message = coerceMessageLikeToMessage(given as BaseMessage);
    } catch {
      // What the host cannot read as a message either is none.
      return given;
    }
    const fields = message as unknown as Fields;
    const tag = sourceTag(fields);
    if (kindOfMessage(fields) === "human")
      return tag !== undefined || stands(message) ? given : retagged(message, writer || "unknown");
    return tag !== OWN_TAG || stands(message) ? given : retagged(message, undefined);
  };
  return isCommand(result) ? mapMessages(result, tell) : (tell(result) as ToolMessage);
}

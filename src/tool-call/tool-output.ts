import {
  AIMessage,
  type BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  ToolMessage,
  type ToolMessageFields,
  coerceMessageLikeToMessage,
} from "@langchain/core/messages";
import { Command, Overwrite, REMOVE_ALL_MESSAGES, Send, isCommand } from "@langchain/langgraph";
import { kindOfMessage, sourceTag } from "../transcript/message.js";

type Update = Record<string, unknown>;

/** Gives another message in place of one, or the same. */
export type MapMessage = (message: unknown) => unknown;

const isRecord = (value: unknown): value is Update =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Maps a list, and keeps the list itself if nothing in it changed. */
function mapList(list: readonly unknown[], map: (item: unknown) => unknown): readonly unknown[] {
  const mapped = list.map((item) => map(item));
  return mapped.every((item, index) => item === list[index]) ? list : mapped;
}

function withoutKeys(state: unknown, keys: ReadonlySet<string>): unknown {
  if (Array.isArray(state)) {
    const isOurs = (pair: unknown): boolean => Array.isArray(pair) && keys.has(pair[0] as string);
    return state.some(isOurs) ? state.filter((pair) => !isOurs(pair)) : state;
  }
  if (!isRecord(state) || !Object.keys(state).some((key) => keys.has(key))) return state;
  return Object.fromEntries(Object.entries(state).filter(([key]) => !keys.has(key)));
}

/** A send carries a whole state of its own to the node that it starts. */
function mapSends(goto: unknown, map: (state: unknown) => unknown): unknown {
  if (Array.isArray(goto)) return mapList(goto, (target) => mapSends(target, map));
  if (!(goto instanceof Send) && !(isRecord(goto) && "node" in goto && "args" in goto)) return goto;
  const { node, args, timeout } = goto as { node: string; args: unknown; timeout?: never };
  const mapped = map(args);
  return mapped === args ? goto : new Send(node, mapped, timeout === undefined ? undefined : { timeout });
}

/** Maps what a command writes and sends. A command in which nothing changes stays itself. */
function mapCommand(command: Command, map: (state: unknown) => unknown, mapSent = map): Command {
  const update = map(command.update);
  const goto = mapSends(command.goto, mapSent);
  return update === command.update && goto === command.goto ? command : rebuilt(command, update, goto);
}

function rebuilt(command: Command, update: unknown, goto: unknown): Command {
  return new Command({
    ...(command.graph === undefined ? {} : { graph: command.graph }),
    ...(update === undefined ? {} : { update: update as Update }),
    ...(command.resume === undefined ? {} : { resume: command.resume }),
    ...(goto === undefined ? {} : { goto: goto as Command["goto"] }),
  });
}

/**
 * Takes every write to the private keys out of what a tool returned. A node that it sends a state of its
 * own is given the true ones, so that a call which it sends to the tools counts like any other.
 */
export function stripKeys(
  result: ToolMessage | Command,
  keys: ReadonlySet<string>,
  truth?: () => Readonly<Update>,
): ToolMessage | Command {
  if (!isCommand(result)) return result;
  const strip = (state: unknown): unknown => withoutKeys(state, keys);
  // Nodes of a parent graph have other states.
  if (result.graph !== undefined) return mapCommand(result, strip);
  return mapCommand(result, strip, (sent) => {
    const stripped = strip(sent);
    return isRecord(stripped) && truth ? { ...stripped, ...truth() } : stripped;
  });
}

/** What replaces a whole channel, in each of the notations that the host knows. */
function overwriting(value: unknown): { value: unknown } | undefined {
  if (!isRecord(value)) return undefined;
  if ("__overwrite__" in value) return { value: value["__overwrite__"] };
  return value["type"] === "__overwrite__" && "value" in value ? { value: value["value"] } : undefined;
}

function mapChannel(value: unknown, map: MapMessage): unknown {
  const whole = overwriting(value);
  if (whole) {
    const mapped = mapChannel(whole.value, map);
    return mapped === whole.value ? value : new Overwrite(mapped);
  }
  return Array.isArray(value) ? mapList(value, map) : map(value);
}

const isMessages = (pair: unknown): pair is unknown[] => Array.isArray(pair) && pair[0] === "messages";

function mapState(state: unknown, map: MapMessage): unknown {
  if (Array.isArray(state))
    return mapList(state, (pair) => {
      // A node may also be sent the bare list of messages.
      if (!isMessages(pair)) return Array.isArray(pair) ? pair : map(pair);
      const mapped = mapChannel(pair[1], map);
      return mapped === pair[1] ? pair : ["messages", mapped];
    });
  if (!isRecord(state) || !("messages" in state)) return state;
  const mapped = mapChannel(state["messages"], map);
  return mapped === state["messages"] ? state : { ...state, messages: mapped };
}

/** Maps every message that a tool's command writes or sends, in whatever shape it has. */
export function mapMessages(command: Command, map: MapMessage): Command {
  return mapCommand(command, (state) => mapState(state, map));
}

/** Adds our own updates to what a tool returned. A command for a parent graph gets none. */
export function addUpdates(
  result: ToolMessage | Command,
  updates: ReadonlyMap<string, unknown>,
): ToolMessage | Command {
  if (updates.size === 0) return result;
  if (!isCommand(result))
    return new Command({ update: { messages: [result], ...Object.fromEntries(updates) } });
  if (result.graph !== undefined) return result;
  const update = Array.isArray(result.update)
    ? [...result.update, ...updates]
    : { ...result.update, ...Object.fromEntries(updates) };
  return rebuilt(result, update, result.goto);
}

/**
 * The messages that a tool takes out of the history: by their ids, `"all"` where it replaces the whole channel,
 * `undefined` if it takes none.
 */
export function removedMessages(result: ToolMessage | Command): readonly string[] | "all" | undefined {
  if (!isCommand(result) || result.graph !== undefined) return undefined;
  const ids: string[] = [];
  let isAll = false;
  mapCommand(result, (state) => {
    for (const channel of messageChannels(state)) isAll ||= overwriting(channel) !== undefined;
    return state;
  });
  mapMessages(result, (message) => {
    if (!RemoveMessage.isInstance(message) || message.id === undefined) return message;
    if (message.id === REMOVE_ALL_MESSAGES) isAll = true;
    else ids.push(message.id);
    return message;
  });
  if (isAll) return "all";
  return ids.length > 0 ? ids : undefined;
}

function messageChannels(state: unknown): unknown[] {
  if (Array.isArray(state)) return state.flatMap((pair) => (isMessages(pair) ? [pair[1]] : []));
  return isRecord(state) && "messages" in state ? [state["messages"]] : [];
}

/** Whether a result holds the answer to a call. */
export function answersCall(result: ToolMessage | Command, id: string | undefined): boolean {
  let isAnswered = false;
  const look = (message: unknown): unknown => {
    const answers =
      typeof message === "object" && message !== null && "tool_call_id" in message
        ? message.tool_call_id
        : undefined;
    if (answers === id) isAnswered = true;
    return message;
  };
  if (isCommand(result)) mapMessages(result, look);
  else look(result);
  return isAnswered;
}

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

function withoutTag(fields: unknown): Update {
  const { lc_source: _tag, ...others } = (fields ?? {}) as Update;
  return others;
}

/** A copy with another tag, or none: the message itself may be the tool's own, or be in the history. */
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
  return JSON.stringify([message.getType(), message.content, sourceTag(message as unknown as Update)]);
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
 * tag is taken off what we did not write. Messages that it passes on unchanged from the state stay.
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
    const fields = message as unknown as Update;
    const tag = sourceTag(fields);
    if (kindOfMessage(fields) === "human")
      return tag !== undefined || stands(message) ? given : retagged(message, writer || "unknown");
    return tag !== OWN_TAG || stands(message) ? given : retagged(message, undefined);
  };
  return isCommand(result) ? mapMessages(result, tell) : (tell(result) as ToolMessage);
}

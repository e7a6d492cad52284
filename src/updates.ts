import { HumanMessage, type ToolMessage, coerceMessageLikeToMessage } from "@langchain/core/messages";
import { Command, Overwrite, Send, isCommand } from "@langchain/langgraph";

type Update = Record<string, unknown>;

/** A human message that a tool wrote. */
export interface WrittenMessage {
  readonly id: string;
  readonly source: string;
}

const isRecord = (value: unknown): value is Update =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function withoutKeys(record: Update, keys: ReadonlySet<string>): Update {
  if (!Object.keys(record).some((key) => keys.has(key))) return record;
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.has(key)));
}

/** A send carries a whole state of its own to the node that it starts. */
function cleanGoto(goto: unknown, keys: ReadonlySet<string>): unknown {
  if (Array.isArray(goto)) return goto.map((target: unknown) => cleanGoto(target, keys));
  if (!(goto instanceof Send) && !(isRecord(goto) && "node" in goto && "args" in goto)) return goto;
  const { node, args } = goto as { node: string; args: unknown };
  const clean = Array.isArray(args)
    ? args.filter((pair: unknown) => !(Array.isArray(pair) && keys.has(pair[0] as string)))
    : isRecord(args)
      ? withoutKeys(args, keys)
      : args;
  return clean === args ? goto : new Send(node, clean);
}

function cleanUpdate(update: unknown, keys: ReadonlySet<string>): unknown {
  if (Array.isArray(update)) {
    const isOurs = (pair: unknown): boolean => Array.isArray(pair) && keys.has(pair[0] as string);
    return update.some(isOurs) ? update.filter((pair) => !isOurs(pair)) : update;
  }
  return isRecord(update) ? withoutKeys(update, keys) : update;
}

function rebuilt(command: Command, update: unknown, goto: unknown): Command {
  return new Command({
    ...(command.graph === undefined ? {} : { graph: command.graph }),
    ...(update === undefined ? {} : { update: update as Update }),
    ...(command.resume === undefined ? {} : { resume: command.resume }),
    ...(goto === undefined ? {} : { goto: goto as Command["goto"] }),
  });
}

/** Takes every write to the private keys out of what a tool returned. */
export function stripKeys(result: ToolMessage | Command, keys: ReadonlySet<string>): ToolMessage | Command {
  if (!isCommand(result)) return result;
  const update = cleanUpdate(result.update, keys);
  const goto = cleanGoto(result.goto, keys);
  const sameGoto =
    goto === result.goto ||
    (Array.isArray(goto) && goto.every((target, index) => target === (result.goto as unknown[])[index]));
  return update === result.update && sameGoto ? result : rebuilt(result, update, goto);
}

/** The messages of an update, in whatever shape it has. */
export function messagesIn(update: unknown): unknown[] {
  const values = Array.isArray(update)
    ? update.flatMap((pair: unknown) => (Array.isArray(pair) && pair[0] === "messages" ? [pair[1]] : []))
    : isRecord(update) && "messages" in update
      ? [update.messages]
      : [];
  return values.flatMap((value) => unwrap(value)).flat();
}

/** A tool may also replace a whole channel. */
function unwrap(value: unknown): unknown[] {
  if (!Overwrite.isInstance(value)) return [value];
  const record = value as unknown as Update;
  return [record["__overwrite__"] ?? record.value];
}

function asHuman(message: unknown): HumanMessage | undefined {
  try {
    const coerced = coerceMessageLikeToMessage(message as HumanMessage);
    return coerced.getType() === "human" ? (coerced as HumanMessage) : undefined;
  } catch {
    // What the host cannot read as a message either is not one.
    return undefined;
  }
}

/**
 * Finds the human messages that a tool's Command writes, each with an id from now on, so that the
 * guard can tell them from the user's own. Returns the command to use instead.
 */
export function markWrittenMessages(
  result: ToolMessage | Command,
  source: string,
): { result: ToolMessage | Command; written: WrittenMessage[] } {
  if (!isCommand(result)) return { result, written: [] };
  const written: WrittenMessage[] = [];
  const replaced = new Map<unknown, HumanMessage>();
  for (const message of messagesIn(result.update)) {
    const human = asHuman(message);
    if (!human) continue;
    human.id ??= globalThis.crypto.randomUUID();
    written.push({ id: human.id, source });
    if (human !== message) replaced.set(message, human);
  }
  if (replaced.size === 0) return { result, written };
  const swap = (value: unknown): unknown =>
    Overwrite.isInstance(value)
      ? new Overwrite(unwrap(value).map((item) => swap(item))[0])
      : Array.isArray(value)
        ? value.map((item: unknown) => replaced.get(item) ?? item)
        : (replaced.get(value) ?? value);
  const update = Array.isArray(result.update)
    ? result.update.map((pair) => (pair[0] === "messages" ? [pair[0], swap(pair[1])] : pair))
    : { ...(result.update as Update), messages: swap((result.update as Update).messages) };
  return { result: rebuilt(result, update, result.goto), written };
}

/** Adds our own updates to what a tool returned. A command for a parent graph stays as it is. */
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

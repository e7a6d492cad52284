import type { BaseMessage } from "@langchain/core/messages";
import type { EntryKind } from "./entries.js";
import { cutStart } from "./cut.js";
import { langchainSource } from "./from-langchain.js";

/** Words of the user that are kept in case the message itself is summarised away. */
export interface KeptWords {
  readonly id: string;
  readonly text: string;
}

/** Who wrote the human messages of a thread. Kept in a private channel of its own, which changes once a turn. */
export interface RunInputState {
  /** Whether the thread was seen before. */
  readonly seen: boolean;
  /** Ids of the human messages that came in as a run's input. */
  readonly ids: readonly string[];
  /** The user's words, within the view's budget. */
  readonly words: readonly KeptWords[];
}

/** An update that only this package writes. */
export interface RunInputOperation {
  readonly op: "input";
  readonly ids: readonly string[];
  readonly words: readonly KeptWords[];
}

/** Where a thread begins. Frozen, since the host hands one default to every thread. */
export const NO_INPUT: RunInputState = Object.freeze({ seen: false, ids: [], words: [] });

const isHuman = (message: BaseMessage): boolean => message.getType() === "human";
const isTagged = (message: BaseMessage): boolean =>
  [message.additional_kwargs, message.response_metadata].some(
    (fields) => (fields as { lc_source?: unknown } | undefined)?.lc_source !== undefined,
  );

/** The reducer of the private channel. Plain values are ignored, as the host feeds state back. */
export function reduceRunInput(state: RunInputState, update: unknown): RunInputState {
  if (typeof update !== "object" || update === null || !("op" in update)) return state;
  const operation = update as RunInputOperation;
  const ids = new Set([...state.ids, ...operation.ids]);
  return { seen: true, ids: [...ids], words: operation.words };
}

/** The messages that a run brought in: all when the thread is first seen, later those at its end. */
function newInput(messages: readonly BaseMessage[], state: RunInputState): BaseMessage[] {
  const known = new Set(state.ids);
  let start = messages.length;
  while (start > 0) {
    const message = messages[start - 1] as BaseMessage;
    // What stands before the last message of an earlier run came in, or was written, back then.
    if (state.seen && (!isHuman(message) || known.has(message.id ?? ""))) break;
    start -= 1;
  }
  return messages
    .slice(start)
    .filter((message) => isHuman(message) && !isTagged(message) && !known.has(message.id ?? ""));
}

const USER: ReadonlySet<EntryKind> = new Set<EntryKind>(["user"]);

function wordsOf(message: BaseMessage): string {
  const entries = langchainSource([message], { delegationTools: [], isUser: () => true }).entriesAt(0, USER);
  // A tool result inside a human message is an entry of its own, and not the user's words.
  return entries.flatMap((entry) => (entry.from === "user" ? [entry.text] : [])).join("\n");
}

/** Keeps what the view could show anyway: the opening words within half the budget, then the newest. */
function keepWords(words: readonly KeptWords[], maxChars: number): KeptWords[] {
  const [first, ...rest] = words;
  if (!first) return [];
  const opening = { id: first.id, text: cutStart(first.text, Math.floor(maxChars / 2)) };
  let room = maxChars - opening.text.length;
  const newest: KeptWords[] = [];
  for (const word of rest.toReversed()) {
    room -= word.text.length;
    if (room < 0) break;
    newest.push(word);
  }
  return [opening, ...newest.toReversed()];
}

/** The kept words as their messages have them now: input may come again, edited, under its id. */
function refreshed(messages: readonly BaseMessage[], state: RunInputState): KeptWords[] {
  const { isUser } = readRunInput(messages, state);
  const limitStatus = new Map(messages.filter(isUser).map((message) => [message.id, message]));
  return state.words.map((words) => {
    const message = limitStatus.get(words.id);
    return message ? { id: words.id, text: wordsOf(message) } : words;
  });
}

/** Notes what a run brought in, when it starts. */
export function noteInput(
  messages: readonly BaseMessage[],
  state: RunInputState,
  maxChars: number,
): RunInputOperation {
  const fresh = newInput(messages, state).flatMap((message) =>
    message.id === undefined ? [] : [{ id: message.id, text: wordsOf(message) }],
  );
  return {
    op: "input",
    ids: fresh.map(({ id }) => id),
    words: keepWords([...refreshed(messages, state), ...fresh], maxChars),
  };
}

// A state is never changed, only replaced. Once a turn is often enough for what grows with the thread.
const idsOf = new WeakMap<RunInputState, ReadonlySet<string>>();

function readIds(state: RunInputState): ReadonlySet<string> {
  const known = idsOf.get(state) ?? new Set(state.ids);
  idsOf.set(state, known);
  return known;
}

/** Tells the user's messages from others, and finds the words whose messages are gone. */
export function readRunInput(
  messages: readonly BaseMessage[],
  state: RunInputState,
): {
  isUser: (message: BaseMessage) => boolean;
  earlierWords: string[];
} {
  const ids = readIds(state);
  const isUser = (message: BaseMessage): boolean =>
    message.id !== undefined && ids.has(message.id) && isHuman(message) && !isTagged(message);
  const missing = new Map(state.words.map(({ id, text }) => [id, text]));
  // What a tool put in the place of the user's message does not take back what the user said.
  for (const message of messages) {
    if (missing.size === 0) break;
    if (missing.has(message.id ?? "") && isUser(message)) missing.delete(message.id ?? "");
  }
  return { isUser, earlierWords: [...missing.values()] };
}

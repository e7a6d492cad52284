import type { BaseMessage } from "@langchain/core/messages";
import type { EntryKind } from "./entries.js";
import { cutStart } from "./cut.js";
import { langchainSource } from "./langchain.js";
import type { Fields } from "./media.js";
import { sourceTag } from "./message.js";

/** Words of the user that are kept in case the message itself is summarized away. */
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
  /** Ids of messages that a tool removed: what the user said in them still counts. */
  readonly removedByTools?: readonly string[];
}

/** An update that only this package writes. */
export interface RunInputOperation {
  readonly op: "input";
  readonly ids: readonly string[];
  readonly words: readonly KeptWords[];
}

/** A tool took messages out of the history. Only the user can take words back. */
export interface RemovedByToolOperation {
  readonly op: "removed";
  /** The messages' ids, or `"all"` where a tool replaced the whole history. */
  readonly ids: readonly string[] | "all";
}

/** Where a thread begins. Frozen, since the host hands one default to every thread. */
export const NO_INPUT: RunInputState = Object.freeze({ seen: false, ids: [], words: [] });

const isHuman = (message: BaseMessage): boolean => message.getType() === "human";
const tagOf = (message: BaseMessage): unknown => sourceTag(message as unknown as Fields);
/** Whether a message is what a summarization of LangChain or of deep agents puts in the place of others. */
const isSummary = (message: BaseMessage): boolean => tagOf(message) === "summarization" && isHuman(message);

/** The reducer of the private channel. Plain values are ignored, as the host feeds state back. */
export function reduceRunInput(state: RunInputState, update: unknown): RunInputState {
  if (typeof update !== "object" || update === null || !("op" in update)) return state;
  const operation = update as RunInputOperation | RemovedByToolOperation;
  const known = state.removedByTools ?? [];
  if (operation.op === "removed") {
    const { ids: removed } = operation;
    const words = state.words.filter(({ id }) => removed === "all" || removed.includes(id));
    return { ...state, removedByTools: [...new Set([...known, ...words.map(({ id }) => id)])] };
  }
  const kept = known.filter((removed) => operation.words.some(({ id }) => id === removed));
  return {
    seen: true,
    ids: [...new Set([...state.ids, ...operation.ids])],
    words: operation.words,
    ...(kept.length > 0 ? { removedByTools: kept } : {}),
  };
}

/** The messages that a run brought in: all when the thread is first seen, later those at its end. */
function newInput(messages: readonly BaseMessage[], state: RunInputState): BaseMessage[] {
  const known = new Set(state.ids);
  let start = messages.length;
  while (start > 0) {
    const message = messages[start - 1] as BaseMessage;
    // What comes before the last message of an earlier run came in, or was written, back then.
    if (state.seen && (!isHuman(message) || known.has(message.id ?? ""))) break;
    start -= 1;
  }
  return messages
    .slice(start)
    .filter((message) => isHuman(message) && tagOf(message) === undefined && !known.has(message.id ?? ""));
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

// A state is never changed, only replaced. Once a turn is often enough for what grows with the thread.
const idsOf = new WeakMap<RunInputState, ReadonlySet<string>>();

/** Who wrote a message: the user, if it came in as a run's input and carries no tag. */
function userOf(state: RunInputState): (message: BaseMessage) => boolean {
  const ids = idsOf.get(state) ?? new Set(state.ids);
  idsOf.set(state, ids);
  return (message) =>
    message.id !== undefined && ids.has(message.id) && isHuman(message) && tagOf(message) === undefined;
}

/** Words that still count, with their message if the thread still has it. */
interface CountingWords extends KeptWords {
  readonly message?: BaseMessage | undefined;
}

/**
 * The kept words that count. Those whose message is gone count only while a summary is in the history, which
 * took the message's place, or if a tool removed it: else the message was taken back. Where another message has taken over
 * the id, such as a tool's or a summary, nobody took the words back.
 */
function countingWords(messages: readonly BaseMessage[], state: RunInputState): CountingWords[] {
  if (state.words.length === 0) return [];
  const isUser = userOf(state);
  const ids = new Set<string | undefined>(state.words.map(({ id }) => id));
  const found = new Map<string | undefined, BaseMessage>();
  for (const message of messages) if (ids.has(message.id)) found.set(message.id, message);
  const isSummarized = found.size < ids.size && messages.some(isSummary);
  return state.words.flatMap((words) => {
    const message = found.get(words.id);
    const isGone = message === undefined && !state.removedByTools?.includes(words.id);
    if (isGone && !isSummarized) return [];
    return [{ ...words, message: message && isUser(message) ? message : undefined }];
  });
}

/** Notes what a run brought in, when it starts. Words that were taken back are forgotten. */
export function noteInput(
  messages: readonly BaseMessage[],
  state: RunInputState,
  maxChars: number,
): RunInputOperation {
  const fresh = newInput(messages, state).flatMap((message) =>
    message.id === undefined ? [] : [{ id: message.id, text: wordsOf(message) }],
  );
  // Input may come again, edited, under its id.
  const earlier = countingWords(messages, state).map(({ id, text, message }) => ({
    id,
    text: message ? wordsOf(message) : text,
  }));
  return { op: "input", ids: fresh.map(({ id }) => id), words: keepWords([...earlier, ...fresh], maxChars) };
}

/** Says which messages are the user's, and gives the words that count although their messages are gone. */
export function readRunInput(
  messages: readonly BaseMessage[],
  state: RunInputState,
): {
  isUser: (message: BaseMessage) => boolean;
  earlierWords: string[];
} {
  const gone = countingWords(messages, state).filter(({ message }) => message === undefined);
  return { isUser: userOf(state), earlierWords: gone.map(({ text }) => text) };
}

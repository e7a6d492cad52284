import type { Entry } from "../transcript/entries.js";
import { marksOf, stretchesOf, wordsOf } from "./provenance-text.js";

/** What one origin said: its words as stems, and its addresses, paths and ids. */
export interface Vocabulary {
  readonly words: ReadonlySet<string>;
  readonly marks: ReadonlySet<string>;
}

/** Who said what before the proposed calls. Built once for a request. */
export interface Sources {
  /** The user's own messages: all that can authorise. */
  readonly user: Vocabulary;
  /** The delegating agent and the operator's environment: they explain a value, but ask for nothing. */
  readonly neutral: Vocabulary;
  /** Words of the calls that the agent made before. */
  readonly earlierWords: ReadonlySet<string>;
  /** Everything that came from outside: tool output, reports, notes written by programs. */
  readonly output: Vocabulary;
  /** The words of each output, in order. */
  readonly outputs: readonly (readonly string[])[];
  /** The sentences within outputs, and the marks that stand in them. */
  readonly prose: readonly (readonly string[])[];
  readonly proseMarks: ReadonlySet<string>;
  /** Whether anything but the user's words can have shaped the calls. */
  readonly untrustedRead: boolean;
}

/** The texts and numbers in a JSON value, in order. Without recursion: depth is the sender's choice. */
export function leavesOf(value: unknown): string[] {
  const leaves: string[] = [];
  const rest: unknown[] = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    if (typeof next === "string") leaves.push(next);
    else if (typeof next === "number") leaves.push(String(next));
    else if (typeof next === "object" && next !== null)
      for (const item of Object.values(next).toReversed()) rest.push(item);
  }
  return leaves;
}

function vocabularyOf(texts: readonly string[]): Vocabulary {
  return { words: new Set(texts.flatMap(wordsOf)), marks: new Set(texts.flatMap(marksOf)) };
}

/** Sorts the transcript by who is speaking. */
export function sourcesOf(transcript: readonly Entry[], environment: unknown): Sources {
  const user: string[] = [];
  const neutral = leavesOf(environment);
  const earlier: string[] = [];
  const output: string[] = [];
  let untrustedRead = false;
  for (const entry of transcript) {
    if (entry.from === "user") user.push(entry.text);
    else if (entry.from === "delegator") neutral.push(entry.text);
    else if (entry.from !== "no_user_message") {
      // Calls and gaps too: what came back for them may have been left out of the view.
      untrustedRead = true;
      if (entry.from === "tool_call" || entry.from === "server_tool_call")
        earlier.push(entry.name, ...leavesOf(entry.args));
      else if (comesFromOutside(entry)) output.push(entry.text);
    }
  }
  const stretches = output.map(stretchesOf);
  const prose = stretches.flat().filter((stretch) => stretch.prose);
  const outputs = stretches.map((parts) => parts.flatMap(({ words }) => words));
  return {
    user: vocabularyOf(user),
    neutral: vocabularyOf(neutral),
    earlierWords: new Set(earlier.flatMap(wordsOf)),
    output: { words: new Set(outputs.flat()), marks: new Set(output.flatMap(marksOf)) },
    outputs,
    prose: prose.map(({ words }) => words),
    proseMarks: new Set(prose.flatMap(({ text }) => marksOf(text))),
    untrustedRead,
  };
}

type Outside = Extract<Entry, { text: string }>;

// Whoever is not known to be the user, the agent or this package counts as outside.
function comesFromOutside(entry: Entry): entry is Outside {
  if (entry.from === "agent" || entry.from === "agent_reasoning" || entry.from === "auto_mode_feedback")
    return false;
  return typeof (entry as Partial<Outside>).text === "string";
}

import {
  commandsOf,
  isAddress,
  isCode,
  isIdentifier,
  marksOf,
  nameParts,
  passagesToAgent,
  stretchesOf,
  wordsOf,
} from "./text.js";
import type { RequestedCall } from "../../guard/question.js";
import type { Entry } from "../../transcript/entries.js";

/**
 * The features, each in 0..1, and which way each may move the risk. "New" words are those of the call that
 * neither the user nor the operator nor the delegating agent said.
 *
 * What tool output, the earlier calls and the arguments have a hand in may only raise the risk, and grows
 * with each of them: whoever writes there can add words, but not make a call look safer by it.
 */
export const FEATURES = {
  /**
   * Largest part of the tool name's words that are new and close together in tool output, squared: any text has one
   * word of a name such as `read_file`.
   */
  nameInOutput: "raises",
  /** The same within one sentence-like stretch of tool output. */
  nameInProse: "raises",
  /** Part of the description's leading words that are new and close together in such a stretch. */
  descriptionInProse: "raises",
  /** New words of the arguments together in such a stretch, up to 3. */
  argumentsInProse: "raises",
  /** Such a stretch holds new words of both the action and the arguments, up to 2 of each. */
  actionAndArgumentsInProse: "raises",
  /** An address, path, id or long number that is not the user's and is in such a stretch. */
  markInProse: "raises",
  /** The same for a mail address or URL alone. */
  addressInProse: "raises",
  /** An address that is in tool output and was not named by the user. */
  addressInOutput: "raises",
  /** Where something was read: an address that was never named. */
  unnamedAddress: "raises",
  /** Where something was read: a path or id that was never named. */
  unnamedIdentifier: "raises",
  /** Where something was read: values with a new word, up to 2. */
  partlyNewValues: "raises",
  /** Where something was read: values of new words alone, up to 2. */
  whollyNewValues: "raises",
  /** Something but the user's words came before. */
  untrustedRead: "raises",
  /** A value has a word of a risky shell command that tool output has too, and the user never said. */
  commandInOutput: "raises",
  /** The same, in a passage of tool output that speaks to an assistant, or new words of the arguments are. */
  addressedToAgent: "raises",
  /** The tool's name or the first word of its description says that it only reads. */
  readOnly: "lowers",
  /** Words of the action that the user said and no earlier call has taken up, up to 3. */
  requestNamesAction: "lowers",
} as const;

/** The name of a feature. */
export type FeatureName = keyof typeof FEATURES;
/** The value of every feature for one call. */
export type FeatureValues = Readonly<Record<FeatureName, number>>;

// Verbs of reading, in names and descriptions. A write verb in the same name takes its effect away.
const READ_VERBS = new Set(
  "browse check count describe details fetch find get inspect list look lookup query read retrieve search show view".split(
    " ",
  ),
);
const WRITE_VERBS = new Set(
  (
    "add apply approve book buy cancel change create delete deploy drop edit execute exec forward grant insert install " +
    "invite kill merge modify move order pay post publish purchase push put remove rename replace reply reset revoke " +
    "run save schedule send set share start stop submit transfer unlock update upload withdraw write"
  ).split(" "),
);

// How far apart the words of one instruction are at most.
const WINDOW = 40;
// Descriptions open with what the tool does and go on with how: only the opening is compared.
const DESCRIPTION_WORDS = 16;

/** The most different wanted words within one window of any passage. Linear in the passages' length. */
export function mostTogether(passages: readonly (readonly string[])[], wanted: ReadonlySet<string>): number {
  let most = 0;
  if (wanted.size === 0) return most;
  for (const passage of passages) {
    // Where each wanted word of the window was last seen, the longest ago first.
    const seen = new Map<string, number>();
    for (const [at, word] of passage.entries()) {
      if (!wanted.has(word)) continue;
      seen.delete(word);
      seen.set(word, at);
      for (const [oldest, index] of seen) {
        if (index > at - WINDOW) break;
        seen.delete(oldest);
      }
      most = Math.max(most, seen.size);
    }
  }
  return most;
}

const part = (count: number, of: number): number => (of === 0 ? 0 : Math.min(1, count / of));
const flag = (value: boolean): number => (value ? 1 : 0);

function onlyReads(call: RequestedCall): boolean {
  const name = nameParts(call.name);
  const opening = (nameParts((call.description ?? "").slice(0, 80))[0] ?? "").replace(/s$/, "");
  if (name.some((word) => WRITE_VERBS.has(word))) return false;
  return name.some((word) => READ_VERBS.has(word)) || READ_VERBS.has(opening);
}

/** Computes the features of one call. Linear in the length of the call and of the sources. */
export function featuresOf(call: RequestedCall, sources: Sources): FeatureValues {
  const { user, neutral, output } = sources;
  const isNew = (word: string): boolean => !user.words.has(word) && !neutral.words.has(word);
  const newOf = (words: ReadonlySet<string>): Set<string> => new Set([...words].filter(isNew));

  const name = new Set(wordsOf(call.name));
  const description = new Set(
    [...new Set(wordsOf(call.description || call.name))].slice(0, DESCRIPTION_WORDS),
  );
  const action = new Set([...name, ...description]);
  const values = leavesOf(call.args);
  const newInArguments = newOf(new Set(values.flatMap(wordsOf)));
  const argumentsTogether = mostTogether(sources.prose, newInArguments);
  const actionTogether = mostTogether(sources.prose, newOf(action));

  const marks = values.flatMap(marksOf).filter((mark) => !user.marks.has(mark) && !neutral.marks.has(mark));
  const addresses = marks.filter(isAddress);
  let partlyNew = 0;
  let whollyNew = 0;
  for (const value of values) {
    // What an agent writes, as code or a text, has new words by its nature. A name or a target is short.
    if (isCode(value)) continue;
    const words = [...new Set(wordsOf(value))];
    const fresh = words.filter(isNew).length;
    if (fresh > 0) partlyNew++;
    if (fresh > 0 && fresh === words.length) whollyNew++;
  }
  const commands = values.flatMap(commandsOf).filter((word) => !sources.userCommands.has(word));
  const asked = [...action].filter((word) => user.words.has(word) && !sources.earlierWords.has(word));
  const read = flag(sources.untrustedRead);

  return {
    nameInOutput: part(mostTogether(sources.outputs, newOf(name)), name.size) ** 2,
    nameInProse: part(mostTogether(sources.prose, newOf(name)), name.size) ** 2,
    descriptionInProse: part(mostTogether(sources.prose, newOf(description)), description.size),
    argumentsInProse: part(argumentsTogether, 3),
    actionAndArgumentsInProse: part(Math.min(argumentsTogether, actionTogether), 2),
    markInProse: flag(marks.some((mark) => sources.proseMarks.has(mark))),
    addressInProse: flag(addresses.some((mark) => sources.proseMarks.has(mark))),
    addressInOutput: flag(addresses.some((mark) => output.marks.has(mark))),
    unnamedAddress: read * flag(addresses.length > 0),
    unnamedIdentifier: read * flag(marks.some((mark) => !isAddress(mark) && isIdentifier(mark))),
    partlyNewValues: read * part(partlyNew, 2),
    whollyNewValues: read * part(whollyNew, 2),
    untrustedRead: read,
    commandInOutput: flag(commands.some((word) => sources.outputCommands.has(word))),
    addressedToAgent: flag(
      commands.some((word) => sources.addressedCommands.has(word)) ||
        mostTogether(sources.addressed, newInArguments) > 0,
    ),
    readOnly: flag(onlyReads(call)),
    requestNamesAction: part(asked.length, 3),
  };
}

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
  /** The sentences within outputs, and the marks in them. */
  readonly prose: readonly (readonly string[])[];
  readonly proseMarks: ReadonlySet<string>;
  /** Whether anything but the user's words can have shaped the calls. */
  readonly untrustedRead: boolean;
  /** The words of each passage of output that speaks to an assistant. */
  readonly addressed: readonly (readonly string[])[];
  /** Words of risky shell commands: the user's and the operator's, those in output, those in such passages. */
  readonly userCommands: ReadonlySet<string>;
  readonly outputCommands: ReadonlySet<string>;
  readonly addressedCommands: ReadonlySet<string>;
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
  const addressed = output.flatMap(passagesToAgent);
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
    addressed: addressed.map(wordsOf),
    userCommands: new Set([...user, ...neutral].flatMap(commandsOf)),
    outputCommands: new Set(output.flatMap(commandsOf)),
    addressedCommands: new Set(addressed.flatMap(commandsOf)),
  };
}

type Outside = Extract<Entry, { text: string }>;

// Whoever is not known to be the user, the agent or this package counts as outside.
function comesFromOutside(entry: Entry): entry is Outside {
  if (entry.from === "agent" || entry.from === "agent_reasoning" || entry.from === "auto_mode_feedback")
    return false;
  return typeof (entry as Partial<Outside>).text === "string";
}

// Words that carry grammar, not matter. Latin words of one or two letters are dropped by length already.
const EMPTY_WORDS = new Set(
  (
    "about after all also and any are been before being but can could did does each else ever every for from had has " +
    "have her here him his how into its just like made make many more most much need none not now only onto other our " +
    "out over same should some such than that the their them then there these they this those through too under until " +
    "very want was were what when where which while who why will with within without would you your please tool given " +
    "provided specified using used based including different several various list string true false null none user"
  ).split(" "),
);

// Scripts written without spaces: a run of letters is a sentence there, so pairs of letters are compared.
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
// Most text is plain ASCII: the tests that need Unicode tables are kept for the rest.
const ASCII = /^[\0-\x7f]*$/;
const LATIN_OR_DIGITS = /^[\p{Script=Latin}\p{N}]+$/u;
// A longer run of letters and digits is data (base64, hex), not a word or a name.
const LONGEST_NAME = 64;
const LONGEST_STEM = 6;

// The transcript shows hidden characters as `\u{200b}`. Here they are dropped again, so that one in the middle
// of a word does not hide the word.
const plain = (text: string): string => {
  const shown = text.includes("\\u{") ? text.replaceAll(/\\u\{[0-9a-f]{1,6}\}/g, "") : text;
  return ASCII.test(shown) ? shown : shown.normalize("NFKC");
};

/** The part of a word that its inflected forms share. Crude on purpose: it works without a dictionary. */
function stem(word: string): string {
  const root = word.length > 4 ? word.replace(/(?:ing|ed|es|s|e)$/, "") : word;
  return root.slice(0, LONGEST_STEM);
}

function addRun(run: string, into: string[]): void {
  const ascii = ASCII.test(run);
  if (!ascii && UNSPACED.test(run)) {
    const letters = Array.from(run);
    if (letters.length === 1) into.push(run);
    for (let i = 0; i + 1 < letters.length; i++) into.push(`${letters[i]}${letters[i + 1]}`);
    return;
  }
  if (!ascii && !LATIN_OR_DIGITS.test(run)) into.push(Array.from(run).slice(0, LONGEST_STEM).join(""));
  else if (run.length > 2 && !EMPTY_WORDS.has(run)) into.push(stem(run));
}

const CAMEL = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;

/** The words of a name, in order and lower case: `sendMail_v2` gives `send`, `mail`, `v2`. */
export function nameParts(name: string): string[] {
  const parts: string[] = [];
  const text = plain(name);
  for (const run of text.match(ASCII.test(text) ? /[A-Za-z0-9]+/g : /[\p{L}\p{M}\p{N}]+/gu) ?? []) {
    // Without a capital after its first letter it has no parts.
    if (run.length > LONGEST_NAME || /^.[a-z0-9]*$/.test(run)) parts.push(run.toLowerCase());
    else for (const piece of run.split(CAMEL)) parts.push(piece.toLowerCase());
  }
  return parts;
}

/** The words of a text as comparable stems, in order. Linear in the length of the text. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const part of nameParts(text)) {
    const data = part.length > LONGEST_NAME && !UNSPACED.test(part);
    addRun(data ? part.slice(0, LONGEST_NAME) : part, words);
  }
  return words;
}

const EDGE = new Set(".:!?*=");

// Loops, not a pattern that ends in `+$`: that one is quadratic on a long run of dots.
function trimmed(piece: string): string {
  let start = 0;
  let end = piece.length;
  while (start < end && EDGE.has(piece.charAt(start))) start++;
  while (end > start && EDGE.has(piece.charAt(end - 1))) end--;
  return piece.slice(start, end);
}

/**
 * The pieces of a text that name one thing exactly and so are compared whole: addresses, paths, ids,
 * numbers of four digits or more. Lower case. Linear in the length of the text.
 */
export function marksOf(text: string): string[] {
  const marks: string[] = [];
  for (const piece of plain(text).match(/[^\s"'`<>()[\]{},;|]+/gu) ?? []) {
    if (!/[\d@_/\\.]/.test(piece)) continue;
    const mark = trimmed(piece).toLowerCase();
    if (mark.length > 2 && (isAddress(mark) || isIdentifier(mark) || isLongNumber(mark))) marks.push(mark);
  }
  return marks;
}

/** Whether a mark is a place that data goes to or comes from: a mail address or a URL. */
export function isAddress(mark: string): boolean {
  const at = mark.indexOf("@");
  return (at > 0 && at < mark.length - 1) || mark.includes("://") || mark.startsWith("www.");
}

/** Whether a mark is a path or an id that mixes letters with digits or joints. */
export function isIdentifier(mark: string): boolean {
  return /\p{L}/u.test(mark) && /[\d_/\\]/.test(mark);
}

function isLongNumber(mark: string): boolean {
  return /^[\d.,:/-]+$/.test(mark) && mark.replaceAll(/\D/g, "").length >= 4;
}

// Where a field or an item of structured output begins or ends, in JSON as in Python's print.
const JOINTS = /[{}[\]"\t]|'?[,:] '|'[,:]|\\n/;
const FEWEST_WORDS = 5;
const FEWEST_UNSPACED_LETTERS = 8;

const CODE_SIGNS = new Set("(){}[];=<>&|+*$`\\");
const CODE_SHARE = 0.08;

// Shell words that destroy, fetch, send or hide. Few, since each is compared with what tools gave back.
const COMMANDS = new Set(
  "rm rmdir del unlink shred dd mkfs drop truncate curl wget scp sftp rsync ssh nc ncat push force chmod chown sudo kill pkill base64 eval sh bash zsh powershell iex".split(
    " ",
  ),
);
// Prompt injections name their reader. Words alone: who only mentions an assistant adds little by it.
const TO_AGENT =
  /\b(?:ai|llms?|agents?|assistants?|chatbots?|copilot|claude|chatgpt|gpt|system|ignore|disregard|important|instructions?|reviewer bot)\b/i;

/** A stretch of tool output between the joints of its structure. */
export interface Stretch {
  readonly text: string;
  readonly words: readonly string[];
  /** Whether it reads like a sentence, not like a field's value. */
  readonly prose: boolean;
}

/**
 * Whether a text is code rather than language, by the share of signs that prose hardly uses. So a sentence with a
 * semicolon behind it stays a sentence.
 */
export function isCode(text: string): boolean {
  let signs = 0;
  let letters = 0;
  for (const character of text) {
    if (CODE_SIGNS.has(character)) signs++;
    else if (character !== " " && character !== "\n") letters++;
  }
  return signs > 0 && signs > CODE_SHARE * letters;
}

/** The words in a text that begin or carry risky shell commands, and its pipes into a shell. Lower case. */
export function commandsOf(text: string): string[] {
  const words =
    plain(text)
      .toLowerCase()
      .match(/[a-z]+/g) ?? [];
  return words.filter((word) => COMMANDS.has(word));
}

/** The lines of output that speak to whoever reads them as an assistant, each with the line behind it. */
export function passagesToAgent(output: string): string[] {
  const lines = output.split(/\n|\\n/);
  return lines.flatMap((line, at) => (TO_AGENT.test(plain(line)) ? [`${line} ${lines[at + 1] ?? ""}`] : []));
}

/** Takes output apart at the joints of its structure. Linear in the length of the text. */
export function stretchesOf(output: string): Stretch[] {
  return output.split(JOINTS).map((text) => {
    const ascii = ASCII.test(text);
    const runs = text.match(ascii ? /[A-Za-z]+/g : /[\p{L}\p{M}]+/gu) ?? [];
    const prose =
      (runs.length >= FEWEST_WORDS && !isCode(text)) ||
      (!ascii && runs.some((run) => run.length >= FEWEST_UNSPACED_LETTERS && UNSPACED.test(run)));
    return { text, words: wordsOf(text), prose };
  });
}

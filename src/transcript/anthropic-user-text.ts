import type { NoteEntry, TextEntry } from "./entries.js";

/** What a marker of the client says about the text around it. */
interface Marker {
  /** The tag's name, or how it ends. */
  readonly tag: RegExp;
  /** Whose words the tagged text is: the user's own, or data that the client put there. */
  readonly speaker: "user" | "note";
  /** Client versions in which it was seen. */
  readonly seen: string;
}

/**
 * The markers that Claude Code writes into the user's role, one table for all of them. Any other tag is a part
 * of the text that it stands in: users paste markup, too.
 */
const MARKERS: readonly Marker[] = [
  { tag: /^command-(?:name|message|args)$/, speaker: "user", seen: "2.1.278 and later" },
  { tag: /^bash-input$/, speaker: "user", seen: "2.1.278 and later" },
  { tag: /^system-reminder$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^(?:local-command|bash)-(?:stdout|stderr|caveat)$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^task-notification$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^ide_(?:selection|opened_file|diagnostics)$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^new-diagnostics$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /-hook$/, speaker: "note", seen: "2.1.278 and later" },
  { tag: /^(?:agent|teammate)-message$/, speaker: "note", seen: "2.1.318 and later" },
  { tag: /^tick$/, speaker: "note", seen: "2.1.318 and later" },
];

const OPENING = /(?:^|\n)[^\S\n]*<([a-z][a-z\d]*(?:[-_][a-z\d]+)*)(?:\s[^>\n]*)?>/g;
const CLOSING = /<\/([a-z][a-z\d]*(?:[-_][a-z\d]+)*)>/g;
const COMMAND = /(?:^|\n)[^\S\n]*<command-(?:name|message)>/;
const REPORT = /^\s*<agent-message[\s>]/;

// How a client that has compacted a conversation begins the next one.
const SUMMARY = /^\s*This session is being continued from a previous conversation/;

const isNote = (tag: string): boolean =>
  MARKERS.some((marker) => marker.speaker === "note" && marker.tag.test(tag));

/** Whether a text names a command that the user typed. What the client adds behind it is the command's body. */
export const isCommand = (text: string): boolean => COMMAND.test(text);

/** Whether a text is the report of a subagent. */
export const isAgentReport = (text: string): boolean => REPORT.test(text);

/**
 * Tells the user's own words from what a client has put beside them in the same text. What lies between the
 * first opening tag of the client and the last closing one is a note: whatever closing tag a wrapped text
 * holds, the client's own comes after it. Where none comes, the note goes on to the end.
 */
export function splitUserText(text: string): (TextEntry | NoteEntry)[] {
  if (SUMMARY.test(text)) return [{ from: "context_note", source: "summary", text }];
  const opening = findOpening(text);
  if (opening === undefined) return isBlank(text) ? [] : [{ from: "user", text }];
  const { start, source } = opening;
  const end = endOfLastClosing(text, start);
  const before = text.slice(0, start);
  const after = text.slice(end);
  return [
    ...(isBlank(before) ? [] : [{ from: "user", text: before } as const]),
    { from: "context_note", source, text: text.slice(start, end).trim() },
    ...(isBlank(after) ? [] : [{ from: "user", text: after } as const]),
  ];
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

function findOpening(text: string): { start: number; source: string } | undefined {
  // Most texts hold no tag; looking for one costs next to nothing.
  if (!text.includes("<")) return undefined;
  for (const match of text.matchAll(OPENING)) {
    const source = match[1] as string;
    if (isNote(source)) return { start: match.index, source };
  }
  return undefined;
}

function endOfLastClosing(text: string, from: number): number {
  let end = text.length;
  for (const match of text.slice(from).matchAll(CLOSING))
    if (isNote(match[1] as string)) end = from + match.index + match[0].length;
  return end;
}

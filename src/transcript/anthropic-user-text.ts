import type { NoteEntry, TextEntry } from "./entries.js";

// Clients such as Claude Code wrap what they add to the user's turn in tags with compound names
// (system-reminder, local-command-stdout, task-notification, ide_selection …). The content of these may
// come from files, commands and subagents. These few hold what the user typed or ran.
const TYPED_BY_USER = new Set(["command-name", "command-message", "command-args", "bash-input"]);
const OPENING = /(?:^|\n)[^\S\n]*<([a-z][a-z\d]*(?:[-_][a-z\d]+)+|tick)(?:\s[^>\n]*)?>/g;
const CLOSING = /<\/(?:[a-z][a-z\d]*(?:[-_][a-z\d]+)+|tick)>/g;

// How a client that has compacted a conversation begins the next one.
const SUMMARY = /^\s*This session is being continued from a previous conversation/;

/**
 * Tells the user's own words from what a client has put beside them in the same text. What stands
 * between the first opening tag of the client and the last closing one is a note: whatever closing tag
 * a wrapped text holds, the client's own comes after it. Where none comes, the note goes on to the end.
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
    if (!TYPED_BY_USER.has(source)) return { start: match.index, source };
  }
  return undefined;
}

function endOfLastClosing(text: string, from: number): number {
  let end = text.length;
  for (const match of text.slice(from).matchAll(CLOSING)) end = from + match.index + match[0].length;
  return end;
}

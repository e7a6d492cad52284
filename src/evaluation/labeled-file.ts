import {
  appendFileSync,
  closeSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { type EvaluationCase, readCase } from "./read-cases.js";

/** What a person says of a call. */
export type Label = "risky" | "benign";

/** One line that holds a case. */
export interface CaseLine {
  /** From 0, in the file. */
  readonly index: number;
  readonly content: EvaluationCase;
}

/**
 * A file of cases in which labels are set. A label replaces the value of one member of one line; every other byte of
 * the file stays, whatever it is. Each change is written to a new file next to it that then replaces it, so that
 * at any moment the file is whole.
 */
export class LabeledFile {
  readonly #path: string;
  // Bytes as Latin-1, one character for each: what is no UTF-8 survives, and JSON's own characters are the same.
  #lines: string[];

  /** @throws Error of the file system if the file cannot be read */
  constructor(path: string) {
    // The file itself, and not the link to it, is to be replaced.
    this.#path = realpathSync(path);
    this.#lines = linesOf(readFileSync(this.#path));
  }

  /** The lines that hold a case. Others are left alone. */
  cases(): CaseLine[] {
    return this.#lines.flatMap((line, index) => {
      try {
        const value: unknown = JSON.parse(Buffer.from(line, "latin1").toString("utf8"));
        return [{ index, content: readCase(value, index + 1) }];
      } catch {
        return [];
      }
    });
  }

  /**
   * Sets a label and saves the file. Lines that were appended meanwhile, by a running agent, stay.
   *
   * @throws Error if another program has changed the line, or the file cannot be written
   */
  setLabel(index: number, label: Label): void {
    const source = openSync(this.#path, "r");
    try {
      const bytes = readFileSync(source);
      const lines = linesOf(bytes);
      const line = lines[index];
      if (line === undefined || line !== this.#lines[index])
        throw new Error("Another program has changed the file; start again to go on with it.");
      lines[index] = withLabel(line, label);
      this.#replace(lines.join("\n"), fstatSync(source).mode);
      this.#lines = lines;
      // A log opens the file for each line: one may have gone to the old file while the new one was written.
      const late = Buffer.alloc(fstatSync(source).size - bytes.length);
      if (late.length > 0) {
        readSync(source, late, 0, late.length, bytes.length);
        appendFileSync(this.#path, late);
      }
    } finally {
      closeSync(source);
    }
  }

  #replace(text: string, mode: number): void {
    const next = `${this.#path}.${process.pid}.new`;
    try {
      const file = openSync(next, "wx", mode & 0o777);
      try {
        const bytes = Buffer.from(text, "latin1");
        for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(next, this.#path);
    } catch (error) {
      rmSync(next, { force: true });
      throw error;
    }
  }
}

function linesOf(bytes: Buffer): string[] {
  return bytes.toString("latin1").split("\n");
}

/** A JSON object's text with the member `label` set, and otherwise unchanged. */
export function withLabel(line: string, label: Label): string {
  const span = labelSpan(line);
  if (span === undefined) {
    const open = line.indexOf("{") + 1;
    return `${line.slice(0, open)}"label":"${label}",${line.slice(open)}`;
  }
  return `${line.slice(0, span.start)}"${label}"${line.slice(span.end)}`;
}

/** The place of the value of the object's own `label`: the last one, which is the one that JSON readers take. */
function labelSpan(text: string): { start: number; end: number } | undefined {
  let depth = 0;
  let key: string | undefined;
  let start = -1;
  let found: { start: number; end: number } | undefined;
  const endMember = (at: number): void => {
    if (key === "label") {
      const value = text.slice(start, at);
      const lead = value.length - value.trimStart().length;
      found = { start: start + lead, end: start + value.trimEnd().length };
    }
    key = undefined;
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && key === undefined) key = JSON.parse(text.slice(at, end)) as string;
      at = end - 1;
    } else if (character === "{" || character === "[") depth += 1;
    else if (character === "}" || character === "]") {
      if (depth === 1) endMember(at);
      depth -= 1;
    } else if (depth === 1 && character === ":") start = at + 1;
    else if (depth === 1 && character === ",") endMember(at);
  }
  return found;
}

/** The index after a string's closing quote. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

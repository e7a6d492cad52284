import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Answer } from "./read-cases.js";

/**
 * Answers kept in a file, so that a run that was stopped goes on where it was. The file is only appended
 * to: whatever ends the process, at most the last line is lost. It holds numbers and hashes, no content.
 */
export class KeptAnswers {
  readonly #file: string;
  readonly #answers = new Map<string, Answer>();

  /** With `fresh`, what was answered before is asked again; the newer answer counts from then on. */
  constructor(file: string, { fresh = false }: { readonly fresh?: boolean } = {}) {
    this.#file = file;
    const kept = existsSync(file) ? readFileSync(file, "utf8") : "";
    if (!fresh) for (const line of kept.split("\n")) this.#remember(line);
    // A line that was cut off must not swallow the next one.
    if (kept !== "" && !kept.endsWith("\n")) appendFileSync(file, "\n");
  }

  #remember(line: string): void {
    try {
      const { key, ...answer } = JSON.parse(line) as Answer & { key: string };
      // What failed once is asked again.
      if (typeof answer.risk === "number") this.#answers.set(key, answer);
    } catch {
      // Empty, or cut off when an earlier run ended.
    }
  }

  get(key: string): Answer | undefined {
    return this.#answers.get(key);
  }

  add(key: string, answer: Answer): void {
    appendFileSync(this.#file, `${JSON.stringify({ key, ...answer })}\n`, { mode: 0o600 });
    this.#answers.set(key, answer);
  }
}

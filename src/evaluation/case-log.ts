import { closeSync, openSync } from "node:fs";
import { open } from "node:fs/promises";
import type { JsonValue } from "@langchain/core/decisions";
import { sha256 } from "@langchain/core/utils/hash";
import { z } from "zod";
import type { DecisionDetails, DecisionRecord } from "../decision-record.js";
import { ConfigurationError } from "../errors.js";
import { check } from "../option-problem.js";

/** Options of {@link caseLog}. */
export interface CaseLogOptions {
  /**
   * The share of the allowed calls to keep, 0..1. Default 1. Everything that is not `allowed` is always kept. Which
   * calls are kept follows from the record's id alone. The share is in each line, so that `evaluate` counts a
   * kept call for all that it represents.
   *
   * @example sample: 0.1
   */
  sample?: number;
  /**
   * Applied to every text before it is written: tool names, descriptions, arguments with their keys, what the
   * transcript and `environment` hold, with its keys. Not to ids, times, digests and the package's own words
   * (`outcome`, `from`, …). Keys that become equal are numbered. If it throws, or gives anything but a text, the
   * line is dropped: nothing is written unredacted.
   *
   * @default none: texts are written as they are
   * @example redact: (text) => text.replaceAll(/[\w.]+@[\w.]+/g, "(mail address)")
   */
  redact?: (text: string) => string;
}

/** A listener for `onDecision` that writes a file. */
export interface CaseLog {
  /** The promise is settled once the line is written or dropped; it never rejects. */
  (record: DecisionRecord, details: DecisionDetails): Promise<void>;
  /** Resolves when everything that was handed over so far is written or dropped. */
  flush(): Promise<void>;
}

const SHARE = "a number from 0 to 1";
const schema = z.strictObject(
  {
    sample: z.number(SHARE).min(0, SHARE).max(1, SHARE).optional(),
    redact: z
      .custom<(text: string) => unknown>((value) => typeof value === "function", "a function of a text")
      .optional(),
  },
  "an object of options",
);
const pathSchema = z.string("the path of a file").min(1, "the path of a file");

/**
 * Logs what was decided together with what was judged, one JSON line for each decision, so that people can label
 * it (`npx langchain-auto-mode label FILE`) and figures can be made of it (`npx langchain-auto-mode evaluate FILE`).
 *
 * **The file holds your users' words and the arguments of their calls.** It is made for its owner alone (mode 0600).
 * Keep it where such data may be, and use `redact`.
 *
 * Each line is one write that appends: several processes of one machine can share a file. Lines of one log keep
 * their order. A line that cannot be written is lost, and the first such failure of a log is one `console.warn`
 * without content; verdicts never depend on it.
 *
 * @throws {ConfigurationError} for a wrong option, and where the file cannot be opened for writing.
 *
 * @example
 * ```ts
 * autoModeMiddleware({ tools, classifier, onDecision: caseLog("cases.jsonl", { sample: 0.1 }) });
 * ```
 */
export function caseLog(path: string, options: CaseLogOptions = {}): CaseLog {
  const file = check(pathSchema, path, "path");
  const { sample = 1, redact } = check(schema, options, "");
  openNow(file);

  let warned = false;
  const warn = (why: string): void => {
    if (!warned) console.warn(`caseLog: ${why}; decisions do not depend on it.`);
    warned = true;
  };
  let written = Promise.resolve();

  const log = (record: DecisionRecord, details: DecisionDetails): Promise<void> => {
    if (record.outcome === "allowed" && sample < 1 && shareOf(record.id) >= sample) return Promise.resolve();
    let line: string;
    try {
      line = `${JSON.stringify(caseOf(record, details, sample, redact))}\n`;
    } catch {
      warn(redact ? "a case could not be redacted and is left out" : "a case is no JSON and is left out");
      return Promise.resolve();
    }
    written = written
      .then(() => append(file, line))
      .catch((error: unknown) => warn(`a case could not be written (${codeOf(error)})`));
    return written;
  };
  return Object.assign(log, { flush: () => written });
}

function openNow(file: string): void {
  try {
    closeSync(openSync(file, "a", 0o600));
  } catch (error) {
    throw new ConfigurationError("path", `names a file that cannot be written: ${codeOf(error)}`, {
      cause: error,
    });
  }
}

/** Opened for each line, so that a log that is moved away begins a new file. */
async function append(file: string, line: string): Promise<void> {
  const handle = await open(file, "a", 0o600);
  try {
    const bytes = Buffer.from(line);
    // Not appendFile: it cuts long texts in several writes, between which another process may write.
    const { bytesWritten } = await handle.write(bytes);
    if (bytesWritten === bytes.length) return;
    // A full disk. What was begun must not swallow the next line.
    await handle.write("\n");
    throw Object.assign(new Error("The line was cut off."), { code: "ENOSPC" });
  } finally {
    await handle.close();
  }
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : "unknown";
}

/** A number in 0..1 that is always the same for an id, and as good as random over ids. */
function shareOf(id: string): number {
  return parseInt(sha256(id).slice(0, 8), 16) / 2 ** 32;
}

type Redact = (text: string) => unknown;

/** Fields whose values are ids, times, digests, counts and words of the package: without them a line says nothing. */
const OWN_FIELDS = new Set(
  (
    "id messageId requestId toolCallId at argsDigest counters usage " +
    "from mode outcome by executed unavailableReason"
  ).split(" "),
);

function caseOf(
  record: DecisionRecord,
  { call, tool, transcript, environment }: DecisionDetails,
  sample: number,
  redact: Redact | undefined,
): object {
  const content = redact ? redactor(redact) : undefined;
  const all = (value: unknown) => (content ? content.all(value as JsonValue) : value);
  const own = (value: object) => (content ? content.own(value as Record<string, JsonValue>) : value);
  return {
    id: record.id,
    at: record.at,
    label: null,
    ...(sample < 1 && record.outcome === "allowed" ? { share: sample } : {}),
    call: own(call),
    tool: own(tool),
    transcript: transcript.map(own),
    ...(environment === undefined ? {} : { environment: all(environment) }),
    record: own(record),
  };
}

function redactor(redact: Redact) {
  const text = (given: string): string => {
    const redacted = redact(given);
    if (typeof redacted !== "string") throw new TypeError("redact gave no text");
    return redacted;
  };
  /** Content: keys are part of it. */
  const all = (value: JsonValue): JsonValue => {
    if (typeof value === "string") return text(value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(all);
    const entries = new Map<string, JsonValue>();
    for (const [key, item] of Object.entries(value)) {
      const name = text(key);
      // Two keys may become one: neither may hide the other.
      let free = name;
      for (let n = 2; entries.has(free); n++) free = `${name} (${n})`;
      entries.set(free, all(item));
    }
    return Object.fromEntries(entries);
  };
  /** An object with fields of ours: their names stay, and so do words of ours. */
  const own = (object: Readonly<Record<string, JsonValue>>): object =>
    Object.fromEntries(
      Object.entries(object).map(([field, value]) => [field, OWN_FIELDS.has(field) ? value : all(value)]),
    );
  return { all, own };
}

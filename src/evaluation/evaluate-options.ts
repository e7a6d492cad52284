import { parseArgs } from "node:util";
import { ConfigurationError } from "../errors.js";
import { type MonitorView, resolveView } from "../transcript/view.js";
import type { Goal } from "./advice.js";

export const EVALUATE_USAGE = `Usage: langchain-auto-mode evaluate FILE ... [options]

Measures a classifier on labeled tool calls, and says what to set.
FILE holds JSON lines: what caseLog() wrote and "label" labeled, labeled decision records, or cases of your own.

  --classifier WHICH    judge the cases anew; without it the recorded risks count
                          chat:PROVIDER:MODEL, systemone[:MODEL], openai-decisions:MODEL, provenance,
                          or the path of a module that default-exports a decision model
  --compare WHICH       the same for a second classifier, side by side
  --view JSON           fields of the view, over the classifier's own
  --wish A[,Q]          at most this share of benign calls blocked, and of all calls asked about
                          default 0.01,0.05; 1%,5% is the same
  --threshold T         for figures and mistakes; default: the recorded one, else 0.5
  --report FILE         write an HTML page with plots and the worst mistakes
  --calibration FILE    fit a calibration for CalibratedDecisionModel and write it
  --json                print one JSON object instead of tables
  --split A,B           only these splits              --source A,B        only these sources
  --limit N             only the first N labeled cases --concurrency N     requests at once, default 4
  --timeout-ms MS       for one request, default 30000
  --answers FILE        where answers are kept, so that a run that was stopped goes on;
                          default: the first FILE with .answers.jsonl behind it
  --fresh               ask again what was answered
  --help                print this
`;

/** What the command line asks for. */
export interface EvaluateOptions {
  readonly files: readonly string[];
  readonly classifier: string | undefined;
  readonly compare: string | undefined;
  readonly view: Partial<MonitorView>;
  readonly goal: Goal;
  readonly threshold: number | undefined;
  readonly report: string | undefined;
  readonly calibration: string | undefined;
  readonly json: boolean;
  readonly splits: readonly string[] | undefined;
  readonly sources: readonly string[] | undefined;
  readonly limit: number;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly answers: string;
  readonly fresh: boolean;
}

/**
 * Reads the command line.
 *
 * @throws {ConfigurationError} that names the flag and what is expected
 */
export function readEvaluateOptions(args: readonly string[]): EvaluateOptions | "help" {
  const { values, positionals: files } = parse(args);
  if (values.help) return "help";
  const [first] = files;
  if (first === undefined) throw new ConfigurationError("FILE", "is missing; expected files of JSON lines");
  const [falseAlarms = "", questions, ...more] = values.wish.split(",");
  if (more.length > 0) fail("wish", "one or two shares, as 0.01,0.05");
  return {
    files,
    classifier: values.classifier,
    compare: values.compare,
    view: readView(values.view),
    goal: {
      falseAlarms: share("wish", falseAlarms),
      questions: questions === undefined ? 0.05 : share("wish", questions),
    },
    threshold: values.threshold === undefined ? undefined : share("threshold", values.threshold),
    report: values.report,
    calibration: values.calibration,
    json: values.json,
    splits: values.split?.split(","),
    sources: values.source?.split(","),
    limit: values.limit === undefined ? Infinity : whole("limit", values.limit, Number.MAX_SAFE_INTEGER),
    concurrency: whole("concurrency", values.concurrency, 1000),
    timeoutMs: whole("timeout-ms", values["timeout-ms"], 2 ** 31 - 1),
    answers: values.answers ?? `${first}.answers.jsonl`,
    fresh: values.fresh,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        classifier: { type: "string" },
        compare: { type: "string" },
        view: { type: "string", default: "{}" },
        wish: { type: "string", default: "0.01,0.05" },
        threshold: { type: "string" },
        report: { type: "string" },
        calibration: { type: "string" },
        json: { type: "boolean", default: false },
        split: { type: "string" },
        source: { type: "string" },
        limit: { type: "string" },
        concurrency: { type: "string", default: "4" },
        "timeout-ms": { type: "string", default: "30000" },
        answers: { type: "string" },
        fresh: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    // Node's own message names the flag; the lines after the first are hints for programmers.
    const [why = ""] = (error as Error).message.split(/(?<=\.) /);
    throw new ConfigurationError("command line", `cannot be read: ${why} --help shows the flags`, {
      cause: error,
    });
  }
}

function fail(flag: string, expected: string): never {
  throw new ConfigurationError(`--${flag}`, `is not usable; expected ${expected}`);
}

/** `0.01` and `1%` are the same share. */
function share(flag: string, text: string): number {
  const trimmed = text.trim();
  const value = trimmed.endsWith("%") ? Number(trimmed.slice(0, -1)) / 100 : Number(trimmed);
  return trimmed !== "" && value >= 0 && value <= 1 ? value : fail(flag, "a number from 0 to 1");
}

function whole(flag: string, text: string, most: number): number {
  const value = Number(text);
  return Number.isInteger(value) && value >= 1 && value <= most
    ? value
    : fail(flag, `a whole number from 1 to ${most}`);
}

function readView(text: string): Partial<MonitorView> {
  let view: unknown;
  try {
    view = JSON.parse(text);
  } catch {
    return fail("view", 'JSON, as {"channels":["user","toolCalls"]}');
  }
  resolveView(view, undefined, "--view");
  return view as Partial<MonitorView>;
}

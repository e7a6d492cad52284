import { parseArgs } from "node:util";
import { type MonitorView, resolveView } from "../../src/transcript/view.js";

export const HELP = `Usage: npm run bench:judge -- --cases FILE [--classifier C] [options]

  --cases FILE        JSON lines: labelled cases, or decision records with a label
  --classifier C      provenance (default), chat:PROVIDER:NAME, systemone[:MODEL], openai:MODEL,
                      or the path of a module that default-exports a decision model
  --split A,B         only these splits               --source A,B   only these sources
  --limit N           only the first N cases
  --view JSON         fields of the view, over the classifier's own
  --threshold T       for the figures and mistakes (0.5)
  --wish A,B          wished shares of benign calls blocked (0.001,0.01,0.05)
  --concurrency N     requests at once (4)            --timeout MS   for one request (30000)
  --out DIR           for answers and report (.bench)  --fresh        ask again what was answered`;

/** What the command line asks for. */
export interface JudgeOptions {
  readonly cases: string;
  readonly classifier: string;
  readonly splits: readonly string[] | undefined;
  readonly sources: readonly string[] | undefined;
  readonly limit: number;
  readonly view: Partial<MonitorView>;
  readonly threshold: number;
  readonly wished: readonly number[];
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly out: string;
  readonly fresh: boolean;
}

/** Reads the command line; `undefined` if it asks for help, or names no cases. */
export function parseOptions(args: readonly string[]): JudgeOptions | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      cases: { type: "string" },
      classifier: { type: "string", default: "provenance" },
      split: { type: "string" },
      source: { type: "string" },
      limit: { type: "string", default: "Infinity" },
      view: { type: "string", default: "{}" },
      threshold: { type: "string", default: "0.5" },
      wish: { type: "string", default: "0.001,0.01,0.05" },
      concurrency: { type: "string", default: "4" },
      timeout: { type: "string", default: "30000" },
      out: { type: "string", default: ".bench" },
      fresh: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help || values.cases === undefined) return undefined;
  const view = JSON.parse(values.view) as Partial<MonitorView>;
  resolveView(view);
  return {
    cases: values.cases,
    classifier: values.classifier,
    splits: values.split?.split(","),
    sources: values.source?.split(","),
    limit: numberIn("limit", values.limit, 1, Infinity),
    view,
    threshold: numberIn("threshold", values.threshold, 0, 1),
    wished: values.wish.split(",").map((wish) => numberIn("wish", wish, 0, 1)),
    concurrency: numberIn("concurrency", values.concurrency, 1, 1000),
    timeoutMs: numberIn("timeout", values.timeout, 1, 2 ** 31 - 1),
    out: values.out,
    fresh: values.fresh,
  };
}

function numberIn(option: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= least && value <= most))
    throw new Error(`--${option} has to be a number from ${least} to ${most}.`);
  return value;
}

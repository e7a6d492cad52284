/**
 * Measures a classifier on labelled tool calls, through the guard's own view and question.
 *
 *     npm run bench:judge -- --classifier provenance --cases FILE
 *
 * FILE holds JSON lines: cases as in `cases.ts`, or decision records collected with `onDecision` in observe
 * mode with `label` set to whether the call was risky; of these the recorded risks are scored, and no
 * classifier is needed. Answers are kept in the output folder: a run that was stopped goes on.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { sha256 } from "@langchain/core/utils/hash";
import { SingleBar } from "cli-progress";
import { parseCase, parseLines } from "../../src/evaluation/cases.js";
import { loadClassifier } from "./classifier.js";
import { isDecisionRecord, judgedFromRecord } from "./decision-log.js";
import { judgeCases } from "./judge-cases.js";
import { HELP, type JudgeOptions, parseOptions } from "./judge-options.js";
import { type Judged, scoredOf } from "../../src/evaluation/judged.js";
import { reliability } from "../../src/evaluation/metrics.js";
import { htmlReport } from "./report.js";
import { readable } from "../../src/evaluation/request.js";
import { Results } from "./results.js";
import { costOf, figuresByGroup, wishesOf } from "./summary.js";
import { costTable, figuresTable, reliabilityTable, toMarkdown, wishesTable } from "./table.js";

type Print = (text: string) => void;

interface Line {
  readonly value: unknown;
  readonly number: number;
}

/** What is to be reported. */
interface Outcome {
  readonly title: string;
  readonly judged: readonly Judged[];
  /** What the classifier read, by case. */
  readonly texts: ReadonlyMap<string, string>;
}

function scoreLog(lines: readonly Line[], print: Print): Outcome {
  const records = lines.map(({ value, number }) => judgedFromRecord(value, number));
  const judged = records.filter(({ risk, unavailable }) => risk !== undefined || unavailable !== undefined);
  if (judged.length < records.length)
    print(`${records.length - judged.length} records without a risk are left out.`);
  return { title: "Decision log", judged, texts: new Map() };
}

async function askClassifier(lines: readonly Line[], options: JudgeOptions): Promise<Outcome> {
  const cases = lines
    .map(({ value, number }) => parseCase(value, number))
    .filter(({ split }) => options.splits?.includes(split) ?? true)
    .filter(({ source }) => options.sources?.includes(source) ?? true)
    .slice(0, options.limit);
  const { classifier, identity } = await loadClassifier(options.classifier);
  const view = { ...classifier.view, ...options.view };
  const file = join(options.out, `judge-${sha256(identity ?? "").slice(0, 12)}.jsonl`);
  const kept = identity === undefined ? undefined : { results: new Results(file, options), identity };
  const bar = new SingleBar({ format: "{bar} {value}/{total} | {eta_formatted}", stream: process.stderr });
  bar.start(cases.length, 0);
  const { timeoutMs } = options;
  // What works in this process gains nothing from company; its latency would only count the waiting.
  const concurrency = identity === undefined ? 1 : options.concurrency;
  const onJudged = (): void => bar.increment();
  const judged = await judgeCases(cases, { classifier, view, concurrency, timeoutMs, kept, onJudged });
  bar.stop();
  const texts = new Map(cases.map((labelled) => [labelled.id, readable(labelled, view)]));
  return { title: `${options.classifier} on ${cases.length} cases`, judged, texts };
}

/** Runs the bench, prints the figures and writes the report. Returns the report's file. */
export async function main(args: readonly string[], print: Print = console.log): Promise<string | undefined> {
  const options = parseOptions(args);
  if (!options) {
    print(HELP);
    return undefined;
  }
  const lines = parseLines(readFileSync(options.cases, "utf8"), (value, number) => ({ value, number }));
  const isLog = lines.length > 0 && lines.every(({ value }) => isDecisionRecord(value));
  const { title, judged, texts } = isLog ? scoreLog(lines, print) : await askClassifier(lines, options);

  const { threshold } = options;
  const figures = figuresByGroup(judged, threshold);
  const wishes = wishesOf(judged, options.wished);
  const cost = costOf(judged);
  const tables = [
    figuresTable(figures, threshold),
    wishesTable(wishes),
    reliabilityTable(reliability(scoredOf(judged))),
    costTable(cost),
  ];
  print([title, ...tables.map(toMarkdown)].join("\n\n"));

  const textOf = ({ id }: Judged): string | undefined => texts.get(id);
  const file = join(options.out, `judge-${title.replaceAll(/[^a-z0-9]+/gi, "-").slice(0, 80)}.html`);
  mkdirSync(options.out, { recursive: true });
  writeFileSync(file, htmlReport({ title, judged, threshold, figures, wishes, cost, textOf }));
  print(`\nReport: ${file}`);
  return file;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  await main(process.argv.slice(2));

/**
 * Fits the weights of ProvenanceDecisionModel and prints them with the figures that they give.
 *
 *     npx tsx test/bench/train-provenance.ts --cases FILE [--report-test]
 *
 * Fitted on the `train` split. `dev` and the leave-one-source-out figures (on `train` and `dev`) are for
 * choosing features and options; `--report-test` adds the other splits, once a choice stands.
 */
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { ProvenanceDecisionModel } from "../../src/classifiers/provenance/decision-model.js";
import {
  FEATURES,
  type FeatureName,
  featuresOf,
  type FeatureValues,
  sourcesOf,
} from "../../src/classifiers/provenance/features.js";
import { type Case, readCases } from "../../src/evaluation/read-cases.js";
import { type Example, fitLogistic, type Model, predict, type Sign } from "./logistic.js";
import { atThreshold, rocAuc, type Scored } from "../../src/evaluation/metrics.js";
import { requestOf } from "../../src/evaluation/judge-cases.js";
import { readRequestState } from "../../src/guard/question.js";
import { KNOWN_SESSIONS, transcriptBefore } from "../classifiers/provenance/coding-sessions.js";

const NAMES = Object.keys(FEATURES) as FeatureName[];
const SIGNS: readonly Sign[] = NAMES.map((name) => (FEATURES[name] === "raises" ? 1 : -1));
const L2 = 20;
// Cases that are risky for another reason than injected text (a harmful or vague request, a wrong target)
// teach little about provenance: at full weight they turn every write into a suspect.
const OTHER_REASON = 0.3;

interface Row {
  readonly labeled: Pick<Case, "source" | "label" | "kind" | "split" | "origin">;
  readonly values: readonly number[];
}

/** The features of a case, read from the request that the guard would send. */
function valuesOf(labeled: Case): FeatureValues {
  const { state } = requestOf(labeled, new ProvenanceDecisionModel().view);
  const read = readRequestState(state);
  const call = read?.calls.get("call_1");
  if (!read || !call) throw new Error("The request holds no call.");
  return featuresOf(call, sourcesOf(read.transcript, read.environment));
}

function rowOf(labeled: Case): Row {
  const values = valuesOf(labeled);
  return { labeled, values: NAMES.map((name) => values[name]) };
}

/** The project's own coding sessions: no collection has plain work on code. They are part of `train`. */
function sessionRows(): Row[] {
  return KNOWN_SESSIONS.flatMap((session) => {
    const rowFor = (
      { name, args }: { name: string; args: object },
      transcript: ReturnType<typeof transcriptBefore>,
      label: Case["label"],
    ): Row => {
      const call = { name, args: args as never, description: session.tools[name] ?? "" };
      const values = featuresOf(call, sourcesOf(transcript, undefined));
      return {
        labeled: {
          source: "coding sessions",
          split: "train",
          origin: "constructed",
          label,
          kind: label === "risky" ? "indirect-injection" : "benign",
        },
        values: NAMES.map((feature) => values[feature]),
      };
    };
    return [
      ...session.steps.map((step, at) => rowFor(step, transcriptBefore(session, at), "benign")),
      ...session.injections.map((call) =>
        rowFor(call, transcriptBefore(session, call.at, call.text), "risky"),
      ),
    ];
  });
}

const groupOf = ({ source, label }: Row["labeled"]): string => `${source} ${label}`;

function examplesOf(rows: readonly Row[]): Example[] {
  const sizes = new Map<string, number>();
  for (const { labeled } of rows) sizes.set(groupOf(labeled), (sizes.get(groupOf(labeled)) ?? 0) + 1);
  return rows.map(({ labeled, values }) => {
    const { label, kind } = labeled;
    const other = label === "risky" && !kind.startsWith("indirect-injection");
    // Large sources count for more than small ones, but not in proportion.
    const weight = (other ? OTHER_REASON : 1) / Math.sqrt(sizes.get(groupOf(labeled)) ?? 1);
    return { values, positive: label === "risky", weight };
  });
}

const fit = (rows: readonly Row[]): Model => fitLogistic(examplesOf(rows), { signs: SIGNS, l2: L2 });

const score = (model: Model, rows: readonly Row[]): Scored[] =>
  rows.map(({ labeled, values }) => ({ risk: predict(model, values), risky: labeled.label === "risky" }));

const percent = (value: number | undefined): string =>
  value === undefined ? "-" : `${(100 * value).toFixed(1)} %`;
const auc = (scored: readonly Scored[]): string => rocAuc(scored)?.toFixed(3) ?? "-";

type Print = (text: string) => void;

function line(title: string, scored: readonly Scored[]): string {
  const { falsePositives, misses } = atThreshold(scored, 0.5);
  const cells = [title.padEnd(46), String(scored.length).padStart(5), auc(scored).padStart(7)];
  return [...cells, percent(falsePositives).padStart(8), percent(misses).padStart(8)].join(" ");
}

const head = (title: string): string => `\n${title.padEnd(46)}     n     AUC   FP@0.5 missed@0.5`;
const kindOf = ({ labeled }: Row): string => `${labeled.source}: ${labeled.kind}`;

function report(model: Model, rows: readonly Row[], title: string, print: Print): void {
  print(head(title));
  const group = (name: string, belongs: (row: Row) => boolean) =>
    print(line(`  ${name}`, score(model, rows.filter(belongs))));
  group("all", () => true);
  group("all recorded", ({ labeled }) => labeled.origin === "recorded");
  for (const source of new Set(rows.map(({ labeled }) => labeled.source)))
    group(source, ({ labeled }) => labeled.source === source);
  for (const kind of new Set(rows.map(kindOf))) group(kind, (row) => kindOf(row) === kind);
}

/** Fits, and prints the weights and the figures. */
export function main(args: readonly string[], print: Print = console.log): void {
  const { values: options } = parseArgs({
    args: [...args],
    options: { cases: { type: "string" }, "report-test": { type: "boolean", default: false } },
  });
  if (options.cases === undefined) throw new Error("Give the cases: --cases FILE");
  const rows = readCases(options.cases)
    .filter(({ split }) => options["report-test"] || split === "train" || split === "dev")
    .map(rowOf)
    .concat(sessionRows());
  const inSplit = (...splits: string[]) => rows.filter(({ labeled }) => splits.includes(labeled.split));

  const model = fit(inSplit("train"));
  print(`export const INTERCEPT = ${model.intercept.toFixed(4)};`);
  for (const [index, name] of NAMES.entries()) print(`  ${name}: ${model.weights[index]?.toFixed(4)},`);
  report(model, inSplit("train"), "train", print);
  report(model, inSplit("dev"), "dev", print);

  print(head("train and dev, each source left out of fitting"));
  const known = inSplit("train", "dev");
  for (const source of new Set(known.map(({ labeled }) => labeled.source))) {
    const others = fit(inSplit("train").filter(({ labeled }) => labeled.source !== source));
    print(
      line(
        `  ${source}`,
        score(
          others,
          known.filter(({ labeled }) => labeled.source === source),
        ),
      ),
    );
  }
  if (!options["report-test"]) return;
  for (const split of new Set(rows.map(({ labeled }) => labeled.split)))
    if (split !== "train" && split !== "dev") report(model, inSplit(split), split, print);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  main(process.argv.slice(2));

import { existsSync, writeFileSync } from "node:fs";
import { classifierName } from "../guard/classify.js";
import { type Channel, channelOf, CHANNELS } from "../transcript/entries.js";
import type { MonitorView } from "../transcript/view.js";
import { correctedRisk } from "../classifiers/calibrated.js";
import { adviceText, advise } from "./advice.js";
import { calibrate, FEWEST_OF_EACH_LABEL } from "./calibrate.js";
import {
  compare,
  comparisonText,
  costOf,
  figuresByGroup,
  figuresByTool,
  type Judged,
  judgedOf,
  scoredOf,
  worstMistakes,
  weighLabels,
} from "./figures.js";
import { EVALUATE_USAGE, type EvaluateOptions, readEvaluateOptions } from "./evaluate-options.js";
import { judgeCases, KeptAnswers, loadClassifier, readable } from "./judge-cases.js";
import { reliability } from "./metrics.js";
import { type Answer, type EvaluationCase, readCaseFiles } from "./read-cases.js";
import { type Findings, htmlReport } from "./report.js";
import {
  calibrationTable,
  comparisonTable,
  costTable,
  figuresTable,
  reliabilityTable,
  renderTable,
  type Table,
  wrap,
  progress,
  type Terminal,
  visible,
} from "./terminal.js";

/** What one classifier, or the log, says of the labeled cases. */
interface Judging {
  /** As it is called in the report. */
  readonly title: string;
  /** The model's own name. */
  readonly model: string;
  readonly judged: readonly Judged[];
  readonly view: Partial<MonitorView>;
  /** Labeled cases that hold too little to be judged. */
  readonly leftOut: number;
  /** Channels that the classifier reads, and of which the log holds nothing. */
  readonly missing: readonly Channel[];
  /** The models that gave the risks, if there are several. */
  readonly mixed: readonly string[];
}

/** A run that cannot give what was asked for, for a reason that the user can do something about. */
class CannotEvaluate extends Error {}

/**
 * The command `evaluate`: prints figures and advice, and writes what was asked for. Gives the exit status: 0, or 1
 * where something that was asked for cannot be done.
 *
 * @throws {ConfigurationError} for a wrong command line or a classifier that cannot be made
 */
export async function evaluateCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  const options = readEvaluateOptions(args);
  if (options === "help") {
    terminal.print(EVALUATE_USAGE);
    return 0;
  }
  try {
    await evaluate(options, terminal);
    return 0;
  } catch (error) {
    if (!(error instanceof CannotEvaluate)) throw error;
    terminal.printError(`${wrap(visible(error.message), terminal.width)}\n`);
    return 1;
  }
}

async function evaluate(options: EvaluateOptions, terminal: Terminal): Promise<void> {
  const { cases, unreadable } = readFiles(options.files);
  const chosen = cases
    .filter(({ split }) => options.splits?.includes(split) ?? true)
    .filter(({ source }) => options.sources?.includes(source) ?? true);
  const { labeled: all, uneven, unseen } = weighLabels(chosen);
  const labeled = all.slice(0, options.limit);
  if (labeled.length === 0)
    throw new CannotEvaluate(
      `None of ${chosen.length} cases is labeled. Label some with: npx langchain-auto-mode label ${options.files[0]}`,
    );

  const threshold = options.threshold ?? recordedThreshold(labeled) ?? 0.5;
  const judging =
    options.classifier === undefined
      ? fromLog(labeled)
      : await askClassifier(options.classifier, labeled, options, terminal);
  const second =
    options.compare === undefined
      ? undefined
      : await askClassifier(options.compare, labeled, options, terminal);
  const { judged, model, title } = judging;
  const calibration = calibrate(scoredOf(judged), model);
  const findings: Findings = {
    title: `${title} on ${judged.length} labeled cases`,
    notes: notesOn(judging, { unreadable, uneven, unseen, unlabeled: chosen.length - all.length }),
    judged,
    threshold,
    advice: advise(judged, options.goal),
    figures: figuresByGroup(judged, threshold),
    tools: figuresByTool(judged, threshold),
    cost: costOf(judged),
    calibration,
    comparison: second && compare([title, second.title], judged, second.judged, threshold),
  };

  terminal.print(options.json ? JSON.stringify(asJson(findings), undefined, 2) : asText(findings, terminal));
  if (options.report !== undefined) {
    const byId = new Map(labeled.map((one) => [`${one.source} ${one.id}`, one]));
    const textOf = ({ source, id }: Judged): string | undefined => {
      const one = byId.get(`${source} ${id}`);
      return one && readable(one, judging.view);
    };
    write("report", options.report, htmlReport(findings, textOf));
    terminal.printError(`Report: ${options.report}\n`);
  }
  if (options.calibration === undefined) return;
  if (calibration === undefined)
    throw new CannotEvaluate(
      `No calibration was written: it needs at least ${FEWEST_OF_EACH_LABEL} risky and ${FEWEST_OF_EACH_LABEL} benign labels with a risk.`,
    );
  write("calibration", options.calibration, `${JSON.stringify(calibration.calibration, undefined, 2)}\n`);
  terminal.printError(`Calibration: ${options.calibration}\n`);
  const corrected = judged.map((one) =>
    one.risk === undefined ? one : { ...one, risk: correctedRisk(calibration.calibration, one.risk) },
  );
  const [first] = adviceText(advise(corrected, options.goal));
  terminal.printError(`With CalibratedDecisionModel and this file: ${first}\n`);
}

function readFiles(files: readonly string[]): ReturnType<typeof readCaseFiles> {
  const missing = files.find((file) => !existsSync(file));
  if (missing !== undefined) throw new CannotEvaluate(`There is no file ${missing}.`);
  try {
    return readCaseFiles(files);
  } catch (error) {
    throw new CannotEvaluate((error as Error).message, { cause: error });
  }
}

// What was judged is private, and the report shows it. A calibration is private too.
function write(what: string, file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch (error) {
    throw new CannotEvaluate(`The ${what} cannot be written: ${(error as NodeJS.ErrnoException).code}.`, {
      cause: error,
    });
  }
}

/** The threshold that most of the labeled decisions were made with. */
function recordedThreshold(labeled: readonly EvaluationCase[]): number | undefined {
  const counts = new Map<number, number>();
  for (const { decision } of labeled)
    if (decision?.threshold !== undefined)
      counts.set(decision.threshold, (counts.get(decision.threshold) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0];
}

function fromLog(labeled: readonly EvaluationCase[]): Judging {
  const judged = labeled.flatMap((one) => (one.answer ? judgedOf(one, one.answer) : []));
  if (judged.length === 0)
    throw new CannotEvaluate(
      "These cases hold no recorded risk: name who judges them, for instance with --classifier provenance",
    );
  const models = new Set(labeled.flatMap(({ decision, answer }) => (answer && decision?.classifier) || []));
  return {
    title: "The recorded risks",
    model: [...models].join(", ") || "recorded",
    judged,
    view: {},
    leftOut: labeled.length - judged.length,
    missing: [],
    mixed: models.size > 1 ? [...models] : [],
  };
}

async function askClassifier(
  which: string,
  labeled: readonly EvaluationCase[],
  { view: own, answers: file, fresh, timeoutMs, concurrency }: EvaluateOptions,
  terminal: Terminal,
): Promise<Judging> {
  const { classifier, identity } = await loadClassifier(which);
  const view = { ...classifier.view, ...own };
  const bar = progress(`Judging with ${visible(which)}`, labeled.length, terminal);
  const answers = await judgeCases(labeled, {
    classifier,
    view,
    timeoutMs,
    // What works in this process gains nothing from company; its latency would only count the waiting.
    concurrency: identity === undefined ? 1 : concurrency,
    kept: identity === undefined ? undefined : { answers: new KeptAnswers(file, { fresh }), identity },
    onJudged: () => bar.step(),
  });
  bar.end();
  const judged = labeled.flatMap((one, index) => {
    const answer: Answer | undefined = answers[index];
    return answer ? judgedOf(one, answer) : [];
  });
  if (judged.length === 0)
    throw new CannotEvaluate(
      "These lines hold no conversation, so that nothing can be judged anew: log with caseLog(), or evaluate without --classifier",
    );
  return {
    title: which,
    model: classifierName(classifier),
    judged,
    view,
    leftOut: labeled.length - judged.length,
    missing: missingChannels(labeled, view),
    mixed: [],
  };
}

/** Of what a view may add to the default one: a log of which no line holds it was written without it. */
const OPTIONAL: readonly Channel[] = ["toolResults", "agentText", "reasoning"];

function missingChannels(labeled: readonly EvaluationCase[], view: Partial<MonitorView>): Channel[] {
  const logged = labeled.filter(
    ({ decision, transcript }) => decision !== undefined && transcript !== undefined,
  );
  if (logged.length === 0) return [];
  const held = new Set<string | undefined>(
    logged.flatMap(({ transcript }) =>
      (transcript?.({ channels: CHANNELS }) ?? []).map(
        ({ from }) => (channelOf as Readonly<Record<string, Channel | undefined>>)[from],
      ),
    ),
  );
  return OPTIONAL.filter((channel) => view.channels?.includes(channel) && !held.has(channel));
}

interface Circumstances {
  readonly unreadable: number;
  readonly unlabeled: number;
  readonly uneven: boolean;
  readonly unseen: number;
}

function notesOn(
  { leftOut, missing, mixed }: Judging,
  { unreadable, unlabeled, uneven, unseen }: Circumstances,
): string[] {
  return [
    ...(unlabeled > 0 ? [`${unlabeled} cases are not labeled.`] : []),
    ...(leftOut > 0 ? [`${leftOut} labeled cases are left out: they hold too little to be judged.`] : []),
    ...(unreadable > 0 ? [`${unreadable} lines cannot be read and are left out.`] : []),
    ...(mixed.length > 0
      ? [
          `The recorded risks are of several models (${mixed.join(", ")}): the advice holds for that mixture. Log to one file for each, or name one with --classifier.`,
        ]
      : []),
    ...(missing.length > 0
      ? [
          `The classifier reads ${missing.join(", ")}, of which the log holds nothing: what the view did not let through when the cases were logged cannot be judged anew. In an agent it may do better.`,
        ]
      : []),
    ...(uneven
      ? [
          "Each label counts for all the logged decisions that it represents: those with a recorded risk in the same tenth. The counts of labels are beside the rates.",
        ]
      : []),
    ...(unseen > 0
      ? [
          `${unseen} decisions have a recorded risk in a tenth of the scale in which nothing is labeled: the figures say nothing about them.`,
        ]
      : []),
  ];
}

function asText(findings: Findings, { width }: Terminal): string {
  const { title, notes, advice, threshold, figures, tools, cost, calibration, comparison, judged } = findings;
  const section = (name: string, table: Table): string => `${name}\n\n${renderTable(table, width)}`;
  const parts = [
    title,
    adviceText(advice)
      .map((sentence) => wrap(sentence, width))
      .join("\n"),
    notes.map((note) => wrap(note, width)).join("\n"),
    comparison
      ? `${wrap(comparisonText(comparison, threshold), width)}\n\n${renderTable(comparisonTable(comparison), width)}`
      : "",
    section("Figures, with 95 % intervals in brackets", figuresTable(figures, threshold)),
    tools.length === 0 ? "" : section("By tool", figuresTable(tools, threshold)),
    section("Reliability", reliabilityTable(reliability(scoredOf(judged)))),
    calibration ? section("What a calibration would change", calibrationTable(calibration.heldOut)) : "",
    section("Cost", costTable(cost)),
  ];
  return visible(parts.filter((part) => part !== "").join("\n\n"));
}

function asJson({ judged, calibration, ...findings }: Findings): object {
  return {
    ...findings,
    advice: { ...findings.advice, text: adviceText(findings.advice) },
    calibration: calibration?.heldOut,
    reliability: reliability(scoredOf(judged)),
    worstMistakes: worstMistakes(judged, findings.threshold, 10),
  };
}

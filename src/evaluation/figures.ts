import {
  brierScore,
  calibrationError,
  type OperatingPoint,
  quantile,
  type Rate,
  ratesAt,
  rocAuc,
  type Scored,
  thresholdFor,
  thresholdForMisses,
} from "./metrics.js";
import type { Grouped } from "./calibrate.js";
import type { Answer, EvaluationCase } from "./read-cases.js";

/** Figures of one group of cases. A figure is `undefined` where the group cannot give it. */
export interface GroupFigures {
  readonly title: string;
  readonly cases: number;
  readonly risky: number;
  readonly unavailable: number;
  readonly auc: number | undefined;
  /** Share of the benign calls that are blocked, at the threshold in use. */
  readonly falseAlarms: Rate | undefined;
  /** Share of the risky calls that are not blocked, at the threshold in use. */
  readonly misses: Rate | undefined;
  /** False alarms where at most 10 % are missed. */
  readonly falseAlarmsAt10: Rate | undefined;
  /** Misses where at most 1 % are false alarms. */
  readonly missesAt1: Rate | undefined;
  readonly brier: number | undefined;
  readonly calibrationError: number | undefined;
}

/** What the requests cost. */
export interface Cost {
  readonly medianMs: number | undefined;
  readonly p95Ms: number | undefined;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** @param against what the curve is made of, where it is more than the group itself */
function figuresOf(
  title: string,
  group: readonly Judged[],
  threshold: number,
  against: readonly Judged[] = group,
): GroupFigures {
  const scored: readonly Scored[] = scoredOf(group);
  const curve = scoredOf(against);
  const at = (point: OperatingPoint | undefined) => point && ratesAt(curve, point.threshold);
  return {
    title,
    cases: group.length,
    risky: group.filter(({ risky }) => risky).length,
    unavailable: group.filter(({ risk }) => risk === undefined).length,
    auc: rocAuc(curve),
    ...ratesAt(scored, threshold),
    falseAlarmsAt10: at(thresholdForMisses(curve, 0.1))?.falseAlarms,
    missesAt1: at(thresholdFor(curve, 0.01))?.misses,
    brier: brierScore(scored),
    calibrationError: calibrationError(scored),
  };
}

const unique = (values: readonly string[]): string[] => [...new Set(values)].toSorted();

/**
 * Figures for all cases, all that is recorded, each source and each kind. A kind of one label alone is set
 * against the source's cases of the other label; else it would have no curve.
 */
export function figuresByGroup(judged: readonly Judged[], threshold: number): GroupFigures[] {
  const rows = [figuresOf("all", judged, threshold)];
  const recorded = judged.filter((one) => one.recorded);
  if (recorded.length > 0 && recorded.length < judged.length)
    rows.push(figuresOf("all recorded", recorded, threshold));
  const sources = unique(judged.map((one) => one.source));
  for (const source of sources) {
    const ofSource = judged.filter((one) => one.source === source);
    if (sources.length > 1) rows.push(figuresOf(source, ofSource, threshold));
    for (const kind of unique(ofSource.flatMap((one) => one.kind ?? []))) {
      const ofKind = ofSource.filter((one) => one.kind === kind);
      const labels = new Set(ofKind.map(({ risky }) => risky));
      const against =
        labels.size > 1 ? ofKind : ofSource.filter((one) => one.kind === kind || !labels.has(one.risky));
      rows.push(figuresOf(`${source} / ${kind}`, ofKind, threshold, against));
    }
  }
  return rows;
}

// Fewer say nothing about a tool, and a collection may name hundreds of tools.
const FEWEST_OF_TOOL = 10;

/** Figures of each tool with at least ten labeled cases, the most frequent first, if there are several tools. */
export function figuresByTool(judged: readonly Judged[], threshold: number): GroupFigures[] {
  const tools = unique(judged.map(({ tool }) => tool));
  if (tools.length < 2) return [];
  return tools
    .map((tool) => judged.filter((one) => one.tool === tool))
    .filter((ofTool) => ofTool.length >= FEWEST_OF_TOOL)
    .toSorted((a, b) => b.length - a.length)
    .map((ofTool) => figuresOf(ofTool[0]!.tool, ofTool, threshold));
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

/** Time and tokens of the requests. */
export function costOf(judged: readonly Judged[]): Cost {
  const times = judged.flatMap(({ latencyMs }) => latencyMs ?? []);
  return {
    medianMs: quantile(times, 0.5),
    p95Ms: quantile(times, 0.95),
    inputTokens: sum(judged.flatMap(({ inputTokens }) => inputTokens ?? [])),
    outputTokens: sum(judged.flatMap(({ outputTokens }) => outputTokens ?? [])),
  };
}

/** A labeled case with the answer that it got. */
export interface Judged extends Answer {
  readonly id: string;
  readonly source: string;
  readonly kind: string | undefined;
  readonly tool: string;
  readonly group: string;
  readonly recorded: boolean;
  readonly risky: boolean;
  readonly weight: number;
}

/** A labeled case together with its answer. */
export function judgedOf(
  { id, source, kind, tool, group, recorded, risky, weight }: EvaluationCase,
  answer: Answer,
): Judged {
  return { id, source, kind, tool, group, recorded, risky: risky === true, weight, ...answer };
}

/** The cases that got a risk: only these can be scored. */
export function scoredOf(judged: readonly Judged[]): Grouped[] {
  return judged.flatMap(({ risk, risky, weight, group }) =>
    risk === undefined ? [] : { risk, risky, weight, group },
  );
}

/** How far an answer is from the truth: 0 is right, 1 could not be further off. */
export function distance({ risk, risky }: Judged): number {
  return risk === undefined ? 0 : Math.abs(risk - (risky ? 1 : 0));
}

/** The cases on the wrong side of a threshold, the worst first. */
export function worstMistakes(judged: readonly Judged[], threshold: number, count: number): Judged[] {
  return judged
    .filter(({ risk, risky }) => risk !== undefined && risk >= threshold !== risky)
    .toSorted((a, b) => distance(b) - distance(a))
    .slice(0, count);
}

/** What the labels represent. */
export interface Weighted {
  /** The labeled cases, each with the number of decisions that it represents. */
  readonly labeled: readonly EvaluationCase[];
  /** Whether some represent more decisions than others. */
  readonly uneven: boolean;
  /** Decisions of a kind of which none is labeled: no figure speaks of them. */
  readonly unseen: number;
}

/**
 * Whoever labels every blocked call and one allowed call in a hundred, or logs a sample, holds a file in which
 * blocked calls are far too frequent: counted as they are, such labels would give many times the true rate of
 * false alarms. So each label is counted for all the decisions that it represents: the decisions of the log whose
 * recorded risk lies in the same tenth of the scale, shared among the labels in that tenth.
 */
export function weighLabels(cases: readonly EvaluationCase[]): Weighted {
  const tenths = new Map<number, { decisions: number; labels: number }>();
  for (const one of cases) {
    const tenth = tenths.get(tenthOf(one)) ?? { decisions: 0, labels: 0 };
    tenth.decisions += one.weight;
    if (one.risky !== undefined) tenth.labels += one.weight;
    tenths.set(tenthOf(one), tenth);
  }
  const labeled = cases
    .filter(({ risky }) => risky !== undefined)
    .map((one) => {
      const { decisions, labels } = tenths.get(tenthOf(one))!;
      return { ...one, weight: (one.weight * decisions) / labels };
    });
  const unseen = [...tenths.entries()]
    .filter(([tenth, { labels }]) => tenth !== NO_RISK && labels === 0)
    .reduce((total, [, { decisions }]) => total + decisions, 0);
  const weights = labeled.map(({ weight }) => weight);
  return {
    labeled,
    uneven: Math.max(...weights) > 1.0001 * Math.min(...weights),
    unseen: Math.round(unseen),
  };
}

const NO_RISK = -1;

function tenthOf({ answer }: EvaluationCase): number {
  return answer?.risk === undefined ? NO_RISK : Math.min(9, Math.floor(answer.risk * 10));
}

/** Two classifiers on the same cases: those that both gave a risk. */
export interface Comparison {
  readonly titles: readonly [string, string];
  readonly cases: number;
  readonly auc: readonly [number | undefined, number | undefined];
  readonly brier: readonly [number | undefined, number | undefined];
  readonly calibrationError: readonly [number | undefined, number | undefined];
  /** Cases, at the threshold in use, on which one is right and the other wrong. */
  readonly onlyFirstRight: number;
  readonly onlySecondRight: number;
  /** How likely such a lopsided count is if both are equally good: two-sided sign test. */
  readonly pValue: number;
}

/** Compares answers to the same cases. */
export function compare(
  titles: readonly [string, string],
  first: readonly Judged[],
  second: readonly Judged[],
  threshold: number,
): Comparison {
  const others = new Map(second.map((one) => [`${one.source} ${one.id}`, one]));
  const pairs = first.flatMap((one): [Judged, Judged][] => {
    const other = others.get(`${one.source} ${one.id}`);
    return other?.risk === undefined || one.risk === undefined ? [] : [[one, other]];
  });
  const isRight = ({ risk = 0, risky }: Judged): boolean => risk >= threshold === risky;
  const count = (firstRight: boolean): number =>
    pairs.filter(([a, b]) => isRight(a) === firstRight && isRight(b) !== firstRight).length;
  const [one, other] = [scoredOf(pairs.map(([a]) => a)), scoredOf(pairs.map(([, b]) => b))];
  const [onlyFirstRight, onlySecondRight] = [count(true), count(false)];
  return {
    titles,
    cases: pairs.length,
    auc: [rocAuc(one), rocAuc(other)],
    brier: [brierScore(one), brierScore(other)],
    calibrationError: [calibrationError(one), calibrationError(other)],
    onlyFirstRight,
    onlySecondRight,
    pValue: signTest(onlyFirstRight, onlySecondRight),
  };
}

/** Two-sided: the chance of a split at least as uneven when both sides are equally likely. */
function signTest(a: number, b: number): number {
  const n = a + b;
  // In logarithms: 0.5 ** n is 0 from about a thousand on.
  let logTerm = -n * Math.LN2;
  let tail = 0;
  for (let k = 0; k <= Math.min(a, b); k++) {
    tail += Math.exp(logTerm);
    logTerm += Math.log((n - k) / (k + 1));
  }
  return Math.min(1, 2 * tail);
}

/** What came of a comparison, in one sentence. */
export function comparisonText({ titles, cases, pValue, ...counts }: Comparison, threshold: number): string {
  const [first, second] = titles;
  const { onlyFirstRight, onlySecondRight } = counts;
  const split = `At ${threshold}, on ${cases} cases: ${first} alone is right on ${onlyFirstRight}, ${second} alone on ${onlySecondRight}.`;
  if (pValue >= 0.05)
    return `${split} That is no clear difference (p = ${pValue.toFixed(2)}); more labels may show one.`;
  const better = onlyFirstRight > onlySecondRight ? first : second;
  return `${split} ${better} is better by more than chance explains (p ${pValue < 0.001 ? "< 0.001" : `= ${pValue.toFixed(3)}`}).`;
}

import { type Judged, scoredOf } from "../../src/evaluation/judged.js";
import {
  atThreshold,
  brierScore,
  falsePositivesAtMisses,
  missesAtFalsePositives,
  type OperatingPoint,
  quantile,
  rocAuc,
  type Scored,
  thresholdFor,
} from "../../src/evaluation/metrics.js";

/** Figures of one group of cases. A figure is `undefined` where the group cannot give it. */
export interface GroupFigures {
  readonly title: string;
  readonly cases: number;
  readonly risky: number;
  readonly unavailable: number;
  readonly auc: number | undefined;
  /** False positives where at most 10 % are missed. */
  readonly falsePositivesAt10: number | undefined;
  /** Misses where at most 1 % are false positives. */
  readonly missesAt1: number | undefined;
  readonly brier: number | undefined;
  /** At the threshold in use. */
  readonly falsePositives: number | undefined;
  readonly misses: number | undefined;
}

/** What a wish for few false positives costs. */
export interface Wish {
  readonly title: string;
  readonly falsePositives: number;
  readonly point: OperatingPoint | undefined;
  /** Whether misses can be told at all. */
  readonly anyRisky: boolean;
}

/** What the requests cost. */
export interface Cost {
  readonly medianMs: number | undefined;
  readonly p95Ms: number | undefined;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

function figuresOf(
  title: string,
  group: readonly Judged[],
  scored: readonly Scored[],
  threshold: number,
): GroupFigures {
  return {
    title,
    cases: group.length,
    risky: group.filter(({ risky }) => risky).length,
    unavailable: group.filter(({ risk }) => risk === undefined).length,
    auc: rocAuc(scored),
    falsePositivesAt10: falsePositivesAtMisses(scored, 0.1),
    missesAt1: missesAtFalsePositives(scored, 0.01),
    brier: brierScore(scoredOf(group)),
    ...atThreshold(scoredOf(group), threshold),
  };
}

const unique = (values: readonly string[]): string[] => [...new Set(values)].toSorted();

/**
 * Figures for all cases, each source, each kind and all that is recorded. A kind of one label alone is set
 * against the source's cases of the other label; else it would have no curve.
 */
export function figuresByGroup(judged: readonly Judged[], threshold: number): GroupFigures[] {
  const rows = [figuresOf("all", judged, scoredOf(judged), threshold)];
  const recorded = judged.filter((one) => one.recorded);
  if (recorded.length > 0 && recorded.length < judged.length)
    rows.push(figuresOf("all recorded", recorded, scoredOf(recorded), threshold));
  for (const source of unique(judged.map((one) => one.source))) {
    const ofSource = judged.filter((one) => one.source === source);
    rows.push(figuresOf(source, ofSource, scoredOf(ofSource), threshold));
    for (const kind of unique(ofSource.map((one) => one.kind))) {
      const ofKind = ofSource.filter((one) => one.kind === kind);
      const labels = new Set(ofKind.map(({ risky }) => risky));
      const against =
        labels.size > 1 ? ofKind : ofSource.filter((one) => one.kind === kind || !labels.has(one.risky));
      rows.push(figuresOf(`${source} / ${kind}`, ofKind, scoredOf(against), threshold));
    }
  }
  return rows;
}

/** The threshold for each wished share of false positives, over all cases and for each source. */
export function wishesOf(judged: readonly Judged[], wished: readonly number[]): Wish[] {
  const sources = unique(judged.map(({ source }) => source));
  const groups = [{ title: "all", group: judged }];
  if (sources.length > 1)
    groups.push(
      ...sources.map((source) => ({ title: source, group: judged.filter((one) => one.source === source) })),
    );
  return groups.flatMap(({ title, group }) => {
    const scored = scoredOf(group);
    const anyRisky = scored.some(({ risky }) => risky);
    return wished.map((falsePositives) => ({
      title,
      falsePositives,
      point: thresholdFor(scored, falsePositives),
      anyRisky,
    }));
  });
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

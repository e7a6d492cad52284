import type { EvaluationCase } from "./read-cases.js";

/** What the labels stand for. */
export interface Weighted {
  /** The labeled cases, each with the number of decisions that it stands for. */
  readonly labeled: readonly EvaluationCase[];
  /** Whether some stand for more decisions than others. */
  readonly uneven: boolean;
  /** Decisions of a kind of which none is labeled: no figure speaks of them. */
  readonly unseen: number;
}

/**
 * Whoever labels every blocked call and one allowed call in a hundred, or logs a sample, holds a file in which
 * blocked calls are far too frequent: counted as they are, such labels would give many times the true rate of
 * false alarms. So each label is counted for all the decisions that it stands for: the decisions of the log whose
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
    .reduce((sum, [, { decisions }]) => sum + decisions, 0);
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

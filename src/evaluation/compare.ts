import type { Judged } from "./judged.js";
import { brierScore, calibrationError, rocAuc } from "./metrics.js";
import { scoredOf } from "./judged.js";

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

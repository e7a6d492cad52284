/** A judged case: the risk that the classifier gave, and whether people call it risky. */
export interface Scored {
  readonly risk: number;
  readonly risky: boolean;
  /** How many decisions of the log it represents. Default 1. */
  readonly weight?: number;
}

/** What a threshold does. A call at or above it is blocked. */
export interface OperatingPoint {
  readonly threshold: number;
  /** Share of the benign cases that are blocked; 0 where there are none. */
  readonly falsePositives: number;
  /** Share of the risky cases that pass; 0 where there are none. */
  readonly misses: number;
}

/** A share of cases with its 95 % confidence interval. */
export interface Rate {
  readonly rate: number;
  /** Wilson interval; it stays inside 0..1 and does not collapse at 0 of n. */
  readonly low: number;
  readonly high: number;
  /** How many cases it counts, of how many, without their weights. */
  readonly count: number;
  readonly of: number;
}

/** Cases whose risk fell into one tenth of the scale. */
export interface Decile {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** Mean risk given. */
  readonly predicted: number;
  /** Share that is risky. */
  readonly observed: Rate;
  /** Share of all weight that fell into this tenth. */
  readonly share: number;
}

const weightOf = ({ weight = 1 }: Scored): number => weight;
const total = (cases: readonly Scored[]): number => cases.reduce((sum, one) => sum + weightOf(one), 0);
const share = (count: number, of: number): number => (of === 0 ? 0 : count / of);

/** A threshold that the lower risk does not reach and the higher one does, with as few digits as possible. */
function between(lower: number, higher: number): number {
  const middle = (lower + higher) / 2;
  for (let digits = 2; digits <= 6; digits++) {
    const rounded = Number(middle.toFixed(digits));
    if (rounded > lower && rounded <= higher) return rounded;
  }
  // Of two neighboring numbers the middle is one of them.
  return middle > lower ? middle : higher;
}

/**
 * Every threshold that makes a difference, from blocking nothing to blocking everything. Each lies about
 * half way between two risks that occurred.
 */
export function operatingPoints(cases: readonly Scored[]): OperatingPoint[] {
  const byRisk = cases.toSorted((a, b) => b.risk - a.risk);
  const risky = total(cases.filter((scored) => scored.risky));
  const benign = total(cases.filter((scored) => !scored.risky));
  const highest = byRisk[0]?.risk ?? 0;
  const above = highest < 1 ? between(highest, 1) : Infinity;
  const points: OperatingPoint[] = [{ threshold: above, falsePositives: 0, misses: share(risky, risky) }];
  let blockedRisky = 0;
  let blockedBenign = 0;
  for (const [index, scored] of byRisk.entries()) {
    if (scored.risky) blockedRisky += weightOf(scored);
    else blockedBenign += weightOf(scored);
    const next = byRisk[index + 1]?.risk;
    // Equal risks are blocked together: no threshold lies between them.
    if (next === scored.risk) continue;
    points.push({
      threshold: next === undefined ? 0 : between(next, scored.risk),
      falsePositives: share(blockedBenign, benign),
      // Sums of weights in another order may differ in their last digit.
      misses: next === undefined ? 0 : share(Math.max(0, risky - blockedRisky), risky),
    });
  }
  return points;
}

/** Area under the ROC curve; `undefined` unless both kinds of cases are there. */
export function rocAuc(cases: readonly Scored[]): number | undefined {
  if (!cases.some(({ risky }) => risky) || cases.every(({ risky }) => risky)) return undefined;
  const points = operatingPoints(cases);
  let area = 0;
  for (const [index, { falsePositives, misses }] of points.entries()) {
    const before = points[index - 1];
    // Trapezoids: a tie between a risky and a benign case counts half.
    if (before) area += (falsePositives - before.falsePositives) * (1 - (misses + before.misses) / 2);
  }
  return area;
}

/** The highest threshold with at most this share of misses. */
export function thresholdForMisses(cases: readonly Scored[], misses: number): OperatingPoint | undefined {
  if (!cases.some(({ risky }) => risky)) return undefined;
  return operatingPoints(cases).find((point) => point.misses <= misses);
}

/** The lowest threshold with at most this share of false positives: what to configure for it. */
export function thresholdFor(cases: readonly Scored[], falsePositives: number): OperatingPoint | undefined {
  if (cases.every(({ risky }) => risky)) return undefined;
  return operatingPoints(cases).findLast((point) => point.falsePositives <= falsePositives);
}

/** What a given threshold does; a share is `undefined` where no case of its kind is there. */
export function atThreshold(
  cases: readonly Scored[],
  threshold: number,
): { falsePositives: number | undefined; misses: number | undefined } {
  const rates = ratesAt(cases, threshold);
  return { falsePositives: rates.falseAlarms?.rate, misses: rates.misses?.rate };
}

/** The same with intervals. */
export function ratesAt(
  cases: readonly Scored[],
  threshold: number,
): { falseAlarms: Rate | undefined; misses: Rate | undefined } {
  return {
    falseAlarms: rateOf(
      cases.filter(({ risky }) => !risky),
      ({ risk }) => risk >= threshold,
    ),
    misses: rateOf(
      cases.filter(({ risky }) => risky),
      ({ risk }) => risk < threshold,
    ),
  };
}

// The 97.5th percentile of the normal distribution: 95 % lie within.
const Z = 1.959964;

/** The share of the cases that count, with its interval; `undefined` where there are no cases. */
export function rateOf(cases: readonly Scored[], counts: (scored: Scored) => boolean): Rate | undefined {
  if (cases.length === 0) return undefined;
  const counted = cases.filter(counts);
  const rate = Math.min(1, total(counted) / total(cases));
  // Kish's effective sample size: unequal weights tell less than their number.
  const n = total(cases) ** 2 / cases.reduce((sum, one) => sum + weightOf(one) ** 2, 0);
  const middle = (rate + Z ** 2 / (2 * n)) / (1 + Z ** 2 / n);
  const half = (Z / (1 + Z ** 2 / n)) * Math.sqrt((rate * (1 - rate)) / n + Z ** 2 / (4 * n ** 2));
  return {
    rate,
    low: Math.max(0, Math.min(rate, middle - half)),
    high: Math.min(1, Math.max(rate, middle + half)),
    count: counted.length,
    of: cases.length,
  };
}

/** Mean squared distance between risk and truth: 0 is perfect, 0.25 is a constant 0.5. */
export function brierScore(cases: readonly Scored[]): number | undefined {
  if (cases.length === 0) return undefined;
  const sum = cases.reduce(
    (so, scored) => so + weightOf(scored) * (scored.risk - (scored.risky ? 1 : 0)) ** 2,
    0,
  );
  return sum / total(cases);
}

/** For each tenth of the scale in which a risk fell: what was given, and what was so. */
export function reliability(cases: readonly Scored[]): Decile[] {
  const deciles: Scored[][] = Array.from({ length: 10 }, () => []);
  for (const scored of cases) deciles[Math.min(9, Math.floor(scored.risk * 10))]?.push(scored);
  const all = total(cases);
  return deciles.flatMap((some, index) =>
    some.length === 0
      ? []
      : {
          from: index / 10,
          to: (index + 1) / 10,
          count: some.length,
          predicted: some.reduce((sum, one) => sum + weightOf(one) * one.risk, 0) / total(some),
          observed: rateOf(some, ({ risky }) => risky)!,
          share: total(some) / all,
        },
  );
}

/**
 * Expected calibration error: how far the risk given is from the share that is risky, over the tenths of the
 * scale, each with the share of the cases in it. 0 is perfect.
 */
export function calibrationError(cases: readonly Scored[]): number | undefined {
  if (cases.length === 0) return undefined;
  return reliability(cases).reduce(
    (sum, { share: part, predicted, observed }) => sum + part * Math.abs(predicted - observed.rate),
    0,
  );
}

/** The value below which this share of the values lies. */
export function quantile(values: readonly number[], at: number): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))];
}

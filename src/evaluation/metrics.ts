/** A judged case: the risk that the classifier gave, and whether people call it risky. */
export interface Scored {
  readonly risk: number;
  readonly risky: boolean;
}

/** What a threshold does. A call at or above it is blocked. */
export interface OperatingPoint {
  readonly threshold: number;
  /** Share of the benign cases that are blocked; 0 where there are none. */
  readonly falsePositives: number;
  /** Share of the risky cases that pass; 0 where there are none. */
  readonly misses: number;
}

/** Cases whose risk fell into one tenth of the scale. */
export interface Decile {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** Mean risk given. */
  readonly predicted: number;
  /** Share that is risky. */
  readonly observed: number;
}

/** A threshold that the lower risk does not reach and the higher one does. */
function between(lower: number, higher: number): number {
  const middle = (lower + higher) / 2;
  // Of two neighbouring numbers the middle is one of them.
  return middle > lower ? middle : higher;
}

const share = (count: number, of: number): number => (of === 0 ? 0 : count / of);

/**
 * Every threshold that makes a difference, from blocking nothing to blocking everything. Each lies half
 * way between two risks that occurred, so that it can be rounded.
 */
export function operatingPoints(cases: readonly Scored[]): OperatingPoint[] {
  const byRisk = cases.toSorted((a, b) => b.risk - a.risk);
  const risky = cases.filter((scored) => scored.risky).length;
  const benign = cases.length - risky;
  const highest = byRisk[0]?.risk ?? 0;
  const above = highest < 1 ? between(highest, 1) : Infinity;
  const points: OperatingPoint[] = [{ threshold: above, falsePositives: 0, misses: share(risky, risky) }];
  let blockedRisky = 0;
  let blockedBenign = 0;
  for (const [index, { risk, risky: isRisky }] of byRisk.entries()) {
    if (isRisky) blockedRisky++;
    else blockedBenign++;
    const next = byRisk[index + 1]?.risk;
    // Equal risks are blocked together: no threshold lies between them.
    if (next === risk) continue;
    points.push({
      threshold: next === undefined ? 0 : between(next, risk),
      falsePositives: share(blockedBenign, benign),
      misses: share(risky - blockedRisky, risky),
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

/** The fewest false positives with at most this share of misses. */
export function falsePositivesAtMisses(cases: readonly Scored[], misses: number): number | undefined {
  if (!cases.some(({ risky }) => risky)) return undefined;
  return operatingPoints(cases).find((point) => point.misses <= misses)?.falsePositives;
}

/** The lowest threshold with at most this share of false positives: what to configure for such a wish. */
export function thresholdFor(cases: readonly Scored[], falsePositives: number): OperatingPoint | undefined {
  if (cases.every(({ risky }) => risky)) return undefined;
  return operatingPoints(cases).findLast((point) => point.falsePositives <= falsePositives);
}

/** The fewest misses with at most this share of false positives. */
export function missesAtFalsePositives(cases: readonly Scored[], falsePositives: number): number | undefined {
  if (!cases.some(({ risky }) => risky)) return undefined;
  return thresholdFor(cases, falsePositives)?.misses;
}

/** What a given threshold does; a share is `undefined` where no case of its kind is there. */
export function atThreshold(
  cases: readonly Scored[],
  threshold: number,
): { falsePositives: number | undefined; misses: number | undefined } {
  const risky = cases.filter((scored) => scored.risky);
  const benign = cases.filter((scored) => !scored.risky);
  const blocked = (some: readonly Scored[]) => some.filter(({ risk }) => risk >= threshold).length;
  return {
    falsePositives: benign.length === 0 ? undefined : blocked(benign) / benign.length,
    misses: risky.length === 0 ? undefined : 1 - blocked(risky) / risky.length,
  };
}

/** Mean squared distance between risk and truth: 0 is perfect, 0.25 is a constant 0.5. */
export function brierScore(cases: readonly Scored[]): number | undefined {
  if (cases.length === 0) return undefined;
  return cases.reduce((sum, { risk, risky }) => sum + (risk - (risky ? 1 : 0)) ** 2, 0) / cases.length;
}

/** For each tenth of the scale in which a risk fell: what was given, and what was so. */
export function reliability(cases: readonly Scored[]): Decile[] {
  const deciles: Scored[][] = Array.from({ length: 10 }, () => []);
  for (const scored of cases) deciles[Math.min(9, Math.floor(scored.risk * 10))]?.push(scored);
  return deciles.flatMap((some, index) =>
    some.length === 0
      ? []
      : {
          from: index / 10,
          to: (index + 1) / 10,
          count: some.length,
          predicted: some.reduce((sum, { risk }) => sum + risk, 0) / some.length,
          observed: some.filter(({ risky }) => risky).length / some.length,
        },
  );
}

/** The value below which this share of the values lies. */
export function quantile(values: readonly number[], at: number): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))];
}

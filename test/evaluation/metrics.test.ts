import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  atThreshold,
  brierScore,
  calibrationError,
  operatingPoints,
  quantile,
  type Rate,
  rateOf,
  reliability,
  rocAuc,
  type Scored,
  thresholdFor,
  thresholdForMisses,
} from "../../src/evaluation/metrics.js";

const scored = (risky: readonly number[], benign: readonly number[]): Scored[] => [
  ...risky.map((risk) => ({ risk, risky: true })),
  ...benign.map((risk) => ({ risk, risky: false })),
];

const falsePositivesAtMisses = (cases: readonly Scored[], misses: number) =>
  thresholdForMisses(cases, misses)?.falsePositives;
const missesAtFalsePositives = (cases: readonly Scored[], falsePositives: number) =>
  thresholdFor(cases, falsePositives)?.misses;
const isBlocked = ({ risk }: Scored) => risk > 0.5;

// Three risky and four benign cases. Of the 12 pairs, 9 are in the right order and 0.4 against 0.4 is a tie.
const HAND = scored([0.9, 0.6, 0.4], [0.7, 0.4, 0.2, 0.1]);

describe("by hand", () => {
  test("the area under the curve is the share of pairs in the right order", () => {
    expect(rocAuc(HAND)).toBeCloseTo(9.5 / 12, 12);
    expect(rocAuc(scored([0.9, 0.8], [0.1, 0.2]))).toBe(1);
    expect(rocAuc(scored([0.1], [0.9]))).toBe(0);
    expect(rocAuc(scored([0.5, 0.5], [0.5]))).toBe(0.5);
  });

  test("false positives at a share of misses", () => {
    // All risky cases are caught from 0.4 down, and there two of four benign ones are blocked.
    expect(falsePositivesAtMisses(HAND, 0.1)).toBe(0.5);
    // One of three may pass: at 0.6 one benign case is blocked.
    expect(falsePositivesAtMisses(HAND, 0.34)).toBe(0.25);
    expect(falsePositivesAtMisses(HAND, 1)).toBe(0);
  });

  test("misses at a share of false positives, and the threshold for it", () => {
    expect(missesAtFalsePositives(HAND, 0.01)).toBeCloseTo(2 / 3, 12);
    expect(thresholdFor(HAND, 0.01)?.threshold).toBeCloseTo(0.8, 12);
    expect(missesAtFalsePositives(HAND, 0.25)).toBeCloseTo(1 / 3, 12);
    expect(thresholdFor(HAND, 0.25)?.threshold).toBeCloseTo(0.5, 12);
  });

  test("a threshold that blocks nothing lies above every risk, if there is room", () => {
    expect(thresholdFor(scored([0.1], [0.6]), 0)).toMatchObject({ threshold: 0.8, misses: 1 });
    expect(thresholdFor(scored([0.1], [1]), 0)?.threshold).toBe(Infinity);
  });

  test("what a threshold does: a risk equal to it is blocked", () => {
    expect(atThreshold(HAND, 0.4)).toEqual({ falsePositives: 0.5, misses: 0 });
    expect(atThreshold(HAND, 0.41).misses).toBeCloseTo(1 / 3, 12);
    expect(atThreshold(scored([], [0.3]), 0.5)).toEqual({ falsePositives: 0, misses: undefined });
  });

  test("the Brier score", () => {
    expect(brierScore(scored([0.9], [0.2]))).toBeCloseTo((0.01 + 0.04) / 2, 12);
    expect(brierScore(scored([1], [0]))).toBe(0);
  });

  test("reliability: 1 falls into the last tenth, and empty tenths are left out", () => {
    expect(reliability(scored([1, 0.95], [0.9, 0.05]))).toEqual([
      {
        from: 0,
        to: 0.1,
        count: 1,
        predicted: 0.05,
        observed: expect.objectContaining({ rate: 0, of: 1 }) as Rate,
        share: 0.25,
      },
      {
        from: 0.9,
        to: 1,
        count: 3,
        predicted: expect.closeTo(0.95, 12) as number,
        observed: expect.objectContaining({ rate: 2 / 3, of: 3 }) as Rate,
        share: 0.75,
      },
    ]);
  });

  test("the calibration error is the distance of risk and truth in each tenth, by its share", () => {
    // 0.05 is 0.05 off in a quarter of the cases; the mean of 0.95 is 0.95 - 2/3 off in the others.
    expect(calibrationError(scored([1, 0.95], [0.9, 0.05]))).toBeCloseTo(
      0.25 * 0.05 + 0.75 * (0.95 - 2 / 3),
      12,
    );
    expect(calibrationError(scored([1], [0]))).toBe(0);
  });

  test("an interval of 95 %, as Wilson gives it", () => {
    // Published values for 0 of 10 and 5 of 10.
    const none = rateOf(
      scored(
        [],
        Array.from({ length: 10 }, () => 0.1),
      ),
      isBlocked,
    );
    expect(none).toMatchObject({ rate: 0, low: 0, count: 0, of: 10 });
    expect(none?.high).toBeCloseTo(0.2775, 3);
    const half = rateOf(scored([0.9, 0.9, 0.9, 0.9, 0.9], [0.1, 0.1, 0.1, 0.1, 0.1]), ({ risky }) => risky);
    expect([half?.low, half?.high]).toEqual([
      expect.closeTo(0.2366, 3) as number,
      expect.closeTo(0.7634, 3) as number,
    ]);
    expect(rateOf([], () => true)).toBeUndefined();
  });

  test("unequal weights count for fewer cases in the interval, equal ones for as many as there are", () => {
    const cases = scored([], [0.9, 0.1, 0.1, 0.1]);
    const plain = rateOf(cases, isBlocked);
    const equal = rateOf(
      cases.map((one) => ({ ...one, weight: 7 })),
      isBlocked,
    );
    expect(equal).toEqual({ ...plain, high: expect.closeTo(plain?.high ?? 0, 12) as number });
    const uneven = rateOf(
      cases.map((one, index) => ({ ...one, weight: index === 0 ? 1 : 9 })),
      isBlocked,
    );
    expect(uneven?.rate).toBeCloseTo(1 / 28, 12);
    // 28 ** 2 / (1 + 3 * 81) = 3.2 cases.
    expect((uneven?.high ?? 0) - (uneven?.low ?? 0)).toBeGreaterThan(0.5);
  });

  test("quantiles", () => {
    expect([quantile([3, 1, 2], 0.5), quantile([3, 1, 2], 0.95), quantile([], 0.5)]).toEqual([
      2,
      3,
      undefined,
    ]);
  });

  test("one label alone has no curve, and nothing gives no figure", () => {
    expect([rocAuc(scored([0.5], [])), rocAuc(scored([], [0.5])), rocAuc([])]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect([
      brierScore([]),
      thresholdFor(scored([0.5], []), 0.1),
      falsePositivesAtMisses(scored([], [1]), 0),
    ]).toEqual([undefined, undefined, undefined]);
  });
});

// The same again, without sorting or running counts: pairs are compared, and every threshold is tried.
function pairs(cases: readonly Scored[]): number {
  let right = 0;
  let all = 0;
  for (const a of cases)
    for (const b of cases)
      if (a.risky && !b.risky) {
        all++;
        if (a.risk > b.risk) right += 1;
        if (a.risk === b.risk) right += 0.5;
      }
  return right / all;
}

function tried(cases: readonly Scored[]): { threshold: number; falsePositives: number; misses: number }[] {
  const count = (risky: boolean, threshold: number) =>
    cases.filter((one) => one.risky === risky && one.risk >= threshold).length;
  const risky = count(true, 0);
  const benign = count(false, 0);
  return [...cases.map(({ risk }) => risk), Infinity].map((threshold) => ({
    threshold,
    falsePositives: count(false, threshold) / benign,
    misses: (risky - count(true, threshold)) / risky,
  }));
}

// Few values, so that ties are frequent.
const risks = fc.oneof(fc.constantFrom(0, 0.25, 0.5, 1), fc.double({ min: 0, max: 1, noNaN: true }));
const both = fc
  .tuple(fc.array(risks, { minLength: 1, maxLength: 12 }), fc.array(risks, { minLength: 1, maxLength: 12 }))
  .map(([risky, benign]) => scored(risky, benign));
const shares = fc.constantFrom(0, 0.01, 0.1, 0.25, 0.5, 1);

describe("against a second way of counting", () => {
  test("a case of weight n is the same as n cases", () => {
    const weights = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 24, maxLength: 24 });
    fc.assert(
      fc.property(both, weights, shares, (cases, counts, share) => {
        const weighted = cases.map((one, index) => ({ ...one, weight: counts[index] ?? 1 }));
        const repeated = cases.flatMap((one, index) => Array.from({ length: counts[index] ?? 1 }, () => one));
        for (const figure of [rocAuc, brierScore, calibrationError])
          expect(figure(weighted)).toBeCloseTo(figure(repeated) ?? Number.NaN, 9);
        for (const at of [falsePositivesAtMisses, missesAtFalsePositives])
          expect(at(weighted, share)).toBeCloseTo(at(repeated, share) ?? Number.NaN, 9);
      }),
    );
  });

  test("the area under the curve", () => {
    fc.assert(
      fc.property(both, (cases) => {
        expect(rocAuc(cases)).toBeCloseTo(pairs(cases), 9);
      }),
    );
  });

  test("false positives at misses, and misses at false positives", () => {
    fc.assert(
      fc.property(both, shares, (cases, share) => {
        const all = tried(cases);
        const positives = all
          .filter(({ misses }) => misses <= share)
          .map(({ falsePositives }) => falsePositives);
        expect(falsePositivesAtMisses(cases, share)).toBeCloseTo(Math.min(...positives), 9);
        const misses = all.filter(({ falsePositives }) => falsePositives <= share).map((one) => one.misses);
        expect(missesAtFalsePositives(cases, share)).toBeCloseTo(Math.min(...misses), 9);
      }),
    );
  });

  test("the threshold for a wanted share does what it says, and no lower one does", () => {
    fc.assert(
      fc.property(both, shares, (cases, share) => {
        const point = thresholdFor(cases, share);
        const kept = atThreshold(cases, point?.threshold ?? Number.NaN);
        expect(kept.falsePositives).toBeCloseTo(point?.falsePositives ?? Number.NaN, 9);
        expect(kept.misses).toBeCloseTo(point?.misses ?? Number.NaN, 9);
        expect(kept.falsePositives).toBeLessThanOrEqual(share);
        const lower = tried(cases).filter((one) => one.threshold < (point?.threshold ?? 0));
        expect(lower.every((one) => one.falsePositives > share)).toBe(true);
      }),
    );
  });

  test("operating points go from nothing blocked to everything blocked", () => {
    fc.assert(
      fc.property(both, (cases) => {
        const points = operatingPoints(cases);
        expect(points[0]).toMatchObject({ falsePositives: 0, misses: 1 });
        expect(points.at(-1)).toMatchObject({ threshold: 0, falsePositives: 1, misses: 0 });
      }),
    );
  });

  test("reliability and the Brier score agree on the mean risk and the mean truth", () => {
    fc.assert(
      fc.property(both, (cases) => {
        const deciles = reliability(cases);
        expect(deciles.reduce((sum, { predicted, count }) => sum + predicted * count, 0)).toBeCloseTo(
          cases.reduce((sum, { risk }) => sum + risk, 0),
          9,
        );
        expect(deciles.reduce((sum, { observed, count }) => sum + observed.rate * count, 0)).toBeCloseTo(
          cases.filter(({ risky }) => risky).length,
          9,
        );
        const squares = cases.map(({ risk, risky }) => (risky ? 1 - risk : risk) * (risky ? 1 - risk : risk));
        expect((brierScore(cases) ?? 0) * cases.length).toBeCloseTo(
          squares.reduce((a, b) => a + b, 0),
          9,
        );
      }),
    );
  });
});

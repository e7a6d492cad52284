import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { correctedRisk } from "../../src/classifiers/calibrated.js";
import { calibrate, fitIsotonic, fitPlatt, foldsOf } from "../../src/evaluation/calibrate.js";
import type { Scored } from "../../src/evaluation/metrics.js";

/** A judge whose risks are off in a known way: a call with risk r is risky with probability truth(r). */
function judged(count: number, truth: (risk: number) => number) {
  return Array.from({ length: count }, (_, nth) => {
    const risk = ((nth * 7919) % 1000) / 1000;
    // Evenly spread instead of random, so that the figures are always the same.
    return { group: String(nth), risk, risky: ((nth * 104_729) % 997) / 997 < truth(risk) };
  });
}

const overconfident = (risk: number) => 0.25 + risk / 2;

describe("fitting", () => {
  test("from 200 labels isotonic: the held-out calibration error falls, and the order hardly changes", () => {
    const fitted = calibrate(judged(1000, overconfident), "judge");
    expect(fitted?.calibration).toMatchObject({ method: "isotonic", classifier: "judge" });
    const { before, after } = fitted!.heldOut;
    expect(before.calibrationError).toBeGreaterThan(0.1);
    expect(after.calibrationError).toBeLessThan(before.calibrationError / 2);
    expect(after.brier).toBeLessThan(before.brier);
    expect(Math.abs(after.auc - before.auc)).toBeLessThan(0.02);
    expect(correctedRisk(fitted!.calibration, 0.98)).toBeCloseTo(0.74, 1);
  });

  test("below that Platt: the held-out calibration error falls too", () => {
    const fitted = calibrate(judged(199, overconfident), "judge");
    expect(fitted?.calibration.method).toBe("platt");
    const { before, after } = fitted!.heldOut;
    expect(after.calibrationError).toBeLessThan(before.calibrationError);
    expect(correctedRisk(fitted!.calibration, 0.9)).toBeLessThan(0.85);
    expect(correctedRisk(fitted!.calibration, 0.1)).toBeGreaterThan(0.15);
  });

  test("fewer than ten labels of a kind are not fitted", () => {
    const some = judged(100, overconfident);
    const nine = [...some.filter(({ risky }) => risky).slice(0, 9), ...some.filter(({ risky }) => !risky)];
    expect(calibrate(nine, "judge")).toBeUndefined();
  });

  test("isotonic is the pooled mean, by hand", () => {
    const cases: Scored[] = [
      { risk: 0.1, risky: false },
      { risk: 0.3, risky: true },
      { risk: 0.5, risky: false },
      { risk: 0.9, risky: true },
    ];
    // 0.3 and 0.5 are in the wrong order: pooled at their means.
    expect(fitIsotonic(cases)).toEqual({
      version: 1,
      method: "isotonic",
      points: [
        [0.1, 0],
        [0.4, 0.5],
        [0.9, 1],
      ],
    });
  });

  test("Platt finds the curve that the labels were made with", () => {
    const fitted = fitPlatt(
      judged(5000, (risk) => 1 / (1 + Math.exp(-(0.6 * Math.log((risk + 1e-3) / (1.001 - risk)) - 0.4)))),
    );
    if (fitted.method !== "platt") throw new Error("not Platt");
    expect(fitted.slope).toBeCloseTo(0.6, 1);
    expect(fitted.intercept).toBeCloseTo(-0.4, 1);
  });

  test("whatever is fitted, never falls and is a probability", () => {
    const unit = fc.oneof(fc.constantFrom(0, 0.5, 1), fc.double({ min: 0, max: 1, noNaN: true }));
    const weights = fc.oneof(fc.constant(1), fc.double({ min: 0.01, max: 1000, noNaN: true }));
    const cases = fc.array(fc.record({ risk: unit, risky: fc.boolean(), weight: weights }), {
      minLength: 2,
      maxLength: 40,
    });
    fc.assert(
      fc.property(cases, unit, unit, (some, a, b) => {
        for (const fitted of [fitIsotonic(some), fitPlatt(some)]) {
          const [lower, higher] = [
            correctedRisk(fitted, Math.min(a, b)),
            correctedRisk(fitted, Math.max(a, b)),
          ];
          expect(lower).toBeGreaterThanOrEqual(0);
          expect(higher).toBeLessThanOrEqual(1);
          expect(higher).toBeGreaterThanOrEqual(lower - 1e-9);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("a judge that gives benign calls the higher risks is not turned around", () => {
    const wrong = fitPlatt(judged(200, (risk) => 1 - risk));
    expect(correctedRisk(wrong, 0.9)).toBe(correctedRisk(wrong, 0.1));
  });
});

test("folds keep a group together, hold every case once, and are always the same", () => {
  const cases = Array.from({ length: 100 }, (_, nth) => ({ group: `story ${nth % 20}`, nth }));
  const folds = foldsOf(cases);
  expect(folds.flatMap(({ held }) => held).toSorted((a, b) => a.nth - b.nth)).toEqual(cases);
  for (const { held, rest } of folds) {
    const groups = new Set(held.map(({ group }) => group));
    expect(rest.some(({ group }) => groups.has(group))).toBe(false);
    expect(held.length + rest.length).toBe(100);
  }
  expect(foldsOf(cases)).toEqual(folds);
});

import { sha256 } from "@langchain/core/utils/hash";
import { type Calibration, correctedRisk } from "../classifiers/calibrated.js";
import { brierScore, calibrationError, rocAuc, type Scored } from "./metrics.js";

/** A scored case that can be left out of a fit together with what belongs to it. */
export interface Grouped extends Scored {
  /** Cases of one group are never on both sides of a fit: they are the same story twice. */
  readonly group: string;
}

/** How good probabilities are. */
export interface Quality {
  readonly brier: number;
  readonly calibrationError: number;
  readonly auc: number;
}

/** A fitted calibration, with what it does to cases that it was not fitted on. */
export interface FittedCalibration {
  readonly calibration: Calibration;
  readonly heldOut: { readonly folds: number; readonly before: Quality; readonly after: Quality };
  /** The held-out cases with their corrected risks. */
  readonly corrected: readonly Scored[];
}

/** Fewer say too little to correct anything, and held-out figures of them nothing at all. */
export const FEWEST_OF_EACH_LABEL = 10;
// Isotonic regression follows every bend of the data, noise included; two numbers need fewer cases.
const ISOTONIC_FROM = 200;
const FOLDS = 5;

/** The folds of a cross-validation: the same case is always in the same one, and a group stays together. */
export function foldsOf<T extends { readonly group: string }>(
  cases: readonly T[],
): { held: T[]; rest: T[] }[] {
  const foldOf = (one: T): number => parseInt(sha256(one.group).slice(0, 8), 16) % FOLDS;
  return Array.from({ length: FOLDS }, (_, fold) => ({
    held: cases.filter((one) => foldOf(one) === fold),
    rest: cases.filter((one) => foldOf(one) !== fold),
  }));
}

/** Fits a calibration; `undefined` if there are too few cases of either label. */
export function calibrate(cases: readonly Grouped[], classifier: string): FittedCalibration | undefined {
  const risky = cases.filter((one) => one.risky).length;
  const benign = cases.length - risky;
  if (Math.min(risky, benign) < FEWEST_OF_EACH_LABEL) return undefined;
  const corrected = foldsOf(cases).flatMap(({ held, rest }) => {
    const fitted = fit(rest, cases.length);
    return held.map((one) => ({ ...one, risk: correctedRisk(fitted, one.risk) }));
  });
  const heldOut = { folds: FOLDS, before: qualityOf(cases), after: qualityOf(corrected) };
  const calibration = { ...fit(cases, cases.length), classifier, labels: { risky, benign }, heldOut };
  return { calibration, heldOut, corrected };
}

/** By the size of the whole, so that the folds try what is then used. */
function fit(cases: readonly Scored[], size: number): Calibration {
  return size >= ISOTONIC_FROM ? fitIsotonic(cases) : fitPlatt(cases);
}

function qualityOf(cases: readonly Scored[]): Quality {
  return {
    brier: brierScore(cases) ?? Number.NaN,
    calibrationError: calibrationError(cases) ?? Number.NaN,
    auc: rocAuc(cases) ?? Number.NaN,
  };
}

/** Sums over cases, each with its weight. */
interface Block {
  readonly weight: number;
  readonly risk: number;
  readonly risky: number;
}

const shareOf = ({ risky, weight }: Block): number => risky / weight;
const join = (a: Block, b: Block): Block => ({
  weight: a.weight + b.weight,
  risk: a.risk + b.risk,
  risky: a.risky + b.risky,
});

/** Isotonic regression by pooling adjacent violators: the best fit to the labels that never falls. */
export function fitIsotonic(cases: readonly Scored[]): Calibration {
  // Equal risks get one value.
  const byRisk = new Map<number, Block>();
  for (const { risk, risky, weight = 1 } of cases.toSorted((a, b) => a.risk - b.risk)) {
    const one = { weight, risk: weight * risk, risky: risky ? weight : 0 };
    const same = byRisk.get(risk);
    byRisk.set(risk, same ? join(same, one) : one);
  }
  const pooled: Block[] = [];
  for (const block of byRisk.values()) {
    let last = block;
    for (let before = pooled.at(-1); before && shareOf(before) >= shareOf(last); before = pooled.at(-1))
      last = join(pooled.pop()!, last);
    pooled.push(last);
  }
  const points: [number, number][] = [];
  for (const block of pooled) {
    // Sums of weights may be off in their last digit.
    const [given = 0, corrected = 0] = points.at(-1) ?? [];
    points.push([
      Math.min(1, Math.max(given, block.risk / block.weight)),
      Math.min(1, Math.max(corrected, shareOf(block))),
    ]);
  }
  return { version: 1, method: "isotonic", points };
}

/** Platt scaling: a logistic curve through the logits of the given risks, by Newton's method. */
export function fitPlatt(cases: readonly Scored[]): Calibration {
  const risky = cases.filter((one) => one.risky).length;
  // Platt's own targets: with few cases nothing is certain.
  const targets = { true: (risky + 1) / (risky + 2), false: 1 / (cases.length - risky + 2) };
  const rows = cases.map((one) => ({
    logit: logitOf(one.risk),
    target: one.risky ? targets.true : targets.false,
    weight: one.weight ?? 1,
  }));
  const weights = rows.reduce((sum, { weight }) => sum + weight, 0);
  const flat = logitOf(rows.reduce((sum, { target, weight }) => sum + weight * target, 0) / weights);
  let [slope, intercept] = [0, flat];
  for (let step = 0; step < 100; step++) {
    // A little pull, so that the curvature never vanishes.
    const ridge = 1e-6;
    let [gradientSlope, gradientIntercept] = [ridge * slope, 0];
    let [slopes, mixed, intercepts] = [ridge, 0, ridge];
    for (const { logit, target, weight } of rows) {
      const risk = 1 / (1 + Math.exp(-(slope * logit + intercept)));
      const curvature = weight * risk * (1 - risk);
      gradientSlope += weight * (risk - target) * logit;
      gradientIntercept += weight * (risk - target);
      slopes += curvature * logit ** 2;
      mixed += curvature * logit;
      intercepts += curvature;
    }
    const determinant = slopes * intercepts - mixed ** 2;
    const bySlope = (intercepts * gradientSlope - mixed * gradientIntercept) / determinant;
    const byIntercept = (slopes * gradientIntercept - mixed * gradientSlope) / determinant;
    slope -= bySlope;
    intercept -= byIntercept;
    if (Math.abs(bySlope) + Math.abs(byIntercept) < 1e-9) break;
  }
  // A judge that gives benign calls the higher risks is not to be turned around: that would be another judge.
  if (!(slope > 0)) return { version: 1, method: "platt", slope: 0, intercept: flat };
  return { version: 1, method: "platt", slope, intercept };
}

function logitOf(risk: number): number {
  const held = Math.min(0.999, Math.max(0.001, risk));
  return Math.log(held / (1 - held));
}

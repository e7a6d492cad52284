/** One case to learn from. */
export interface Example {
  readonly values: readonly number[];
  readonly positive: boolean;
  /** How much it counts. */
  readonly weight: number;
}

/** What a feature's weight may be: `1` not below zero, `-1` not above, `0` anything. */
export type Sign = -1 | 0 | 1;

/** A fitted model: the log odds are `intercept + sum of weights times values`. */
export interface Model {
  readonly weights: readonly number[];
  readonly intercept: number;
}

/** How to fit. */
export interface FitOptions {
  readonly signs: readonly Sign[];
  /** Strength of the pull towards zero, in cases. */
  readonly l2: number;
  readonly steps?: number;
}

const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);

/** The risk that a model gives. */
export function predict({ weights, intercept }: Model, values: readonly number[]): number {
  return 1 / (1 + Math.exp(-(intercept + dot(weights, values))));
}

/**
 * Logistic regression with signs and an L2 penalty on standardised weights, by projected gradient steps
 * with momentum. Without randomness: the same cases give the same weights.
 */
export function fitLogistic(examples: readonly Example[], { signs, l2, steps = 3000 }: FitOptions): Model {
  const total = examples.reduce((sum, { weight }) => sum + weight, 0);
  const scales = signs.map((_, column) => spread(examples.map(({ values }) => values[column] ?? 0)));
  const rows = examples.map(({ values, positive, weight }) => ({
    z: values.map(
      (value, column) => (value - (scales[column]?.mean ?? 0)) / (scales[column]?.deviation ?? 1),
    ),
    y: positive ? 1 : 0,
    w: weight / total,
  }));
  const pull = l2 / examples.length;
  // An upper bound of the curvature, so that steps of its inverse cannot overshoot.
  const curvature = 0.25 * rows.reduce((sum, { z, w }) => sum + w * (1 + dot(z, z)), 0) + pull;

  let weights = signs.map(() => 0);
  let intercept = 0;
  let ahead: Model = { weights, intercept };
  let momentum = 1;
  for (let step = 0; step < steps; step++) {
    const gradient = signs.map((_, column) => pull * (ahead.weights[column] ?? 0));
    let gradientOfIntercept = 0;
    for (const { z, y, w } of rows) {
      const error = w * (predict(ahead, z) - y);
      gradientOfIntercept += error;
      for (let column = 0; column < z.length; column++) gradient[column]! += error * (z[column] ?? 0);
    }
    const next = ahead.weights.map((weight, column) =>
      clamped(weight - gradient[column]! / curvature, signs[column]),
    );
    const nextIntercept = ahead.intercept - gradientOfIntercept / curvature;
    const nextMomentum = (1 + Math.sqrt(1 + 4 * momentum ** 2)) / 2;
    const carry = (momentum - 1) / nextMomentum;
    ahead = {
      weights: next.map((weight, column) => weight + carry * (weight - (weights[column] ?? 0))),
      intercept: nextIntercept + carry * (nextIntercept - intercept),
    };
    [weights, intercept, momentum] = [next, nextIntercept, nextMomentum];
  }
  // Back from standardised values to values as they are.
  const raw = weights.map((weight, column) => weight / (scales[column]?.deviation ?? 1));
  return {
    weights: raw,
    intercept:
      intercept -
      dot(
        raw,
        scales.map(({ mean }) => mean),
      ),
  };
}

function clamped(weight: number, sign: Sign | undefined): number {
  if (sign === 1) return Math.max(0, weight);
  return sign === -1 ? Math.min(0, weight) : weight;
}

function spread(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, deviation: variance === 0 ? 1 : Math.sqrt(variance) };
}

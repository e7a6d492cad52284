import { describe, expect, test } from "vitest";
import { type Example, fitLogistic, predict } from "./logistic.js";

const example = (values: number[], positive: boolean, weight = 1): Example => ({ values, positive, weight });
const repeat = (count: number, one: Example): Example[] => Array.from({ length: count }, () => one);

describe("logistic regression", () => {
  test("without features it gives the base rate", () => {
    const model = fitLogistic([...repeat(3, example([], true)), ...repeat(1, example([], false))], {
      signs: [],
      l2: 0,
    });
    expect(predict(model, [])).toBeCloseTo(0.75, 6);
  });

  test("with one flag it gives the rate on either side: the log odds can be worked out by hand", () => {
    const cases = [
      ...repeat(1, example([0], true)),
      ...repeat(3, example([0], false)),
      ...repeat(4, example([1], true)),
      ...repeat(1, example([1], false)),
    ];
    const model = fitLogistic(cases, { signs: [0], l2: 0 });
    expect(model.intercept).toBeCloseTo(Math.log(1 / 3), 4);
    expect(model.weights[0]).toBeCloseTo(Math.log(4) - Math.log(1 / 3), 4);
  });

  test("a weight counts like as many cases", () => {
    const twice = fitLogistic(
      [example([0], true), example([0], true), example([1], false), example([1], true), example([0], false)],
      { signs: [0], l2: 0 },
    );
    const weighted = fitLogistic(
      [example([0], true, 2), example([1], false), example([1], true), example([0], false)],
      { signs: [0], l2: 0 },
    );
    expect(predict(weighted, [0])).toBeCloseTo(predict(twice, [0]), 4);
    expect(predict(weighted, [1])).toBeCloseTo(predict(twice, [1]), 4);
  });

  test("a sign is kept where the cases speak against it", () => {
    const cases = [
      ...repeat(5, example([1, 1], true)),
      ...repeat(5, example([0, 0], false)),
      ...repeat(5, example([1, 0], true)),
    ];
    const [first, second] = fitLogistic(cases, { signs: [-1, 1], l2: 1 }).weights;
    expect(first).toBe(0);
    expect(second).toBeGreaterThan(0);
  });

  test("a penalty draws the weights towards zero, and separable cases stay finite", () => {
    const cases = [...repeat(5, example([1], true)), ...repeat(5, example([0], false))];
    const [weak] = fitLogistic(cases, { signs: [0], l2: 0.1 }).weights;
    const [strong] = fitLogistic(cases, { signs: [0], l2: 10 }).weights;
    expect(strong).toBeGreaterThan(0);
    expect(weak).toBeGreaterThan(strong ?? 0);
    expect(Number.isFinite(weak)).toBe(true);
  });
});

import { writeFileSync } from "node:fs";
import {
  BaseDecisionModel,
  type ClassifierResponse,
  parseClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import { RunnableLambda } from "@langchain/core/runnables";
import * as fc from "fast-check";
import { ClassificationError, ConfigurationError, type MonitorView } from "langchain-auto-mode";
import { CalibratedDecisionModel, type Calibration } from "langchain-auto-mode/classifiers";
import { judgeCall } from "langchain-auto-mode/testing";
import { afterAll, describe, expect, test } from "vitest";
import { makeFolder } from "../evaluation/synthetic-cases.js";
import { failureOf } from "./failures.js";
import { kind, oneCall, risky } from "./questions.js";

const folder = makeFolder();
afterAll(() => folder.remove());

const isotonic: Calibration = {
  version: 1,
  method: "isotonic",
  points: [
    [0.2, 0],
    [0.6, 0.1],
    [0.8, 0.9],
  ],
};
const platt: Calibration = { version: 1, method: "platt", slope: 2, intercept: 1 };

/** Answers with what it is given, whatever that is. */
class Given extends BaseDecisionModel {
  lc_namespace = ["test"];
  readonly view: Partial<MonitorView> = { channels: ["user", "toolResults"] };
  readonly #give: () => ClassifierResponse;

  constructor(give: () => ClassifierResponse) {
    super({ model: "given-1" });
    this.#give = give;
  }
  get _provider() {
    return "test";
  }
  async _classify(_state: State, _questions: Record<string, Question>): Promise<ClassifierResponse> {
    return this.#give();
  }
}
const giving = (noul: number) =>
  new Given(() => parseClassifierResponse({ model: "given-1", answers: { call_1: { type: "noul", noul } } }));
const ask = async (calibration: Calibration | string, noul: number) => {
  const model = new CalibratedDecisionModel({ model: giving(noul), calibration });
  return (await model.invoke({ state: oneCall, questions: { call_1: risky } })).nouls.call_1.noul;
};

describe("the correction", () => {
  test("isotonic: straight lines between the points, level beyond them", async () => {
    expect(await ask(isotonic, 0.1)).toBe(0);
    expect(await ask(isotonic, 0.2)).toBe(0);
    expect(await ask(isotonic, 0.4)).toBeCloseTo(0.05, 12);
    expect(await ask(isotonic, 0.7)).toBeCloseTo(0.5, 12);
    expect(await ask(isotonic, 0.8)).toBe(0.9);
    expect(await ask(isotonic, 1)).toBe(0.9);
  });

  test("Platt: a logistic curve, finite at 0 and 1", async () => {
    expect(await ask(platt, 0.5)).toBeCloseTo(1 / (1 + Math.exp(-1)), 12);
    expect(await ask(platt, 0.75)).toBeCloseTo(1 / (1 + Math.exp(-(2 * Math.log(3) + 1))), 12);
    expect(await ask(platt, 0)).toBeCloseTo(1 / (1 + Math.exp(-(2 * Math.log(0.001 / 0.999) + 1))), 12);
    expect(await ask(platt, 1)).toBeGreaterThan(0.999);
  });

  test("a higher risk never becomes the lower one, and stays a probability", async () => {
    const unit = fc.double({ min: 0, max: 1, noNaN: true });
    const rising = fc.array(unit, { minLength: 1, maxLength: 8 });
    const curves = fc.oneof(
      fc.tuple(rising, rising).map(([given, corrected]): Calibration => {
        const [xs, ys] = [given.toSorted((a, b) => a - b), corrected.toSorted((a, b) => a - b)];
        const points = xs.slice(0, ys.length).map((x, index): [number, number] => [x, ys[index] ?? 0]);
        return { version: 1, method: "isotonic", points };
      }),
      fc
        .tuple(fc.double({ min: 0, max: 20, noNaN: true }), fc.double({ min: -20, max: 20, noNaN: true }))
        .map(([slope, intercept]): Calibration => ({ version: 1, method: "platt", slope, intercept })),
    );
    await fc.assert(
      fc.asyncProperty(curves, unit, unit, async (calibration, a, b) => {
        const [lower, higher] = [
          await ask(calibration, Math.min(a, b)),
          await ask(calibration, Math.max(a, b)),
        ];
        expect(lower).toBeGreaterThanOrEqual(0);
        expect(higher).toBeLessThanOrEqual(1);
        expect(higher).toBeGreaterThanOrEqual(lower - 1e-12);
      }),
    );
  });
});

describe("everything else stays", () => {
  const choice = {
    type: "choice",
    choice: "secrets",
    confidence: 0.7,
    probabilities: { secrets: 0.7, none: 0.3 },
  } as const;
  const usage = {
    input_tokens: 10,
    output_tokens: 2,
    total_tokens: 12,
    input_token_details: { cache_read: 4 },
  };

  test("other answers, explanations, fields of one's own, usage, request id, model name and view", async () => {
    const inner = new Given(() => {
      const response = parseClassifierResponse({
        model: "given-1-dated",
        answers: { call_1: { type: "noul", noul: 0.7 }, kind_1: choice },
        usage_metadata: usage,
        requestId: "req-1",
      });
      Object.assign(response.answers["call_1"]!, {
        explanation: "It prints a key.",
        decidedBy: "given-1",
        own: [1],
      });
      return response;
    });
    const model = new CalibratedDecisionModel({ model: inner, calibration: isotonic });
    expect([model.model, model.view]).toEqual(["given-1", { channels: ["user", "toolResults"] }]);
    const response = await model.invoke({ state: oneCall, questions: { call_1: risky, kind_1: kind } });
    expect(response).toMatchObject({ model: "given-1-dated", requestId: "req-1", usage_metadata: usage });
    expect(response.answers).toEqual({
      call_1: {
        type: "noul",
        noul: expect.closeTo(0.5, 12) as number,
        explanation: "It prints a key.",
        decidedBy: "given-1",
        own: [1],
      },
      kind_1: choice,
    });
  });

  test("what is no probability is not made one: the guard finds no verdict, whatever the calibration", async () => {
    for (const noul of [1.5, -1, Number.NaN, null, undefined, "0.1"]) {
      const runnable = RunnableLambda.from(() => ({
        model: "odd",
        answers: { call_1: { type: "noul", noul } },
      }));
      const model = new CalibratedDecisionModel({
        // What a user's own Runnable answers is known at run time only.
        model: runnable as unknown as Given,
        calibration: { version: 1, method: "platt", slope: 0, intercept: -9 },
      });
      const { decision } = await judgeCall(
        { classifier: model },
        { messages: [], call: { name: "t", args: {} } },
      );
      expect(decision.outcome).toBe("unavailable");
      expect(decision).not.toHaveProperty("risk");
    }
  });

  test("a failure keeps its reason, and the answers that are valid are corrected", async () => {
    const cause = new ClassificationError("truncated", { answers: { call_1: { type: "noul", noul: 0.7 } } });
    const model = new CalibratedDecisionModel({
      model: new Given(() => {
        throw cause;
      }),
      calibration: isotonic,
    });
    const failure = await failureOf(
      model.invoke({ state: oneCall, questions: { call_1: risky, call_2: risky } }),
    );
    expect(failure.reason).toBe("truncated");
    expect(failure.answers).toEqual({ call_1: { type: "noul", noul: expect.closeTo(0.5, 12) as number } });
  });

  test("a model with retries keeps its view and its name", () => {
    const model = new CalibratedDecisionModel({ model: giving(0.5).withRetry(), calibration: platt });
    expect([model.model, model.view]).toEqual(["given-1", { channels: ["user", "toolResults"] }]);
  });
});

describe("the calibration", () => {
  test("can be the path of a file", async () => {
    const file = folder.write("calibration.json", JSON.stringify({ ...isotonic, later: "version" }));
    expect(await ask(file, 0.7)).toBeCloseTo(0.5, 12);
  });

  test("is a copy: changing the object later changes nothing", async () => {
    const given = structuredClone(isotonic) as { points: [number, number][] } & Calibration;
    const model = new CalibratedDecisionModel({ model: giving(0.7), calibration: given });
    given.points.length = 0;
    const { nouls } = await model.invoke({ state: oneCall, questions: { call_1: risky } });
    expect(nouls.call_1.noul).toBeCloseTo(0.5, 12);
  });

  test.each<[string, unknown, RegExp]>([
    ["nothing", undefined, /"calibration"/],
    ["another method", { version: 1, method: "beta" }, /"calibration.*isotonic.*platt/],
    ["another version", { ...isotonic, version: 2 }, /"calibration.version".*expected 1/],
    ["no points", { ...isotonic, points: [] }, /"calibration.points"/],
    [
      "points that fall",
      {
        ...isotonic,
        points: [
          [0.1, 0.5],
          [0.2, 0.4],
        ],
      },
      /"calibration.points".*rising/,
    ],
    [
      "risks that fall",
      {
        ...isotonic,
        points: [
          [0.2, 0.4],
          [0.1, 0.5],
        ],
      },
      /"calibration.points".*rising/,
    ],
    ["a point out of range", { ...isotonic, points: [[0, 1.5]] }, /"calibration.points/],
    ["a slope that turns the order around", { ...platt, slope: -1 }, /"calibration.slope".*at least 0/],
    ["a slope that is no number", { ...platt, slope: "1" }, /"calibration.slope"/],
    ["a file that is not there", "nowhere.json", /"calibration" names a file that cannot be read: ENOENT/],
  ])("%s is a ConfigurationError", (_, calibration, message) => {
    const make = () =>
      new CalibratedDecisionModel({ model: giving(0.5), calibration: calibration as Calibration });
    expect(make).toThrow(message);
    expect(make).toThrow(ConfigurationError);
  });

  test("a file that is no JSON is one too, and its content is not repeated", () => {
    const file = folder.write("broken.json", "secret {");
    const make = () => new CalibratedDecisionModel({ model: giving(0.5), calibration: file });
    expect(make).toThrow(/"calibration" names a file that is no JSON/);
    expect(make).not.toThrow(/secret/);
    writeFileSync(file, "{}");
    expect(make).toThrow(/"calibration/);
  });

  test("no model, and unknown options, are errors", () => {
    const options = [
      { calibration: platt },
      { model: {}, calibration: platt },
      { model: giving(1), calibration: platt, x: 1 },
    ];
    const names = options.map((given) => {
      try {
        return new CalibratedDecisionModel(given as { model: Given; calibration: Calibration });
      } catch (error) {
        return ConfigurationError.find(error)?.option;
      }
    });
    expect(names).toEqual(["model", "model", "x"]);
  });
});

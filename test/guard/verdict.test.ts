import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RISK_KINDS } from "../../src/guard/question.js";
import { readAnswer } from "../../src/guard/classify.js";
import { verdictOf } from "../../src/guard/plan.js";

const noul = (risk: unknown, more: object = {}) => ({ call_1: { type: "noul", noul: risk, ...more } });
const read = (answers: unknown) => readAnswer(answers, "call_1", "kind_1");

describe("a verdict", () => {
  test.each([
    [0.5, 0.5, "blocked"],
    [0.499, 0.5, "allowed"],
    [1, 1, "blocked"],
    [0.999, 1, "allowed"],
    [0, 0, "blocked"],
  ] as const)("risk %d at the threshold %d is %s", (risk, threshold, verdict) => {
    expect(verdictOf({ risk }, threshold)).toBe(verdict);
  });

  test("without a risk a call is unavailable at every threshold", () => {
    for (const threshold of [0, 0.5, 1])
      expect(verdictOf({ unavailable: "error" }, threshold)).toBe("unavailable");
  });
});

describe("an answer", () => {
  test.each([0, 0.3, 1])("a risk of %d is one", (risk) => {
    expect(read(noul(risk))).toEqual({ risk });
  });

  test.each([
    ["NaN", NaN],
    ["below 0", -0.01],
    ["above 1", 1.01],
    ["infinite", Infinity],
    ["minus infinity", -Infinity],
    ["a text", "0.1"],
    ["null", null],
    ["missing", undefined],
    ["false", false],
    ["a list", [0.1]],
    ["an object that turns into a number", { valueOf: () => 0.1 }],
    ["a bigint", 0n],
  ])("a risk that is %s is none", (_what, risk) => {
    expect(read(noul(risk))).toBeUndefined();
  });

  test.each([
    ["nothing", undefined],
    ["null", null],
    ["a text", "call_1"],
    ["a number", 0.1],
    ["an empty object", {}],
    ["another call's", { call_2: { type: "noul", noul: 0 } }],
    ["null for the call", { call_1: null }],
    ["a bare number for the call", { call_1: 0.1 }],
    ["an empty object for the call", { call_1: {} }],
    ["one without a type", { call_1: { noul: 0.1 } }],
    ["one of another type", { call_1: { type: "score", noul: 0.1 } }],
    ["an inherited one", Object.create(noul(0.1)) as unknown],
    ["one whose risk is inherited", { call_1: Object.create({ type: "noul", noul: 0.1 }) as unknown }],
  ])("answers that are %s hold none for the call", (_what, answers) => {
    expect(read(answers)).toBeUndefined();
  });

  test("a kind is read from its own question, if it is a known one and says that there is a risk", () => {
    const withKind = (choice: unknown) => read({ ...noul(0.9), kind_1: { type: "choice", choice } });
    expect(withKind("secrets")).toEqual({ risk: 0.9, kind: "secrets" });
    for (const kind of ["none", "made up", "toString", "__proto__", 3, null, undefined])
      expect(withKind(kind)).toEqual({ risk: 0.9 });
    expect(read({ ...noul(0.9), kind_1: null })).toEqual({ risk: 0.9 });
  });

  test("an explanation is read from the answer, if it says anything", () => {
    expect(read(noul(0.9, { explanation: "It wipes a disk." }))).toEqual({
      risk: 0.9,
      explanation: "It wipes a disk.",
    });
    for (const explanation of ["", "  \n", 3, null, { text: "x" }])
      expect(read(noul(0.9, { explanation }))).toEqual({ risk: 0.9 });
  });

  test("whatever an answer is, it is no risk or one from 0 to 1", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true }), (value) => {
        for (const answers of [value, { call_1: value }, noul(value)]) {
          const answered = read(answers);
          if (answered === undefined) continue;
          expect(answered).toHaveProperty("risk");
          const { risk } = answered as { risk: number };
          expect(risk >= 0 && risk <= 1).toBe(true);
        }
      }),
    );
  });

  test("every kind but the one for no risk can be a reason", () => {
    for (const kind of Object.keys(RISK_KINDS).filter((name) => name !== "none"))
      expect(read({ ...noul(1), kind_1: { choice: kind } })).toEqual({ risk: 1, kind });
  });
});

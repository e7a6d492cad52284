import type { AutoModeOptions } from "langchain-auto-mode";
import { CalibratedDecisionModel, ProvenanceDecisionModel } from "langchain-auto-mode/classifiers";
import { type CaseLog, caseLog, type CaseLogOptions } from "langchain-auto-mode/evaluation";
import { assertType, expectTypeOf, test } from "vitest";

test("a case log is a listener for onDecision that can be flushed", () => {
  expectTypeOf(caseLog).returns.toEqualTypeOf<CaseLog>();
  assertType<AutoModeOptions["onDecision"]>(caseLog("cases.jsonl"));
  expectTypeOf<CaseLog["flush"]>().returns.resolves.toBeVoid();
});

test("unknown options, and a redaction that gives no text, are errors", () => {
  assertType<CaseLogOptions>({ sample: 0.1, redact: (text) => text.slice(1) });
  // @ts-expect-error there is no such option
  assertType<CaseLogOptions>({ sampel: 0.1 });
  // @ts-expect-error a promise is no text
  assertType<CaseLogOptions>({ redact: async (text: string) => text });
});

test("a calibrated model takes a decision model, also with retries, and a file or an object", () => {
  const model = new ProvenanceDecisionModel();
  assertType(new CalibratedDecisionModel({ model, calibration: "calibration.json" }));
  assertType(
    new CalibratedDecisionModel({
      model: model.withRetry(),
      calibration: { version: 1, method: "platt", slope: 1, intercept: 0 },
    }),
  );
  // @ts-expect-error isotonic needs points
  assertType(new CalibratedDecisionModel({ model, calibration: { version: 1, method: "isotonic" } }));
});

import { afterAll, describe, expect, test } from "vitest";
import { evaluateCommand } from "../../src/evaluation/evaluate.js";
import { makeFolder } from "./synthetic-cases.js";

/** A file of labeled cases that are not part of this project: `AUTO_MODE_RISK_CASES=FILE npx vitest …`. */
const file = process.env["AUTO_MODE_RISK_CASES"];
const folder = makeFolder();
afterAll(() => folder.remove());

interface Printed {
  calibration: Record<"before" | "after", { brier: number; calibrationError: number; auc: number }>;
}

describe.runIf(file)("labeled cases of others", { timeout: 120_000 }, () => {
  test("the offline model's calibration error falls on held-out folds, and its order stays", async () => {
    let printed = "";
    const terminal = {
      print: (text: string) => (printed += text),
      printError: () => undefined,
      width: 100,
      isWatched: false,
    };
    const status = await evaluateCommand([file ?? "", "--classifier", "provenance", "--json"], terminal);
    expect(status).toBe(0);
    const { before, after } = (JSON.parse(printed) as Printed).calibration;
    console.log({ before, after });
    expect(after.calibrationError).toBeLessThan(before.calibrationError);
    expect(after.brier).toBeLessThan(before.brier);
    expect(after.auc).toBeGreaterThan(before.auc - 0.01);
  });
});

import { afterAll, describe, expect, test } from "vitest";
import { CASES, makeFolder, toLines } from "../evaluation/synthetic-cases.js";
import { main as train } from "./train-provenance.js";

const folder = makeFolder();
afterAll(() => folder.remove());

describe("training", () => {
  test("weights and figures come out for cases that are distinguished easily, and leave the other splits alone", () => {
    const lines: string[] = [];
    const dev = CASES.slice(0, 4).map((one) => ({ ...one, split: "dev", source: "other" }));
    train(["--cases", folder.write("train.jsonl", toLines([...CASES, ...dev]))], (text) => lines.push(text));
    expect(lines[0]).toMatch(/^export const INTERCEPT = -?\d/);
    expect(lines.find((line) => line.includes("descriptionInProse"))).toMatch(/: [1-9]?\d*\.\d+,$/);
    expect(
      lines.filter((line) => /^ {2}all {2}/.test(line)).map((line) => line.split(/\s+/).slice(2, 4)),
    ).toEqual([
      ["29", "1.000"],
      ["4", "1.000"],
    ]);
    expect(lines.some((line) => line.includes("\ntest"))).toBe(false);
  });
});

import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { main, runProgram } from "../../examples/code-runner.js";

describe("the recipe for a code runner", { timeout: 60_000 }, () => {
  test("plays: what fails is an answer, what is blocked does not run, what does not end is stopped", async () => {
    const lines: string[] = [];
    await main((line) => lines.push(line));
    expect(lines.map((line) => line.split("\n")[1]?.trim().slice(0, 40))).toEqual([
      "ReferenceError: total is not defined",
      "55",
      "Auto mode blocked the call to run_code: ",
      "Stopped: it took more than 300 ms or pri",
    ]);
  });

  test("a program gets nothing of this process's environment", async () => {
    process.env.RECIPE_SECRET = "x";
    try {
      const { text } = await runProgram(
        "console.log('RECIPE_SECRET' in process.env, 'PATH' in process.env)",
        60_000,
      );
      expect(text).toBe("false false\n");
    } finally {
      delete process.env.RECIPE_SECRET;
    }
  });

  test("a program that prints without end is stopped", async () => {
    const { text } = await runProgram("for (;;) console.log('x'.repeat(1000));", 60_000);
    expect(text).toMatch(/^Stopped/);
  });

  test("a program works in its own folder, which is gone afterwards", async () => {
    const { text, folder } = await runProgram(
      'import { writeFileSync } from "node:fs"; writeFileSync("file", ""); console.log(process.cwd());',
      60_000,
    );
    expect(text.trim().endsWith(folder)).toBe(true);
    expect(existsSync(folder)).toBe(false);
  });
});

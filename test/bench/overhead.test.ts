import { expect, test } from "vitest";
import { main, rows } from "./overhead.js";

test("the benchmark of overhead runs all of its loops, and asks once for each step", async () => {
  const lines: string[] = [];
  const figures = await main(["--calls", "10"], (line) => lines.push(line));

  expect(new Set(figures.map(({ row }) => row))).toEqual(new Set(rows().map(({ name }) => name)));
  for (const { row, kind, requestsPerStep, ratios, beyond, microseconds } of figures) {
    expect(microseconds).toBeGreaterThan(0);
    expect(beyond[kind]).toBe(0);
    for (const ratio of Object.values(ratios)) expect(ratio).toBeGreaterThan(0);
    expect(ratios[kind]).toBe(1);
    const asked = { "auto mode": 1, "plain guard": row.includes("parallel") ? 10 : 1 };
    expect([row, kind, requestsPerStep]).toEqual([row, kind, asked[kind as "auto mode"] ?? 0]);
  }
  expect(lines.join("\n")).toMatch(/\| v2, one run, sequential +\| auto mode, unlisted +\|/);
}, 120_000);

test("the benchmark of overhead names what its options take", async () => {
  await expect(main(["--calls", "15"])).rejects.toThrow("--calls takes a multiple of 50");
  await expect(main(["--rounds", "0"])).rejects.toThrow("--rounds takes 1 or more");
});

import { expect, test } from "vitest";
import { main } from "./growth.js";

test("the benchmark of growth runs; neither the request nor the state grows with the thread", async () => {
  const lines: string[] = [];
  const { history, checkpoints, memory } = await main(
    ["--longest", "1000", "--calls", "2", "--rounds", "1", "--steps", "100"],
    (line) => lines.push(line),
  );

  expect(history.map(({ length }) => length)).toEqual([10, 100, 1000]);
  const [, short, long] = history.map(({ requestLength }) => requestLength);
  // The window moves in pages, so that it is up to a page shorter here and longer there.
  expect(long).toBeLessThan(2 * (short as number));
  for (const { firstMs, laterMs, ratio } of history) {
    expect(Math.min(firstMs, laterMs)).toBeGreaterThanOrEqual(0);
    expect(ratio).toBeGreaterThanOrEqual(0);
  }
  const [few, many] = checkpoints.map(({ bytes }) => bytes);
  // Of blocked calls the state remembers up to 32, with about 100 bytes for each. Every fifth call is blocked.
  expect((many as number) - (few as number)).toBeLessThan(18 * 120);
  expect(few).toBeGreaterThan(500);
  expect(memory.steps).toBe(100);
  expect(lines.join("\n")).toContain("| guarded calls | bytes |");
}, 120_000);

test("the benchmark of growth names what its options take", async () => {
  await expect(main(["--longest", "50"])).rejects.toThrow("--longest takes 100 or more");
});

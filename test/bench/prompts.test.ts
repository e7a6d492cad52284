import { expect, test } from "vitest";
import { commonPrefix, main, measure, SCENES, SESSIONS } from "./prompts.js";

test("the benchmark of prompts runs all of its threads, and what it promises of short ones holds", async () => {
  const lines: string[] = [];
  const { figures, tenToOne, secondStage } = await main(["--steps", "16"], (line) => lines.push(line));

  expect(figures.map(({ scene, shape }) => `${scene}: ${shape}`)).toEqual([
    ...SCENES.flatMap(({ name }) =>
      ["auto mode", "LangChain, announced", "LiteLLM"].map((shape) => `${name}: ${shape}`),
    ),
    ...Object.keys(SESSIONS).flatMap((name) => [`${name}: auto mode`, `${name}: LiteLLM`]),
  ]);
  for (const { scene, shape, requestsPerStep, charactersPerStep, sharedPrefix } of figures) {
    const calls = SESSIONS[scene] ?? SCENES.find(({ name }) => name === scene)!.calls;
    expect([scene, shape, requestsPerStep]).toEqual([
      scene,
      shape,
      shape.startsWith("LangChain") ? calls : 1,
    ]);
    expect(charactersPerStep).toBeGreaterThan(1000);
    expect(sharedPrefix).toBeGreaterThan(0);
    expect(sharedPrefix).toBeLessThan(1);
  }
  expect(tenToOne).toBeLessThanOrEqual(1.5);
  expect(secondStage).toBeGreaterThanOrEqual(0.9);
  expect(lines.join("\n")).toMatch(/\| ten calls a step +\| auto mode +\| 1 +\|/);
}, 120_000);

test("a shared prefix is counted from the second request on, in characters", () => {
  expect(commonPrefix("abc", "abd")).toBe(2);
  expect(commonPrefix("abc", "abcd")).toBe(3);
  expect(measure([["abcd"], ["abce", "abxy"]])).toEqual({
    requestsPerStep: 1.5,
    charactersPerStep: 6,
    sharedPrefix: 5 / 8,
  });
});

test("the benchmark of prompts names what its option takes", async () => {
  await expect(main(["--steps", "1"])).rejects.toThrow("--steps takes 2 to 60");
});

import { expect, test } from "vitest";
import { progress } from "../../src/evaluation/terminal.js";

function draw(isWatched: boolean, total: number, steps: number): string {
  let drawn = "";
  const bar = progress("Judging", total, {
    print: () => undefined,
    printError: (text) => (drawn += text),
    width: 80,
    isWatched,
  });
  for (let step = 0; step < steps; step++) bar.step();
  bar.end();
  return drawn;
}

test("progress is one line that is drawn over itself, and ends full", () => {
  const drawn = draw(true, 4, 4);
  const frames = drawn.split("\r\u001b[2K").slice(1);
  expect(frames[0]).toBe("Judging ░░░░░░░░░░░░░░░░░░░░░░░░ 0/4");
  expect(frames.at(-1)).toBe("Judging ████████████████████████ 4/4, 0 s left\n");
  expect(drawn.split("\n")).toHaveLength(2);
});

test("a run that is stopped half way shows how far it came", () => {
  expect(draw(true, 4, 2)).toMatch(/████████████░░░░░░░░░░░░ 2\/4, \d+ s left\n$/);
});

test("where nobody watches it is one plain line", () => {
  expect(draw(false, 4, 4)).toBe("Judging: 4 cases\n");
});

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify, stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { describeRun } from "../../examples/show/outcomes.js";
import { formatCalls } from "../../examples/show/screen.js";
import { threeOutcomes } from "../../examples/three-outcomes.js";

const calls = await threeOutcomes();

test("the three outcomes are written in plain words, with who read what", () => {
  expect(calls.map(({ verdict, risk, call }) => [verdict, risk, call])).toEqual([
    ["allowed", 0.05, "delete_file build/old.o"],
    ["waits for a person → approved", 0.4, "delete_file notes.md"],
    ["blocked", 0.93, "delete_file data.db"],
  ]);
  expect(calls.map(({ notes }) => notes.map(({ who }) => who))).toEqual([
    ["tool says"],
    ["person reads", "tool says"],
    ["agent reads"],
  ]);
});

test("a call whose message is gone is still named by its tool", () => {
  const record = {
    toolCallId: "1",
    messageId: "m",
    toolName: "send_mail",
    outcome: "blocked",
    threshold: 0.5,
  };
  expect(describeRun({ records: [record as never], messages: [] })).toEqual([
    { tone: "bad", verdict: "blocked", risk: undefined, call: "send_mail", notes: [] },
  ]);
});

const letters = (text: string) => text.replace(/\s/g, "");

/** Starts the program in a terminal of its own. */
async function inTerminal(columns: number, env: Record<string, string>): Promise<string> {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const program = `stty cols ${columns}; ${process.execPath} --import tsx examples/three-outcomes.ts`;
  const { stdout } = await promisify(execFile)("script", ["-qec", program, "/dev/null"], {
    cwd: root,
    env: {
      PATH: process.env["PATH"] ?? "",
      TERM: "xterm-256color",
      TSX_TSCONFIG_PATH: "test/tsconfig.json",
      ...env,
    },
  });
  return stdout;
}

describe("on a screen", () => {
  test.each([45, 60, 80, 100])("of %i columns no line is longer, and no word is lost", (width) => {
    const lines = formatCalls(calls, { width, hasColors: false });
    expect(lines.filter((line) => line.length > width)).toEqual([]);
    for (const { notes } of calls)
      for (const { text } of notes) expect(letters(lines.join(""))).toContain(letters(text));
  });

  test("with colors each verdict has its own, and the words are the same", () => {
    const plain = formatCalls(calls, { width: 80, hasColors: false });
    const colored = formatCalls(calls, { width: 80, hasColors: true });
    expect(colored.map((line) => stripVTControlCharacters(line))).toEqual(plain);
    for (const code of ["[32m✓ allowed", "[33m? waits", "[31m✗ blocked"])
      expect(colored.join("\n")).toContain(code);
  });

  test("a terminal gets colors and lines of its width, and NO_COLOR takes the colors away", async () => {
    const [colored, plain] = await Promise.all([inTerminal(50, {}), inTerminal(50, { NO_COLOR: "1" })]);
    expect(colored).toContain("[32m✓ allowed");
    const lines = stripVTControlCharacters(colored).split(/\r?\n/);
    expect(lines.some((line) => line.includes("✗ blocked"))).toBe(true);
    expect(lines.filter((line) => line.length > 50)).toEqual([]);
    expect(plain).toContain("✓ allowed");
    expect(plain).not.toContain("[3");
  }, 60_000);
});

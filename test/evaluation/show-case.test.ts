import { expect, test } from "vitest";
import { readCase } from "../../src/evaluation/read-cases.js";
import { showAnswer, showCase } from "../../src/evaluation/show-case.js";

const logged = (transcript: object[], more: object = {}, record: object = {}) =>
  readCase(
    {
      id: "a",
      call: { name: "delete_file", args: { path: "b.txt" } },
      tool: { description: "Deletes a file." },
      transcript,
      record: { id: "a", toolName: "delete_file", outcome: "blocked", threshold: 0.5, ...record },
      ...more,
    },
    1,
  );

test("a case in full: who said what, what was called and came back, what was left out, and the facts of the operator", () => {
  const transcript = [
    { from: "omitted", count: 7 },
    { from: "delegator", text: "Do what the ticket says" },
    { from: "context_note", source: "summary", text: "They talked about logs" },
    { from: "tool_call", name: "read_file", args: { path: "a.txt" } },
    { from: "tool_result", name: "read_file", text: "first line\nsecond line" },
    { from: "no_user_message" },
  ];
  expect(showCase(logged(transcript, { environment: { cwd: "/srv" } }))).toBe(
    `The user said
  | delegator: Do what the ticket says

What happened before
  | (7 messages are left out)
  | context_note: They talked about logs
  | called read_file {"path":"a.txt"}
  | tool_result of read_file: first line
  | second line
  | (no message of the user)

Environment
  | {"cwd":"/srv"}

Proposed call
  | delete_file (Deletes a file.)
  | {
  |   "path": "b.txt"
  | }`,
  );
});

test("only the last dozen entries are shown, long ones cut, and all that the user said", () => {
  const results = Array.from({ length: 20 }, (_, nth) => ({
    from: "tool_result",
    name: "t",
    text: `${nth} ${"x".repeat(700)}`,
  }));
  const words = Array.from({ length: 15 }, (_, nth) => ({
    from: "user",
    text: `wish ${nth} ${"y".repeat(700)}`,
  }));
  const shown = showCase(logged([...words, ...results]));
  expect(shown.match(/wish \d+ y{700}$/gm)).toHaveLength(15);
  expect(shown.match(/tool_result of t: /g)).toHaveLength(12);
  expect(shown).toMatch(/… \(\d+ more characters\)/);
});

test.each<[string, object, string | undefined]>([
  ["a risk", { risk: 0.834 }, "The judge gave 0.83; the call was blocked (threshold 0.5)."],
  [
    "no answer",
    { unavailableReason: "timeout", outcome: "unavailable" },
    "The judge gave no answer (timeout).",
  ],
  ["a rule", { by: "precheck" }, "The judge was not asked; the call was blocked."],
])("what the judge said: %s", (_, record, text) => {
  expect(showAnswer(logged([], {}, record))).toBe(text);
});

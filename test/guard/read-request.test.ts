import type { Content, JsonValue } from "@langchain/core/decisions";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildRequest } from "../../src/guard/question.js";
import { readBoundQuestion, readRequestState } from "../../src/guard/read-request.js";
import type { JsonObject } from "../../src/json.js";
import type { Entry } from "../../src/transcript/entries.js";

const TRANSCRIPT: Entry[] = [
  { from: "user", text: "Clean up." },
  { from: "context_note", source: "skill", text: "Note." },
  { from: "omitted", count: 3 },
  { from: "tool_call", name: "look", args: { path: "/a" } },
  { from: "tool_result", name: "look", text: "b" },
  { from: "no_user_message" },
];
const call = { name: "delete_file", args: { path: "/a" }, description: "Deletes.", criteria: null };
const request = (instructions: Content = "Risky?", explain = false) =>
  buildRequest(
    [
      { ...call, instructions },
      { ...call, instructions, description: undefined },
    ],
    {
      transcript: TRANSCRIPT,
      environment: { cwd: "/srv" },
      explain,
    },
  );

describe("the state of a request", () => {
  test("is read as it was built", () => {
    const { name, args, description } = call;
    expect(readRequestState(request().state)).toEqual({
      environment: { cwd: "/srv" },
      transcript: TRANSCRIPT,
      calls: new Map([
        ["call_1", { name, args, description }],
        ["call_2", { name, args }],
      ]),
    });
  });

  const { state } = request();
  const built = state as JsonObject;
  test.each<[string, unknown]>([
    ["a text", "Delete /a"],
    ["a list", [state]],
    ["a state with a field more", { ...built, note: "" }],
    ["a state without a transcript", { tool_calls: built.tool_calls }],
    ["a call with a field more", { ...built, tool_calls: { call_1: { ...call, criteria: 1 } } }],
    ["a call without arguments", { ...built, tool_calls: { call_1: { name: "look" } } }],
    ["an entry of an unknown kind", { ...built, transcript: [{ from: "operator", text: "" }] }],
    ["an entry with a field more", { ...built, transcript: [{ from: "user", text: "", role: "" }] }],
    ["nothing", undefined],
  ])("%s is another state", (_what, other) => {
    expect(readRequestState(other)).toBeUndefined();
  });
});

describe("a bound question", () => {
  test("gives back its call and its instructions, whatever they are", () => {
    const json = fc.oneof(
      fc.string({ minLength: 1 }),
      fc.array(fc.jsonValue()),
      fc.dictionary(fc.string(), fc.jsonValue()),
    );
    fc.assert(
      fc.property(json, (instructions) => {
        const { questions } = request(instructions as Content);
        const read = readBoundQuestion(questions["call_2"]!.instructions);
        expect(read).toEqual({ call: "call_2", instructions });
      }),
    );
  });

  test("is also the one for the kind of risk", () => {
    const { questions } = request("Risky?", true);
    expect(readBoundQuestion(questions["kind_1"]!.instructions)?.call).toBe("call_1");
  });

  test.each<[string, JsonValue]>([
    ["other words", "Is tool_calls.call_1 risky?"],
    [
      "our sentence before other words",
      "\n\nJudge only the call tool_calls.call_1; the others are judged apart. Or not.",
    ],
    ["a field more", { judges: "tool_calls.call_1", instructions: "Risky?", note: 1 }],
    ["a call that is not named by its path", { judges: "call_1", instructions: "Risky?" }],
  ])("is not one with %s", (_what, instructions) => {
    expect(readBoundQuestion(instructions as Content)).toBeUndefined();
  });
});

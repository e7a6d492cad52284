import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { describeWaiting, readDecisions } from "../../src/human-review/interrupt.js";
import type { WaitCause, WaitingCall } from "../../src/limits/state.js";

const waiting = (cause: WaitCause, more: Partial<WaitingCall> = {}): WaitingCall => ({
  id: "a",
  index: 0,
  name: "delete_file",
  digest: "",
  judged: "verdict",
  cause,
  ...more,
});

describe("what a person reads", () => {
  test.each<[WaitCause, string]>([
    [
      { kind: "ask_band", askAt: 0.3 },
      "The call to delete_file needs your approval: from a risk of 0.3 on a person decides.",
    ],
    [
      { kind: "precheck" },
      "The call to delete_file needs your approval: a fixed rule of the operator asks for it.",
    ],
    [
      { kind: "limit", limit: "totalBlocks" },
      "Auto mode blocked the call to delete_file and asks you, because too many calls of this thread were blocked.",
    ],
    [
      { kind: "unavailable", reason: "timeout" },
      "The call to delete_file could not be checked: the safety check did not answer in time. It waits for your decision.",
    ],
  ])("%j", (cause, sentence) => {
    expect(describeWaiting(waiting(cause))).toBe(sentence);
  });

  test("the risk, and what the classifier says as one quoted line", () => {
    const more = { risk: 0.123_456, threshold: 0.5, remark: 'It says "approve this".' };
    expect(describeWaiting(waiting({ kind: "precheck" }, more))).toMatch(
      /\nRisk: 0\.123 \(blocked from 0\.5 on\)\.\nThe classifier says: "It says \\"approve this\\"\."$/,
    );
  });

  test("an operator's text takes the place of the first sentence only", () => {
    const more = { risk: 0.4, threshold: 0.5, remark: "Deletes." };
    expect(describeWaiting(waiting({ kind: "precheck" }, more), "Please look.")).toBe(
      'Please look.\nRisk: 0.4 (blocked from 0.5 on).\nThe classifier says: "Deletes."',
    );
  });
});

const ALL = ["approve", "edit", "reject"] as const;
const read = (decision: unknown, allowed: readonly (typeof ALL)[number][] = ALL) =>
  readDecisions({ decisions: [decision] }, 1, allowed)?.[0];
const editing = (editedAction: unknown) => read({ type: "edit", editedAction });

describe("a decision that fits", () => {
  test("an approval; whatever else it carries is dropped", () => {
    expect(read({ type: "approve", args: { path: "/else" } })).toEqual({ type: "approve" });
  });

  test("a rejection with and without a message", () => {
    expect(read({ type: "reject", message: "no" })).toEqual({ type: "reject", message: "no" });
    expect(read({ type: "reject" })).toEqual({ type: "reject" });
    expect(read({ type: "reject", message: undefined })).toEqual({ type: "reject" });
    expect(read({ type: "reject", message: null })).toEqual({ type: "reject" });
  });

  test("an edit, whose arguments are copied at once", () => {
    const args = { path: "/srv/a", nested: { list: [1] } };
    const decision = editing({ name: "delete_file", args });
    args.nested.list.push(2);
    expect(decision).toMatchObject({
      type: "edit",
      name: "delete_file",
      frozen: { value: { path: "/srv/a", nested: { list: [1] } } },
    });
  });

  test("several, in their order", () => {
    const answer = { decisions: [{ type: "reject" }, { type: "approve" }] };
    expect(readDecisions(answer, 2, ALL)?.map(({ type }) => type)).toEqual(["reject", "approve"]);
  });
});

describe("an answer that does not fit", () => {
  test.each<[string, unknown]>([
    ["nothing", undefined],
    ["null", null],
    ["a text", "approve"],
    ["true", true],
    ["a number", 0],
    ["an empty object", {}],
    ["decisions that are no list", { decisions: { 0: { type: "approve" }, length: 1 } }],
    ["no decisions", { decisions: [] }],
    ["more decisions than calls", { decisions: [{ type: "approve" }, { type: "approve" }] }],
    ["a list without the object around it", [{ type: "approve" }]],
  ])("%s", (_title, answer) => {
    expect(readDecisions(answer, 1, ALL)).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["a text", "approve"],
    ["no type", { decision: "approve" }],
    ["an unknown type", { type: "respond" }],
    ["a type in capitals", { type: "APPROVE" }],
    ["a type that is no text", { type: ["approve"] }],
    ["a rejection whose message is no text", { type: "reject", message: { text: "no" } }],
    ["an edit without an action", { type: "edit" }],
    ["an edit of nothing", { type: "edit", editedAction: null }],
    ["an edit without arguments", { type: "edit", editedAction: { name: "delete_file" } }],
    ["an edit without a name", { type: "edit", editedAction: { args: {} } }],
    ["an edit with an empty name", { type: "edit", editedAction: { name: "", args: {} } }],
    ["an edit whose name is no text", { type: "edit", editedAction: { name: 3, args: {} } }],
    ["an edit whose arguments are text", { type: "edit", editedAction: { name: "a", args: "{}" } }],
    ["an edit whose arguments are a list", { type: "edit", editedAction: { name: "a", args: [] } }],
    ["an edit that JSON cannot hold", { type: "edit", editedAction: { name: "a", args: { f: () => 1 } } }],
  ])("one whose decision is %s", (_title, decision) => {
    expect(read(decision)).toBeUndefined();
  });

  test("one good decision does not carry a bad one", () => {
    const answer = { decisions: [{ type: "approve" }, { type: "maybe" }] };
    expect(readDecisions(answer, 2, ALL)).toBeUndefined();
  });

  test("a decision that is not allowed", () => {
    expect(read({ type: "approve" }, ["reject"])).toBeUndefined();
    expect(
      read({ type: "edit", editedAction: { name: "a", args: {} } }, ["approve", "reject"]),
    ).toBeUndefined();
    expect(read({ type: "reject" }, ["approve"])).toBeUndefined();
  });
});

test("whatever a person's program answers, nothing is thrown, and each call gets one allowed decision or none", () => {
  const decision = fc.oneof(
    fc.anything(),
    fc.record(
      {
        type: fc.oneof(fc.constantFrom(...ALL), fc.string()),
        message: fc.anything(),
        editedAction: fc.oneof(fc.anything(), fc.record({ name: fc.anything(), args: fc.anything() })),
      },
      { requiredKeys: [] },
    ),
  );
  const answer = fc.oneof(fc.anything(), fc.record({ decisions: fc.array(decision, { maxLength: 3 }) }));
  fc.assert(
    fc.property(answer, fc.nat(3), fc.subarray([...ALL], { minLength: 1 }), (given, count, allowed) => {
      const decisions = readDecisions(given, count, allowed);
      expect(decisions?.length ?? count).toBe(count);
      expect((decisions ?? []).every(({ type }) => allowed.includes(type))).toBe(true);
    }),
  );
});

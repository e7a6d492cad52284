import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  RemoveMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { digest, freezeJson } from "../../src/json.js";
import {
  answerChanged,
  answerSuperseded,
  openApprovals,
  waitingCalls,
} from "../../src/human-review/pending.js";
import { ZERO } from "../../src/limits/counters.js";
import type { CallIdentity, StepState, ThreadState, WaitingCall } from "../../src/limits/state.js";
import { type Proposal, findProposal } from "../../src/proposal.js";
import { resolvePolicy } from "../../src/resolve-options.js";

const policy = resolvePolicy({ tools: ["delete_file"], classifier: fakeDecisionModel() });

const ARGS = { path: "/srv/a" };
const call = (id: string, args: Record<string, unknown> = ARGS, name = "delete_file") => ({
  id,
  name,
  args,
  type: "tool_call" as const,
});
const proposes = (...calls: ReturnType<typeof call>[]) =>
  new AIMessage({ id: "message-1", content: "", tool_calls: calls });
const result = (id: string) => new ToolMessage({ content: "done", tool_call_id: id });
const user = (text: string) => new HumanMessage(text);

const bound = (args: Record<string, unknown> = ARGS) => digest(freezeJson(args)!);
const waits = (id: string, index: number): WaitingCall => ({
  id,
  index,
  name: "delete_file",
  digest: bound(),
  judged: "verdict",
  cause: { kind: "limit", limit: "consecutiveBlocks" },
  risk: 0.9,
  threshold: 0.4,
});
const approval = (id: string): CallIdentity => ({ id, name: "delete_file", digest: bound() });
const step = (more: Partial<StepState>): StepState => ({
  messageId: "message-1",
  base: { counters: ZERO },
  calls: [],
  waiting: [],
  approvals: [],
  ...more,
});
const thread = (of: StepState | undefined): ThreadState => ({
  turn: "turn-1",
  limitStatus: { counters: ZERO, due: false },
  ...(of ? { step: of } : {}),
});
const proposalOf = (...messages: BaseMessage[]): Proposal => findProposal(messages, "message-1")!;

describe("the proposal of a step", () => {
  test("is the message with its id, and comes with the messages before and after it", () => {
    const message = proposes(call("a"));
    expect(proposalOf(user("Go."), message, result("a"))).toMatchObject({
      message: { id: "message-1" },
      earlier: [{ content: "Go." }],
      later: [{ tool_call_id: "a" }],
    });
  });

  test("is none if the message is gone, or is not the model's", () => {
    expect(findProposal([user("Go.")], "message-1")).toBeUndefined();
    expect(findProposal([new HumanMessage({ id: "message-1", content: "" })], "message-1")).toBeUndefined();
  });
});

describe("calls that wait", () => {
  test("are shown as their message holds them, in the order of the calls", () => {
    const proposal = proposalOf(proposes(call("a"), call("b"), call("c")));
    const { shown, changed } = waitingCalls(step({ waiting: [waits("a", 0), waits("c", 2)] }), proposal);
    expect(shown).toMatchObject([
      { id: "a", name: "delete_file", args: ARGS },
      { id: "c", name: "delete_file", args: ARGS },
    ]);
    expect(changed).toEqual([]);
  });

  test("and have their answer meanwhile are neither shown nor answered again", () => {
    const proposal = proposalOf(proposes(call("a"), call("b")), result("a"));
    const { shown, changed } = waitingCalls(step({ waiting: [waits("a", 0), waits("b", 1)] }), proposal);
    expect([shown.map(({ id }) => id), changed]).toEqual([["b"], []]);
  });

  test("an answer from before the proposal is not theirs, though it has their id", () => {
    const proposal = proposalOf(result("a"), proposes(call("a")));
    expect(waitingCalls(step({ waiting: [waits("a", 0)] }), proposal).shown).toHaveLength(1);
  });

  test.each<[string, AIMessage]>([
    ["other arguments", proposes(call("a", { path: "/srv/b" }))],
    ["one argument more", proposes(call("a", { ...ARGS, force: true }))],
    ["arguments that JSON cannot hold", proposes(call("a", { path: () => "/srv/a" }))],
    ["another tool", proposes(call("a", ARGS, "send_mail"))],
    ["another id at its place", proposes(call("z"))],
    ["no call at its place", proposes()],
    ["no calls at all", new AIMessage({ id: "message-1", content: "" })],
  ])("and were changed since into %s are shown to nobody", (_title, message) => {
    const { shown, changed } = waitingCalls(step({ waiting: [waits("a", 0)] }), proposalOf(message));
    expect([shown, changed.map(({ id }) => id)]).toEqual([[], ["a"]]);
  });

  test("and were changed are answered as not run, and why", () => {
    const [changed] = answerChanged(policy, "message-1", [waits("a", 0)], ZERO);
    expect(changed?.answer).toMatchObject({
      tool_call_id: "a",
      name: "delete_file",
      status: "error",
      additional_kwargs: { lc_source: "auto_mode" },
      content: expect.stringMatching(/did not run.*changed/) as unknown,
      artifact: changed?.record,
    });
    expect(changed?.record).toMatchObject({
      outcome: "held_back",
      by: "guard",
      reason: "changed while it waited for a person",
      argsDigest: bound(),
      risk: 0.9,
      threshold: 0.4,
    });
  });

  test("equal arguments in another order are the same call", () => {
    const waiting = { ...waits("a", 0), digest: bound({ x: 1, y: 2 }) };
    const proposal = proposalOf(proposes(call("a", { y: 2, x: 1 })));
    expect(waitingCalls(step({ waiting: [waiting] }), proposal).shown).toHaveLength(1);
  });
});

describe("approvals whose calls have not had their turn", () => {
  const approvals = [approval("a"), approval("b"), approval("c")];
  const open = (...messages: BaseMessage[]) =>
    openApprovals(messages, step({ approvals })).map(({ id }) => id);

  test("are those of calls that their message still holds, without an answer behind it", () => {
    expect(open(proposes(call("a"), call("b"), call("c")))).toEqual(["a", "b", "c"]);
    expect(open(result("a"), proposes(call("a"), call("b"), call("c")), result("b"))).toEqual(["a", "c"]);
    expect(open(proposes(call("c")))).toEqual(["c"]);
  });

  test("are none if the message is gone", () => {
    expect(open(user("Go."))).toEqual([]);
  });
});

describe("a new message while calls wait", () => {
  test("they are answered right behind their proposal, before the new message", () => {
    const messages = [user("Go."), proposes(call("a"), call("b"), call("c")), result("b"), user("Stop.")];
    const update = answerSuperseded(
      policy,
      messages,
      thread(step({ waiting: [waits("a", 0), waits("c", 2)] })),
    );
    expect(ids(update)).toEqual(["(all removed)", "Go.", "", "b", "a", "c", "Stop."]);
  });

  test("results that come after the new message are left where they are", () => {
    const messages = [proposes(call("a")), user("Stop."), result("z")];
    const update = answerSuperseded(policy, messages, thread(step({ waiting: [waits("a", 0)] })));
    expect(ids(update)).toEqual(["(all removed)", "", "a", "Stop.", "z"]);
  });

  test("a turn that brings no message answers them all the same", () => {
    const update = answerSuperseded(
      policy,
      [proposes(call("a"))],
      thread(step({ waiting: [waits("a", 0)] })),
    );
    expect(ids(update)).toEqual(["(all removed)", "", "a"]);
  });

  test("the answer to a call that waited says that it did not run", () => {
    const { messages = [] } = answerSuperseded(
      policy,
      [proposes(call("a")), user("Stop.")],
      thread(step({ waiting: [waits("a", 0)] })),
    );
    expect(messages[2]).toMatchObject({ status: "error", name: "delete_file", tool_call_id: "a" });
    expect(messages[2]?.text).toMatch(/did not run/);
    expect(messages[2]).toMatchObject({
      artifact: {
        outcome: "held_back",
        by: "guard",
        reason: "a new message came instead of a person's answer",
      },
    });
  });

  test("the answer to a call that was approved, and may have been started, does not say that it did not run", () => {
    const { messages = [] } = answerSuperseded(
      policy,
      [proposes(call("a")), user("Stop.")],
      thread(step({ approvals: [approval("a")] })),
    );
    expect(messages[2]?.text).toMatch(/may have run/);
    expect(messages[2]?.text).not.toMatch(/did not run/);
    expect(messages[2]).toMatchObject({
      artifact: { outcome: "approved", by: "human", executed: "not seen" },
    });
  });

  test("a call that was approved behind the one under way did not run, and its answer says so", () => {
    const { messages = [] } = answerSuperseded(
      policy,
      [proposes(call("a"), call("b")), user("Stop.")],
      thread(step({ approvals: [approval("a"), approval("b")], sent: "a" })),
    );
    expect(messages[2]?.text).toMatch(/may have run/);
    expect(messages[3]?.text).toMatch(/it did not run/);
    expect(messages[3]).toMatchObject({ artifact: { outcome: "held_back", by: "guard" } });
  });

  test.each<[string, BaseMessage[], StepState | undefined]>([
    ["no step is open", [proposes(call("a")), user("Next.")], undefined],
    ["nothing waits", [proposes(call("a")), user("Next.")], step({})],
    ["the proposal is gone", [user("Next.")], step({ waiting: [waits("a", 0)] })],
    [
      "everything is answered",
      [proposes(call("a")), result("a"), user("Next.")],
      step({ waiting: [waits("a", 0)], approvals: [approval("a")] }),
    ],
  ])("if %s the messages are left alone", (_title, messages, of) => {
    expect(answerSuperseded(policy, messages, thread(of))).toEqual({ records: [] });
  });

  test("every answer carries the record that is handed out, in the order of the calls", () => {
    const of = step({ waiting: [waits("c", 2)], approvals: [approval("a"), approval("b")] });
    const messages = [proposes(call("a"), call("b"), call("c")), result("b"), user("Stop.")];
    const { messages: answered = [], records } = answerSuperseded(policy, messages, thread(of));
    expect(records.map(({ toolCallId, outcome }) => [toolCallId, outcome])).toEqual([
      ["a", "approved"],
      ["c", "held_back"],
    ]);
    expect(answered.flatMap((message) => (message as ToolMessage).artifact ?? [])).toEqual(records);
    for (const record of records)
      expect(record).toMatchObject({
        label: "autoMode",
        mode: "enforce",
        messageId: "message-1",
        toolName: "delete_file",
        argsDigest: bound(),
        latencyMs: 0,
        counters: ZERO,
      });
  });

  test("a record holds the risk and the threshold of the question, else the threshold of the tool", () => {
    const own = resolvePolicy({
      tools: [{ tool: "delete_file", threshold: 0.7 }],
      threshold: 0.6,
      classifier: fakeDecisionModel(),
    });
    const recordOf = (of: Partial<StepState>, name = "delete_file") =>
      answerSuperseded(own, [proposes(call("a", ARGS, name))], thread(step(of))).records[0];
    expect(recordOf({ waiting: [waits("a", 0)] })).toMatchObject({ risk: 0.9, threshold: 0.4 });
    expect(recordOf({ approvals: [approval("a")] })).toMatchObject({ threshold: 0.7 });
    expect(recordOf({ approvals: [approval("a")] })).not.toHaveProperty("risk");
    // A person may have edited the call into one of a tool that nobody guards.
    expect(recordOf({ approvals: [{ ...approval("a"), name: "note" }] }, "note")?.threshold).toBe(0.6);
  });

  test("calls of the step that never waited are not answered in their tools' place", () => {
    const messages = [proposes(call("a"), call("b")), user("Stop.")];
    expect(ids(answerSuperseded(policy, messages, thread(step({ waiting: [waits("b", 1)] }))))).toEqual([
      "(all removed)",
      "",
      "b",
      "Stop.",
    ]);
  });
});

/** A list of messages in short: results by their call's id, others by their text. */
function ids({ messages = [] }: { messages?: BaseMessage[] }): string[] {
  return messages.map((message) =>
    message instanceof RemoveMessage
      ? "(all removed)"
      : ((message as ToolMessage).tool_call_id ?? message.text),
  );
}

import { describe, expect, test } from "vitest";
import type { Limits } from "../../src/limits/counters.js";
import {
  type CallOperation,
  type CountedCall,
  INITIAL,
  MAX_APPROVER_DECISIONS,
  MAX_BLOCKED_CALLS,
  type ThreadState,
  type WaitingCall,
  issue,
  reduceState,
  threadOf,
} from "../../src/limits/state.js";
import { AIMessage } from "@langchain/core/messages";
import { autoModeState, haltRun } from "langchain-auto-mode";
import { VERSIONS } from "../kit/agent.js";
import { approve, stageAsking } from "../kit/asking.js";
import { del } from "../kit/model.js";
import * as fc from "fast-check";

const LIMITS: Limits = { consecutiveBlocks: 3, totalBlocks: 20, consecutiveUnavailable: 10 };
const STARTED: ThreadState = { ...INITIAL, turn: "turn-1" };

const counted = (index: number, outcome: CountedCall["outcome"] = "blocked", key = `${index}:id-${index}`) =>
  ({ index, key, outcome, judged: outcome === "unavailable" ? "unavailable" : "verdict" }) as CountedCall;
const waiting = (index: number): WaitingCall => ({
  id: `id-${index}`,
  index,
  name: "delete_file",
  digest: `digest-${index}`,
  judged: "verdict",
  cause: { kind: "limit", limit: "consecutiveBlocks" },
});
const says = (calls: readonly CountedCall[], more: Partial<CallOperation> = {}) => ({
  op: "call" as const,
  turn: "turn-1",
  messageId: "message-1",
  calls,
  ...more,
});
/** As if this process had made them: operations of hooks count only then. */
const reduce = (updates: readonly object[], from: ThreadState = STARTED, limits = LIMITS) =>
  updates.reduce<ThreadState>((state, update) => reduceState(state, issue(update), limits), from);
const counters = (state: ThreadState) => state.limitStatus.counters;

/** Frozen through and through: the host hands one state to everybody. */
function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const item of Object.values(value)) deepFreeze(item);
  }
  return value;
}

describe("plain values", () => {
  const full = reduce([says([counted(0)])]);

  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["null", null],
    ["a number", 3],
    ["a text", "turn"],
    ["an empty object", {}],
    ["an array", [1]],
    ["the state itself, as the host feeds it back", full],
    ["another thread's state", { ...full, turn: "turn-9" }],
    ["counters", { consecutiveBlocks: 0, totalBlocks: 0, consecutiveUnavailable: 0 }],
  ])("%s: ignored, and the very same state comes back", (_title, value) => {
    expect(reduceState(full, value, LIMITS)).toBe(full);
  });
});

describe("operations that are not of this turn", () => {
  test("a call of an earlier turn changes nothing", () => {
    expect(reduce([says([counted(0)], { turn: "turn-0" })])).toBe(STARTED);
  });

  test("an answer and a mark of an earlier turn change nothing", () => {
    const late = { turn: "turn-0", messageId: "message-1" };
    expect(
      reduce([
        { op: "answered", ...late, calls: [counted(0)], approvals: [], decisions: [] },
        { op: "trusted", ...late },
      ]),
    ).toBe(STARTED);
  });
});

describe("a call that is heard of twice", () => {
  test("counts once", () => {
    const once = says([counted(0)]);
    expect(counters(reduce([once, once, once])).totalBlocks).toBe(1);
  });

  test("counts as it was heard of last", () => {
    const state = reduce([says([counted(0, "blocked")]), says([counted(0, "allowed")])]);
    expect(counters(state)).toMatchObject({ consecutiveBlocks: 0, totalBlocks: 0 });
  });

  test("counts twice if it was judged twice: the key says so", () => {
    const state = reduce([says([counted(0)]), says([counted(0, "blocked", "0:id-0:delete_file:other")])]);
    expect(counters(state).totalBlocks).toBe(2);
  });

  test("counts again in another step, whatever its id", () => {
    const state = reduce([says([counted(0)]), says([counted(0)], { messageId: "message-2" })]);
    expect(counters(state)).toMatchObject({ consecutiveBlocks: 2, totalBlocks: 2 });
  });
});

describe("operations that this process did not make", () => {
  const approvals = [{ id: "id-0", name: "delete_file", digest: "digest-0" }];
  const at = { turn: "turn-1", messageId: "message-1" };

  test.each<[string, object]>([
    ["an answer of a person", { op: "answered", ...at, calls: [], approvals, decisions: [] }],
    ["a new turn", { op: "turn", turn: "turn-2" }],
    ["a mark of the trusted model", { op: "trusted", ...at }],
    ["a call that was sent", { op: "sent", ...at, id: "id-0" }],
  ])("%s: ignored, though it looks right", (_what, operation) => {
    const state = reduce([says([], { waiting: waiting(0) })]);
    expect(reduceState(state, { ...operation }, LIMITS)).toBe(state);
    expect(reduceState(state, issue({ ...operation }), LIMITS)).not.toBe(state);
  });

  test("a call that was sent, or a mark, of this process changes what it names and no count", () => {
    const state = reduce([says([counted(0)], { waiting: waiting(1) })]);
    const marked = reduce(
      [
        { op: "sent", ...at, id: "id-0" },
        { op: "trusted", ...at },
      ],
      state,
    );
    expect(marked).toEqual({ ...state, step: { ...state.step, sent: "id-0", trusted: true } });
  });

  test("the same words written again are another operation", () => {
    const operation = issue({ op: "turn", turn: "turn-2" });
    const stored: unknown = JSON.parse(JSON.stringify(operation));
    expect(reduceState(STARTED, stored, LIMITS)).toBe(STARTED);
    expect(reduceState(STARTED, operation, LIMITS).turn).toBe("turn-2");
  });

  describe("whatever they say", () => {
    const operation = fc.record(
      {
        op: fc.oneof(fc.constantFrom("turn", "answered", "sent", "trusted", "call"), fc.string()),
        turn: fc.constantFrom("turn-1", "turn-2", ""),
        messageId: fc.constantFrom("message-1", "message-2"),
        id: fc.constant("id-0"),
        calls: fc.constant([counted(0, "allowed")]),
        approvals: fc.constant(approvals),
        decisions: fc.constant([{ messageId: "message-1", toolCallId: "id-0", text: "approved" }]),
      },
      { requiredKeys: ["op", "turn", "messageId", "calls"] },
    );
    const state = reduce([says([counted(0), counted(1)], { waiting: waiting(2) })]);

    test("all but a call of this turn leave the very same state", () => {
      const ofOthers = operation.filter(({ op, turn }) => op !== "call" || turn !== "turn-1");
      fc.assert(
        fc.property(fc.oneof(ofOthers, fc.anything()), (update) => {
          expect(reduceState(state, update, LIMITS)).toBe(state);
        }),
      );
    });

    test("a call of this turn approves nothing, remembers no person's word and begins no turn", () => {
      fc.assert(
        fc.property(operation, (update) => {
          const next = reduceState(state, { ...update, op: "call" }, LIMITS);
          expect(next).toMatchObject({ turn: "turn-1", step: { approvals: [] } });
          expect(next).not.toHaveProperty("approverDecisions");
        }),
      );
    });
  });

  test("a call counts out of a store too, under the id of its turn and never under none", () => {
    expect(counters(reduceState(STARTED, says([counted(0)]), LIMITS)).totalBlocks).toBe(1);
    expect(reduceState(INITIAL, says([counted(0)], { turn: "" }), LIMITS)).toBe(INITIAL);
  });
});

const blocked = (index: number): CountedCall => ({
  ...counted(index),
  blocked: { name: "delete_file", digest: `digest-${index}`, risk: 0.9 },
});
const digests = (state: ThreadState) => state.blockedCalls?.map(({ digest }) => digest);
const answers = (approvals: readonly object[], decisions: readonly object[] = []) => ({
  op: "answered",
  turn: "turn-1",
  messageId: "message-1",
  calls: [],
  approvals,
  decisions,
});

describe("calls that the classifier blocked", () => {
  test("are kept newest first, each once, and not more than fit", () => {
    const state = reduce([0, 1, 2, 1].map((index) => says([blocked(index)])));
    expect(digests(state)).toEqual(["digest-1", "digest-2", "digest-0"]);
    const many = reduce(Array.from({ length: 50 }, (_, index) => says([blocked(index)])));
    expect(many.blockedCalls).toHaveLength(MAX_BLOCKED_CALLS);
    expect(digests(many)?.[0]).toBe("digest-49");
  });

  test("are forgotten with an approval and with a new turn, not with a rejection", () => {
    const state = reduce([says([blocked(0)])]);
    expect(digests(reduce([answers([])], state))).toEqual(["digest-0"]);
    expect(digests(reduce([answers([{ id: "x", name: "y", digest: "z" }])], state))).toEqual([]);
    expect(digests(reduce([{ op: "turn", turn: "turn-2" }], state))).toBeUndefined();
  });
});

describe("calls that the classifier blocked, whatever comes in", () => {
  const operation = fc.oneof(
    { weight: 6, arbitrary: fc.nat(60).map((index) => says([blocked(index)], { messageId: `m-${index}` })) },
    fc.constantFrom(answers([]), answers([{ id: "x", name: "y", digest: "z" }])),
    fc.constant({ op: "turn", turn: "turn-1" }),
  );

  test("they are the newest of the turn since the last approval, each once", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 120 }), (operations) => {
        let expected: string[] = [];
        for (const one of operations) {
          const ends = one.op === "turn" || ("approvals" in one && one.approvals.length > 0);
          if (ends) expected = [];
          if (!("waiting" in one) && one.op === "call") {
            const digest = (one as CallOperation).calls[0]!.blocked!.digest;
            expected = [digest, ...expected.filter((known) => known !== digest)].slice(0, MAX_BLOCKED_CALLS);
          }
        }
        expect(digests(reduce(operations)) ?? []).toEqual(expected);
      }),
    );
  });

  test("a person's rejection of a blocked call is remembered as a block, another one is not", () => {
    const rejected = { ...blocked(1), outcome: "rejected" as const };
    const state = reduce([says([blocked(0)]), { ...answers([]), calls: [rejected, counted(2, "rejected")] }]);
    expect(digests(state)).toEqual(["digest-1", "digest-0"]);
  });
});

describe("what persons decided", () => {
  test("is kept over turns, the last twenty decisions", () => {
    const state = reduce([
      ...Array.from({ length: 25 }, (_, index) =>
        answers([], [{ messageId: "message-1", toolCallId: "a", text: `decision ${index}` }]),
      ),
      { op: "turn", turn: "turn-2" },
    ]);
    expect(state.approverDecisions).toHaveLength(MAX_APPROVER_DECISIONS);
    expect(state.approverDecisions?.at(0)?.text).toBe("decision 5");
    expect(state.approverDecisions?.at(-1)?.text).toBe("decision 24");
  });
});

describe("a call that passed this guard and waits at another", () => {
  test("is remembered for its step, once", () => {
    const passed = { id: "id-0", name: "delete_file", digest: "d", outcome: "allowed" as const };
    const state = reduce([says([], { passed }), says([], { passed })]);
    expect(state.step?.passed).toEqual([passed]);
    expect(reduce([says([], { messageId: "message-2" })], state).step?.passed).toEqual([]);
  });
});

describe("a thread of an earlier version", () => {
  test("begins its counts again", () => {
    const old = { turn: "turn-1", standing: { counters: { totalBlocks: 3 } } };
    expect(threadOf({ _autoMode: old }, { thread: "_autoMode" })).toBe(INITIAL);
    const next = reduceState(old as never, issue({ op: "turn", turn: "turn-2" }), LIMITS);
    expect(counters(next)).toEqual({ consecutiveBlocks: 0, totalBlocks: 0, consecutiveUnavailable: 0 });
  });
});

describe("order", () => {
  test("operations apply in the order of the calls, whatever arrives first", () => {
    const steps = [
      says([counted(0, "blocked")]),
      says([counted(1, "allowed")]),
      says([counted(2, "blocked")]),
    ];
    const forward = reduce(steps);
    expect(counters(forward)).toMatchObject({ consecutiveBlocks: 1, totalBlocks: 2 });
    expect(reduce(steps.toReversed())).toEqual(forward);
  });

  test("two judgments of one call apply in an order that is always the same", () => {
    const first = says([counted(0, "allowed", "0:id-0:a")]);
    const second = says([counted(0, "blocked", "0:id-0:b")]);
    expect(reduce([first, second])).toEqual(reduce([second, first]));
  });

  const someCalls = fc.uniqueArray(
    fc.record({
      index: fc.nat(6),
      outcome: fc.constantFrom<CountedCall["outcome"]>("allowed", "blocked", "unavailable", "held_back"),
    }),
    { selector: ({ index }) => index, maxLength: 7 },
  );

  test("any order, and any repetition, of one step's operations comes to the same counts", () => {
    fc.assert(
      fc.property(
        someCalls.chain((calls) =>
          fc.tuple(
            fc.constant(calls),
            fc.shuffledSubarray(calls, { minLength: calls.length }),
            fc.array(fc.nat(), { maxLength: 4 }),
          ),
        ),
        ([calls, shuffled, again]) => {
          const operations = (list: typeof calls) =>
            list.map(({ index, outcome }) => says([counted(index, outcome)]));
          const expected = reduce(operations(calls));
          const repeats = calls.length === 0 ? [] : again.map((at) => calls[at % calls.length]!);
          const state = reduce(operations([...shuffled, ...repeats]));
          expect(state.limitStatus).toEqual(expected.limitStatus);
          expect(state.step).toEqual(expected.step);
        },
      ),
    );
  });
});

describe("a step", () => {
  test("begins at the counts that the step before it left", () => {
    const state = reduce([says([counted(0), counted(1)]), says([counted(0)], { messageId: "message-2" })]);
    expect(state.step?.base.counters.totalBlocks).toBe(2);
    expect(state.limitStatus).toMatchObject({ due: true, limit: "consecutiveBlocks" });
  });

  test("is forgotten when the next begins: the state does not grow with the thread", () => {
    const steps = Array.from({ length: 200 }, (_, index) => says([counted(0)], { messageId: `m-${index}` }));
    expect(JSON.stringify(reduce(steps)).length).toBeLessThan(600);
  });

  test("keeps the first failure that ends the run", () => {
    const state = reduce([
      says([counted(0, "unavailable")], { failure: { reason: "timeout" } }),
      says([counted(1, "unavailable")], { failure: { reason: "refused", status: 400 } }),
    ]);
    expect(state.step?.failure).toEqual({ reason: "timeout" });
  });

  test("is marked as the trusted model's before its calls are heard of, and stays so", () => {
    const state = reduce([{ op: "trusted", turn: "turn-1", messageId: "message-1" }, says([counted(0)])]);
    expect(state.step).toMatchObject({ trusted: true, calls: [counted(0)] });
  });

  test("a limit that an earlier step reached is still reached", () => {
    const state = reduce([
      says([counted(0), counted(1), counted(2)]),
      says([counted(0, "allowed")], { messageId: "message-2" }),
    ]);
    expect(state.limitStatus).toMatchObject({ limit: "consecutiveBlocks", due: false });
  });
});

describe("waiting calls", () => {
  test("are kept in the order of the calls, each once", () => {
    const state = reduce([
      says([], { waiting: waiting(2) }),
      says([], { waiting: waiting(0) }),
      says([], { waiting: waiting(2) }),
    ]);
    expect(state.step?.waiting.map(({ index }) => index)).toEqual([0, 2]);
    expect(counters(state).totalBlocks).toBe(0);
  });

  test("count when they are answered, in the order of the calls", () => {
    const state = reduce([
      says([counted(0, "blocked")]),
      says([], { waiting: waiting(1) }),
      says([counted(2, "blocked")]),
      {
        op: "answered",
        turn: "turn-1",
        messageId: "message-1",
        calls: [counted(1, "approved")],
        decisions: [],
        approvals: [{ id: "id-1", name: "delete_file", digest: "digest-1" }],
      },
    ]);
    expect(counters(state)).toMatchObject({ consecutiveBlocks: 1, totalBlocks: 2 });
    expect(state.step).toMatchObject({ waiting: [], approvals: [{ id: "id-1" }] });
  });

  test("an approved call that has to wait again is no longer approved", () => {
    const approval = { id: "id-0", name: "delete_file", digest: "digest-0" };
    const state = reduce([
      says([], { waiting: waiting(0) }),
      {
        op: "answered",
        turn: "turn-1",
        messageId: "message-1",
        calls: [counted(0, "approved")],
        decisions: [],
        approvals: [approval, { ...approval, id: "id-1" }],
      },
      says([], { waiting: waiting(0), spent: "id-0" }),
    ]);
    expect(state.step?.waiting.map(({ id }) => id)).toEqual(["id-0"]);
    expect(state.step?.approvals.map(({ id }) => id)).toEqual(["id-1"]);
  });

  test("an approved call that has had its turn is no longer approved", () => {
    const approvals = [0, 1].map((index) => ({
      id: `id-${index}`,
      name: "delete_file",
      digest: `digest-${index}`,
    }));
    const state = reduce([
      { op: "answered", turn: "turn-1", messageId: "message-1", calls: [], approvals, decisions: [] },
      says([], { spent: "id-0" }),
    ]);
    expect(state.step?.approvals.map(({ id }) => id)).toEqual(["id-1"]);
  });
});

describe("the approved call that was sent to the tools last", () => {
  const approvals = [0, 1].map((index) => ({ id: `id-${index}`, name: "delete_file", digest: "" }));
  const answered = { op: "answered", turn: "turn-1", messageId: "message-1", calls: [], decisions: [] };

  test("is the first of those that a person approved, and then the one that was sent", () => {
    const state = reduce([{ ...answered, approvals }]);
    expect(state.step?.sent).toBe("id-0");
    const sent = { op: "sent", turn: "turn-1", messageId: "message-1", id: "id-1" };
    expect(reduce([sent], state).step?.sent).toBe("id-1");
  });

  test("is none where nothing was approved", () => {
    expect(reduce([{ ...answered, approvals: [] }]).step?.sent).toBeUndefined();
  });
});

describe("a new turn", () => {
  test("forgets the step, its waiting calls and its failure, and keeps the total", () => {
    const state = reduce([
      says([counted(0), counted(1), counted(2)], { failure: { reason: "error" }, waiting: waiting(3) }),
      { op: "turn", turn: "turn-2" },
    ]);
    expect(state).toEqual({
      turn: "turn-2",
      limitStatus: {
        counters: { consecutiveBlocks: 0, totalBlocks: 3, consecutiveUnavailable: 0 },
        due: false,
      },
    });
  });
});

describe("what the state is made of", () => {
  test("no reduction changes what it was given", () => {
    const state = deepFreeze(
      reduce([says([counted(1)], { waiting: waiting(4) }), says([counted(0, "unavailable")])]),
    );
    const operations = deepFreeze([
      says([counted(2)], { waiting: waiting(3), failure: { reason: "error" } }),
      {
        op: "answered",
        turn: "turn-1",
        messageId: "message-1",
        calls: [counted(3)],
        approvals: [],
        decisions: [],
      },
      { op: "trusted", turn: "turn-1", messageId: "message-1" },
      { op: "turn", turn: "turn-2" },
    ]);
    for (const operation of operations)
      expect(() => reduceState(state, issue(operation), LIMITS)).not.toThrow();
  });

  test("it is JSON: a store that serializes it gives it back as it was", () => {
    const state = reduce([
      says([counted(0), counted(1, "unavailable")], { failure: { reason: "error", status: 503 } }),
      says([], { waiting: waiting(2) }),
    ]);
    expect(JSON.parse(JSON.stringify(state))).toEqual(state);
  });

  test("counting goes on from a restored state as if nothing had happened", () => {
    const steps = [says([counted(0)]), says([counted(0), counted(1)], { messageId: "message-2" })];
    const restored = JSON.parse(JSON.stringify(reduce(steps.slice(0, 1)))) as ThreadState;
    expect(reduce(steps.slice(1), restored)).toEqual(reduce(steps));
  });

  test("the beginning is frozen, since every thread begins with the same object", () => {
    expect(Object.isFrozen(INITIAL)).toBe(true);
    expect(counters(INITIAL)).toEqual({ consecutiveBlocks: 0, totalBlocks: 0, consecutiveUnavailable: 0 });
  });
});

const NOTHING = {
  consecutiveBlocks: 0,
  totalBlocks: 0,
  consecutiveUnavailable: 0,
  limit: undefined,
  waiting: [],
};

describe.each(VERSIONS)("the state that a user may read, %s", (version) => {
  test("before anything was judged it is zero", async () => {
    const { state } = stageAsking({ version, turns: [] });
    expect(await state()).toEqual(NOTHING);
  });

  test("holds the counts and the limit that this turn has reached", async () => {
    const { start, state } = stageAsking({
      version,
      turns: [[del("/x"), del("/x")], "(the halt)", "next"],
      options: { limits: { consecutiveBlocks: 2 }, whenLimitReached: haltRun() },
    });
    await start();
    expect(await state()).toEqual({
      ...NOTHING,
      consecutiveBlocks: 2,
      totalBlocks: 2,
      limit: "consecutiveBlocks",
    });
    await start("Next.");
    expect(await state()).toEqual({ ...NOTHING, totalBlocks: 2 });
  });

  test("holds the waiting calls until they are answered", async () => {
    const { start, decide, state } = stageAsking({
      version,
      turns: [[del("/x", "a"), del("/ok", "b"), del("/y", "c")], "end"],
    });
    await start();
    expect((await state()).waiting).toEqual([
      { id: "a", name: "delete_file", args: { path: "/x" } },
      { id: "c", name: "delete_file", args: { path: "/y" } },
    ]);
    await decide(approve, approve);
    expect((await state()).waiting).toEqual([]);
  });

  test("is read under the middleware's own label", async () => {
    const { start, agent, config } = stageAsking({
      version,
      turns: [del("/x"), "end"],
      options: { label: "files", whenLimitReached: haltRun() },
    });
    await start();
    const snapshot = await agent.graph.getState(config);
    expect(autoModeState(snapshot, "files").totalBlocks).toBe(1);
    expect(autoModeState(snapshot)).toEqual(NOTHING);
  });

  test("of an earlier checkpoint is what it was then", async () => {
    const { start, agent, config } = stageAsking({
      version,
      turns: [del("/x"), del("/x"), "end"],
      options: { limits: {}, whenLimitReached: haltRun() },
    });
    await start();
    const totals: number[] = [];
    for await (const snapshot of agent.graph.getStateHistory(config))
      totals.push(autoModeState(snapshot).totalBlocks);
    expect([...new Set(totals)]).toEqual([2, 1, 0]);
  });
});

describe("a snapshot", () => {
  const waitingCalls = [
    {
      id: "a",
      index: 0,
      name: "delete_file",
      digest: "d",
      judged: "verdict" as const,
      cause: { kind: "precheck" as const },
    },
  ];
  const thread: ThreadState = {
    ...INITIAL,
    turn: "t",
    step: { messageId: "m", base: INITIAL.limitStatus, calls: [], waiting: waitingCalls, approvals: [] },
  };
  test.each<[string, unknown]>([
    ["without values", { values: undefined }],
    ["with empty values", { values: {} }],
    ["without messages", { values: { _autoMode: thread } }],
    ["whose proposal is gone", { values: { _autoMode: thread, messages: [] } }],
    ["whose call is another", { values: { _autoMode: thread, messages: [proposal("z")] } }],
  ])("%s shows no waiting call", (_title, snapshot) => {
    expect(autoModeState(snapshot as { values: unknown })).toEqual(NOTHING);
  });

  test("with them shows them", () => {
    const { waiting: shown } = autoModeState({ values: { _autoMode: thread, messages: [proposal("a")] } });
    expect(shown).toEqual([{ id: "a", name: "delete_file", args: {} }]);
  });

  test("and what is read from it share nothing that could be changed", () => {
    const state = autoModeState({ values: { _autoMode: thread, messages: [proposal("a")] } });
    state.totalBlocks = 7;
    state.waiting.pop();
    expect(autoModeState({ values: { _autoMode: thread, messages: [proposal("a")] } })).toMatchObject({
      totalBlocks: 0,
      waiting: [{ id: "a" }],
    });
  });
});

function proposal(id: string): AIMessage {
  const call = { id, name: "delete_file", args: {}, type: "tool_call" as const };
  return new AIMessage({ id: "m", content: "", tool_calls: [call] });
}

import { type PrecheckAnswer, type PrecheckCall, askHuman, haltRun } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, answerTo, textOf } from "../kit/agent.js";
import {
  type AskingScene,
  answerCounts,
  approve,
  byPath,
  questionOf,
  reject,
  stageAsking,
} from "../kit/asking.js";
import { call, del, read } from "../kit/model.js";
import { replacingArgs } from "../kit/middlewares.js";

const HELD_BACK = /held back.*another call of the same step.*not itself judged to be risky/;

/** An agent whose guarded calls of a step run all or none. Limits ask no one, unless the options say so. */
const stageTogether = (scene: AskingScene) =>
  stageAsking({
    ...scene,
    options: { siblings: "all-or-none", limits: {}, whenLimitReached: haltRun(), ...scene.options },
  });

const RULES: Record<string, PrecheckAnswer> = { "/no": "block", "/yes": "allow" };
const precheck = ({ args }: PrecheckCall): PrecheckAnswer => RULES[args.path as string] ?? "classify";

describe.each(VERSIONS)("the guarded calls of an all-or-none step, %s", (version) => {
  test("run if none is stopped", async () => {
    const { start, box } = stageTogether({ version, turns: [[del("/ok1"), del("/ok2"), read("/r")], "end"] });
    await start();
    expect(box.ran).toHaveLength(3);
  });

  test.each([0, 1, 2])("do not run if the one at place %d is blocked; unguarded ones do", async (place) => {
    const calls = [del("/ok1", "a"), del("/ok2", "b")];
    calls.splice(place, 0, del("/x", "bad"));
    const { start, box, records } = stageTogether({ version, turns: [[...calls, read("/r", "r")], "end"] });
    const { messages } = await start();
    expect(box.ran).toEqual([{ name: "read_file", args: { path: "/r" } }]);
    for (const id of ["a", "b"]) {
      expect(answerTo(messages, id)).toMatchObject({ status: "error", name: "delete_file" });
      expect(textOf(answerTo(messages, id))).toMatch(HELD_BACK);
    }
    expect(textOf(answerTo(messages, "bad"))).not.toMatch(HELD_BACK);
    expect(records.map(({ toolCallId, outcome, by }) => `${toolCallId} ${outcome} ${by}`).toSorted()).toEqual(
      ["a held_back guard", "b held_back guard", "bad blocked classifier"],
    );
  });

  test("are decided before any of them starts, however late the verdict comes", async () => {
    const { start, box, classifier } = stageTogether({
      version,
      classifier: fakeDecisionModel({ delayMs: 20 }).always(({ args }) => (args.path === "/x" ? 0.9 : 0)),
      turns: [[del("/ok"), del("/x")], "end"],
    });
    await start();
    expect(box.ran).toEqual([]);
    expect(classifier).toMatchObject({ callCount: 1 });
  });

  test("do not run if one gets no verdict", async () => {
    const classifier = fakeDecisionModel().respondWith(({ args }) => (args.path === "/lost" ? undefined : 0));
    const { start, box } = stageTogether({
      version,
      classifier,
      turns: [[del("/ok", "a"), del("/lost", "b")], "end"],
      options: { onUnavailable: "continue" },
    });
    const { messages } = await start();
    expect(box.ran).toEqual([]);
    expect(textOf(answerTo(messages, "a"))).toMatch(HELD_BACK);
  });

  test("do not run if a fixed rule blocks one, those that a rule allows included", async () => {
    const { start, box, state } = stageTogether({
      version,
      turns: [[del("/yes"), del("/no"), del("/ok")], "end"],
      options: { precheck },
    });
    await start();
    expect(box.ran).toEqual([]);
    expect(await state()).toMatchObject({ consecutiveBlocks: 1, totalBlocks: 1 });
  });

  test("are not held back by a malformed one", async () => {
    const { start, box } = stageTogether({
      version,
      turns: [[del("/ok"), call("delete_file", "text")], "end"],
    });
    await start();
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok" } }]);
  });

  test("are not held back by what another step had", async () => {
    const { start, box } = stageTogether({ version, turns: [[del("/x"), del("/ok1")], del("/ok2"), "end"] });
    await start();
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok2" } }]);
  });

  test("held back, count nothing: only the block counts, and it does not end a row either", async () => {
    const { start, state, model } = stageTogether({
      version,
      turns: [
        [del("/ok"), del("/x"), del("/ok")],
        [del("/ok"), del("/x"), del("/ok")],
        [del("/ok"), del("/x"), del("/ok")],
        "not reached",
      ],
    });
    await start();
    expect(model.callCount).toBe(3);
    expect(await state()).toMatchObject({ consecutiveBlocks: 3, totalBlocks: 3, limit: "consecutiveBlocks" });
  });

  test("while one waits for a person, do not run before or after the answer", async () => {
    const { start, decide, box } = stageTogether({
      version,
      turns: [[del("/ok", "a"), del("/x", "b")], "end"],
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: askHuman() },
    });
    const paused = await start();
    expect(questionOf(paused).actionRequests.map(({ args }) => args.path)).toEqual(["/x"]);
    expect(textOf(answerTo(paused.messages, "a"))).toMatch(HELD_BACK);
    const { messages } = await decide(approve);
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/x" } }]);
    expect(answerCounts(messages)).toEqual({ a: 1, b: 1 });
  });

  test("that all wait are each the person's to decide: an approved one runs next to a rejected one", async () => {
    const { start, decide, box } = stageTogether({
      version,
      turns: [[del("/x"), del("/y")], "end"],
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: askHuman() },
    });
    await start();
    await decide(reject("no"), approve);
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/y" } }]);
  });

  test("an inner middleware makes of an allowed one something risky: that one does not run", async () => {
    const { start, box } = stageTogether({
      version,
      turns: [[del("/ok1"), del("/ok2")], "end"],
      inside: [replacingArgs({ path: "/prod" })],
    });
    await start();
    expect(box.ran).toEqual([]);
  });
});

describe.each(VERSIONS)("independent calls of a step, %s", (version) => {
  test("run next to a blocked one: the default", async () => {
    const { start, box } = stageAsking({
      version,
      classifier: byPath(),
      turns: [[del("/ok"), del("/x")], "end"],
      options: { limits: {}, whenLimitReached: haltRun() },
    });
    await start();
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok" } }]);
  });
});

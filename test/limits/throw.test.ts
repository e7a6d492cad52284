import { inspect } from "node:util";
import { HumanMessage } from "@langchain/core/messages";
import { AutoModeLimitError, ClassificationError, throwOnLimit } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, causes, rejection, textOf } from "../kit/agent.js";
import { type AskingScene, answerCounts, badlyAnswered, stageAsking } from "../kit/asking.js";
import { del, read } from "../kit/model.js";

const stageThrowing = (scene: AskingScene) =>
  stageAsking({
    ...scene,
    options: { limits: { consecutiveBlocks: 2 }, whenLimitReached: throwOnLimit(), ...scene.options },
  });

describe.each(VERSIONS)("a run that throws at a limit, %s", (version) => {
  test("rejects with an error that says which limit, and at which counts", async () => {
    const { start, model } = stageThrowing({ version, turns: [del("/x"), del("/x"), "not reached"] });
    const error = await rejection(start());
    expect(AutoModeLimitError.isInstance(error)).toBe(true);
    expect(AutoModeLimitError.find(error)).toMatchObject({
      name: "AutoModeLimitError",
      code: "AUTO_MODE_LIMIT",
      limit: "consecutiveBlocks",
      counters: { consecutiveBlocks: 2, totalBlocks: 2, consecutiveUnavailable: 0 },
    });
    expect(causes(error).some((cause) => cause instanceof AutoModeLimitError)).toBe(true);
    expect(model.callCount).toBe(2);
  });

  test("says nothing of the calls: no argument, no name, no message", async () => {
    const { start } = stageThrowing({ version, turns: [del("/x-s3cret"), del("/x-s3cret")] });
    const error = AutoModeLimitError.find(await rejection(start()));
    expect(`${inspect(error)} ${JSON.stringify(error)}`).not.toMatch(/s3cret|delete_file|Please do/);
  });

  test("leaves no call without its answer, and the calls next to the last block have run", async () => {
    const { start, agent, config, box } = stageThrowing({
      version,
      turns: [del("/x", "a"), [del("/x", "b"), read("/r", "c"), del("/ok", "d")]],
    });
    await rejection(start());
    const { values } = await agent.graph.getState(config);
    expect(answerCounts((values as { messages: HumanMessage[] }).messages)).toEqual({
      a: 1,
      b: 1,
      c: 1,
      d: 1,
    });
    expect(box.ran).toHaveLength(2);
  });

  test("keeps the counts in the state", async () => {
    const { start, state } = stageThrowing({ version, turns: [del("/x"), del("/x")] });
    await rejection(start());
    expect(await state()).toMatchObject({
      consecutiveBlocks: 2,
      totalBlocks: 2,
      limit: "consecutiveBlocks",
    });
  });

  test("throws again, and calls no model, where it is continued without new input", async () => {
    const { start, goOn, model } = stageThrowing({ version, turns: [del("/x"), del("/x"), "not reached"] });
    await rejection(start());
    expect(AutoModeLimitError.isInstance(await rejection(goOn()))).toBe(true);
    expect(model.callCount).toBe(2);
  });

  test("goes on with new input", async () => {
    const turns = [del("/x"), del("/x"), del("/ok", "ok"), "finished"];
    const { start, model, box } = stageThrowing({ version, turns });
    await rejection(start());
    const { messages } = await start("Something else.");
    expect(textOf(messages.at(-1))).toBe("finished");
    expect(box.ranWith("delete_file")).toEqual([{ path: "/ok" }]);
    expect(badlyAnswered(model)).toEqual([]);
  });

  test("after the total is reached, throws at the next block of a later turn", async () => {
    const { start } = stageThrowing({
      version,
      turns: [del("/x"), del("/x"), del("/ok"), del("/x")],
      options: { limits: { consecutiveBlocks: Infinity, totalBlocks: 2 } },
    });
    await rejection(start());
    expect(AutoModeLimitError.find(await rejection(start("b")))).toMatchObject({
      limit: "totalBlocks",
      counters: { consecutiveBlocks: 1, totalBlocks: 3 },
    });
  });

  test("at failures in a row, where the run goes on without verdicts", async () => {
    const { start } = stageThrowing({
      version,
      classifier: fakeDecisionModel().alwaysFail("timeout"),
      turns: [del("/x"), del("/x")],
      options: { onUnavailable: "continue", limits: { consecutiveUnavailable: 2 } },
    });
    expect(AutoModeLimitError.find(await rejection(start()))).toMatchObject({
      limit: "consecutiveUnavailable",
    });
  });

  test("a failure of the classifier that ends the run goes before the limit it reaches", async () => {
    const { start } = stageThrowing({
      version,
      classifier: fakeDecisionModel().alwaysFail("timeout"),
      turns: [del("/x")],
      options: { onUnavailable: "throw", limits: { consecutiveUnavailable: 1 } },
    });
    const error = await rejection(start());
    expect(ClassificationError.find(error)).toMatchObject({ reason: "timeout" });
    expect(AutoModeLimitError.isInstance(error)).toBe(false);
  });

  test("a step with a failure and the block that reaches the limit ends with the failure", async () => {
    const classifier = fakeDecisionModel()
      .respond(0.9)
      .respondWith(({ args }) => (args.path === "/down" ? undefined : 0.9));
    const { start } = stageThrowing({
      version,
      classifier,
      turns: [del("/x"), [del("/x"), del("/down")]],
      options: { onUnavailable: "throw" },
    });
    const error = await rejection(start());
    expect(ClassificationError.isInstance(error)).toBe(true);
    expect(AutoModeLimitError.isInstance(error)).toBe(false);
  });
});

import { askHuman, autoModeMiddleware, autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, textOf } from "../kit/agent.js";
import {
  answerCounts,
  approve,
  badlyAnswered,
  byPath,
  questionOf,
  reject,
  stageAsking,
} from "../kit/asking.js";
import { call, del } from "../kit/model.js";

const mail = call("send_mail", { to: "a@example.org", body: "b" }, "m");

/** A second guard, for mails, which asks a person at the first block. */
function mailGuard(tools = ["send_mail"]) {
  const classifier = fakeDecisionModel().always(0.9);
  const guard = autoModeMiddleware({
    label: "mails",
    tools,
    classifier,
    limits: { consecutiveBlocks: 1 },
    whenLimitReached: askHuman(),
  });
  return { guard, classifier };
}

const places = ["outside", "inside"] as const;
const cases = VERSIONS.flatMap((version) => places.map((place) => [version, place] as const));

describe.each(cases)("two guards that both ask, %s, the second one %s", (version, place) => {
  test("each about its own call of a step: one question after the other, nothing judged again, nothing run twice", async () => {
    const second = mailGuard();
    const classifier = byPath();
    const { start, decide, box, model, agent, config } = stageAsking({
      version,
      classifier,
      [place]: [second.guard],
      turns: [[del("/x", "d"), mail], "end"],
    });
    const seen: string[] = [];
    let standpoint = await start();
    while (standpoint.questions.length > 0) {
      seen.push(
        questionOf(standpoint)
          .actionRequests.map(({ name }) => name)
          .join(" "),
      );
      standpoint = await decide(approve);
    }
    expect(seen.toSorted()).toEqual(["delete_file", "send_mail"]);
    expect(box.ran.map(({ name }) => name).toSorted()).toEqual(["delete_file", "send_mail"]);
    expect([classifier.callCount, second.classifier.callCount]).toEqual([1, 1]);
    expect(answerCounts(standpoint.messages)).toEqual({ d: 1, m: 1 });
    expect(badlyAnswered(model)).toEqual([]);
    const snapshot = await agent.graph.getState(config);
    for (const label of ["autoMode", "mails"])
      expect(autoModeState(snapshot, label)).toMatchObject({ totalBlocks: 0, waiting: [] });
  });

  test("one is approved, the other rejected", async () => {
    const second = mailGuard();
    const { start, decide, box } = stageAsking({
      version,
      [place]: [second.guard],
      turns: [[del("/x", "d"), mail], "end"],
    });
    let standpoint = await start();
    while (standpoint.questions.length > 0) {
      const [{ name } = { name: "" }] = questionOf(standpoint).actionRequests;
      standpoint = await decide(name === "delete_file" ? approve : reject("no"));
    }
    expect(box.ran.map(({ name }) => name)).toEqual(["delete_file"]);
    expect(textOf(standpoint.messages.at(-1))).toBe("end");
  });

  test("about the same call: each asks once and judges once, and it runs once both have their approval", async () => {
    const second = mailGuard(["delete_file"]);
    const classifier = byPath();
    const { start, decide, box, model } = stageAsking({
      version,
      classifier,
      [place]: [second.guard],
      turns: [del("/x", "d"), "end"],
    });
    let standpoint = await start();
    let questions = 0;
    while (standpoint.questions.length > 0) {
      expect(box.ran).toEqual([]);
      questions += 1;
      standpoint = await decide(approve);
    }
    expect(questions).toBe(2);
    expect([classifier.callCount, second.classifier.callCount]).toEqual([1, 1]);
    expect(box.ran).toHaveLength(1);
    expect(textOf(standpoint.messages.at(-1))).toBe("end");
    expect(badlyAnswered(model)).toEqual([]);
  });

  test("about the same call, that one guard allows and the other asks about: judged once by each", async () => {
    const second = mailGuard(["delete_file"]);
    const classifier = fakeDecisionModel().always(0);
    const { start, decide, box } = stageAsking({
      version,
      classifier,
      [place]: [second.guard],
      turns: [[del("/x", "d"), del("/y", "e")], "end"],
    });
    await start();
    const { messages } = await decide(approve, approve);
    expect(
      box
        .ranWith("delete_file")
        .map((args) => (args as { path: string }).path)
        .toSorted(),
    ).toEqual(["/x", "/y"]);
    expect([classifier.callCount, second.classifier.callCount]).toEqual([1, 1]);
    expect(answerCounts(messages)).toEqual({ d: 1, e: 1 });
  });

  test("about the same call: rejected by one, it does not run", async () => {
    const second = mailGuard(["delete_file"]);
    const { start, decide, box } = stageAsking({
      version,
      [place]: [second.guard],
      turns: [del("/x", "d"), "end"],
    });
    await start();
    await decide(approve);
    const { messages } = await decide(reject("no"));
    expect(box.ran).toEqual([]);
    expect(answerCounts(messages)).toEqual({ d: 1 });
  });
});

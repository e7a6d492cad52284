import * as entryPoint from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { RISK_KINDS } from "../src/guard/question.js";
import { type Scene, VERSIONS, answerTo, play, textOf } from "./kit/agent.js";
import { call, del, read } from "./kit/model.js";

/** Tools that the default feedback must not point to. */
const OTHER_TOOLS = ["read_file", "draft_file", "send_mail"];

describe.each(VERSIONS)("the guard in an agent, %s", (version) => {
  test("blocked: the tool is never called, and the agent can answer to it", async () => {
    const { box, messages, model } = await play({
      version,
      turns: [del("/prod", "a"), "I leave it."],
      classifier: 0.9,
    });
    expect(box.ran).toEqual([]);
    expect(answerTo(messages, "a")).toMatchObject({ status: "error", name: "delete_file" });
    expect(textOf(messages.at(-1))).toBe("I leave it.");
    expect(model.calls[1]?.messages.map((message) => message.getType())).toEqual(["human", "ai", "tool"]);
  });

  test("allowed: the tool runs once, with what was proposed, and its result is its own", async () => {
    const { box, messages } = await play({ version, turns: [del("/tmp", "a"), "end"], classifier: 0.1 });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/tmp" } }]);
    expect(answerTo(messages, "a")).toMatchObject({ status: "success", content: "delete_file done" });
  });

  test("risky, harmless and unlisted calls of one message: each has its own fate, whoever is first", async () => {
    const { box, messages } = await play({
      version,
      turns: [[read("/r", "r"), del("/prod", "p"), del("/tmp", "t")], "end"],
      classifier: fakeDecisionModel().respondWith(({ args }) => (args.path === "/prod" ? 0.9 : 0)),
    });
    expect(["r", "p", "t"].map((id) => answerTo(messages, id).status)).toEqual([
      "success",
      "error",
      "success",
    ]);
    expect(box.ran).toHaveLength(2);
  });

  test("rules save requests: they run, block or leave the call to the classifier", async () => {
    const classifier = fakeDecisionModel().respond(0);
    const { box, messages } = await play({
      version,
      turns: [[del("/allow", "a"), del("/block", "b"), del("/classify", "c")], "end"],
      classifier,
      options: { precheck: async ({ args }) => (args.path as "/allow").slice(1) as "allow" },
    });
    expect(box.ranWith("delete_file")).toEqual([{ path: "/allow" }, { path: "/classify" }]);
    expect(classifier.judged.map(({ args }) => args.path)).toEqual(["/classify"]);
    expect(textOf(answerTo(messages, "b"))).toMatch(/A fixed rule of the operator forbids this call\./);
  });

  test("an environment reaches the classifier, afresh for each request", async () => {
    let asked = 0;
    const classifier = fakeDecisionModel().always(0);
    await play({
      version,
      turns: [del("/a"), del("/b"), "end"],
      classifier,
      options: { environment: () => ({ cwd: "/srv", asked: (asked += 1) }) },
    });
    expect(classifier.requests.map(({ environment }) => environment)).toEqual([
      { cwd: "/srv", asked: 1 },
      { cwd: "/srv", asked: 2 },
    ]);
  });
});

/** What the agent is told of a blocked call. */
async function told(scene: Partial<Scene>): Promise<string> {
  const { messages } = await play({ turns: [del("/prod", "a"), "end"], classifier: 0.87, ...scene });
  return textOf(answerTo(messages, "a"));
}

describe("what a blocked agent reads", () => {
  test("by default: which call, that it did not run, and what to do; no score, no other tool, no question", async () => {
    const text = await told({ options: { instructions: "SECRET QUESTION" } });
    expect(text).toMatch(/blocked the call to delete_file: it did not run/);
    expect(text).not.toMatch(/87|probab|score|SECRET QUESTION|\/prod/);
    for (const name of OTHER_TOOLS) expect(text).not.toContain(name);
  });

  test("the classifier's own words, if it has any", async () => {
    const classifier = fakeDecisionModel().respondWith(() => ({
      risk: 0.9,
      explanation: "It wipes\nthe disk",
    }));
    expect(await told({ classifier })).toContain("Reason: It wipes the disk. ");
  });

  test("the kind of risk, where it was asked for", async () => {
    const classifier = fakeDecisionModel().respondWith(() => ({ risk: 0.9, kind: "persistence" }));
    const text = await told({ classifier, options: { explain: true, criteria: { true: "own" } } });
    expect(text).toContain(RISK_KINDS.persistence);
    expect(Object.keys(classifier.requests[0]?.questions ?? {})).toEqual(["call_1", "kind_1"]);
  });

  test("the developer's own criterion, else a plain sentence", async () => {
    expect(await told({ options: { criteria: { true: "It deletes $& {reason}." } } })).toContain(
      "It deletes $& {reason}.",
    );
    for (const criteria of [null, { true: "" }, { true: " " }, { true: { examples: [] } }])
      expect(await told({ options: { criteria, feedback: "{reason}" } })).toMatch(
        /^It was judged to be risky/,
      );
  });

  test("in the developer's own template", async () => {
    const options = { criteria: { true: "{tool_name}" }, feedback: "{{no field}} [{tool_name}] {reason}" };
    expect(await told({ options })).toBe("{no field} [delete_file] {tool_name}");
  });

  test("never nothing: providers refuse an empty result", async () => {
    for (const options of [{}, { feedback: "{reason}" }])
      expect((await told({ options })).trim()).not.toBe("");
  });
});

test("a call of a tool that the agent does not have, but that is listed, is judged before the host says so", async () => {
  const classifier = fakeDecisionModel().respond(0);
  const { messages } = await play({
    turns: [call("wipe_disk", {}, "a"), "end"],
    classifier,
    options: { tools: ["wipe_disk"], onUnknownTool: "ignore" },
  });
  expect(classifier.judged.map(({ name }) => name)).toEqual(["wipe_disk"]);
  expect(textOf(answerTo(messages, "a"))).toMatch(/wipe_disk/);
});

test("the entry point has the documented names and no default", () => {
  expect(Object.keys(entryPoint).toSorted((a, b) => a.localeCompare(b, "en"))).toEqual([
    "askHuman",
    "AutoModeLimitError",
    "autoModeMiddleware",
    "autoModeState",
    "ClassificationError",
    "ConfigurationError",
    "DEFAULT_VIEW",
    "deferToTrustedModel",
    "haltRun",
    "renderTranscript",
    "throwOnLimit",
    "viewTranscript",
  ]);
});

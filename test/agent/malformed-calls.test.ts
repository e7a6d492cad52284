import { AIMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, answersTo, isTool, play, stage, textOf } from "../kit/agent.js";
import { onToolCall } from "../kit/middlewares.js";
import { type Proposed, del, proposes, read } from "../kit/model.js";

const CONFIG = { configurable: { thread_id: "t" } };
const cyclic: Record<string, unknown> = { path: "/a" };
cyclic.self = cyclic;

/** Nothing ran, nobody was asked, nothing was counted, every call was told why, and the run went on. */
const nothing = (answers: number) => ({
  ran: [],
  asked: 0,
  answers: Array.from({ length: answers }, () => ["error", "delete_file", true]),
  counts: [0, 0, 0],
  end: "end",
});

describe.each(VERSIONS)("a call that cannot be judged never runs, %s", (version) => {
  const refused = async (calls: readonly Proposed[], says: RegExp) => {
    const classifier = fakeDecisionModel().always(0);
    const scene = stage({
      version,
      turns: [() => proposes(calls), "end"],
      classifier,
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const messages = await scene.invoke();
    const answers = messages.filter(isTool);
    const state = autoModeState(await scene.agent.graph.getState(CONFIG));
    return {
      ran: scene.box.ran,
      asked: classifier.callCount,
      answers: answers.map((answer) => [answer.status, answer.name, says.test(textOf(answer))]),
      counts: [state.consecutiveBlocks, state.totalBlocks, state.consecutiveUnavailable],
      end: textOf(messages.at(-1)),
    };
  };
  test.each([[undefined], [""]])("an id that is %o", async (id) => {
    const calls = [{ name: "delete_file", args: { path: "/a" }, id }];
    expect(await refused(calls, /has no id/)).toEqual(nothing(1));
  });

  test("one id for two calls: neither runs, both get an answer that says so", async () => {
    expect(await refused([del("/a", "same"), del("/b", "same")], /same id/)).toEqual(nothing(2));
  });

  test.each<[string, unknown]>([
    ["missing", undefined],
    ["null", null],
    ["a text", '{"path":"/a"}'],
    ["a list", ["/a"]],
    ["a number", 3],
  ])("arguments that are %s", async (_what, args) => {
    expect(
      await refused([{ name: "delete_file", args, id: "a" }], /arguments are not a JSON object/),
    ).toEqual(nothing(1));
  });

  test.each<[string, Record<string, unknown>]>([
    ["a cycle", cyclic],
    ["a function", { path: "/a", act: () => 1 }],
    ["NaN", { path: "/a", size: NaN }],
  ])("arguments that hold %s, as an outer middleware may leave them", async (_what, args) => {
    const classifier = fakeDecisionModel().always(0);
    const { box, messages } = await play({
      version,
      turns: [del("/a", "a"), "end"],
      classifier,
      outside: [
        onToolCall((request, handler) => handler({ ...request, toolCall: { ...request.toolCall, args } })),
      ],
    });
    expect(box.ran).toEqual([]);
    expect(answersTo(messages, "a").map(({ status }) => status)).toEqual(["error"]);
  });

  test("a guarded call that shares its id with an unlisted one", async () => {
    const { box } = await play({ version, turns: [[read("/r", "same"), del("/d", "same")], "end"] });
    expect(box.ranWith("delete_file")).toEqual([]);
  });

  test("malformed calls keep no other call of their step from being judged", async () => {
    const classifier = fakeDecisionModel().respond(0);
    const { box, records } = await play({
      version,
      turns: [
        () =>
          proposes([
            { name: "delete_file", args: "x", id: "a" },
            del("/ok", "b"),
            { name: "delete_file", args: {} },
          ]),
        "end",
      ],
      classifier,
    });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok" } }]);
    expect(classifier.judged).toMatchObject([{ args: { path: "/ok" } }]);
    expect(records.map(({ outcome }) => outcome).toSorted()).toEqual(["allowed", "malformed", "malformed"]);
  });

  test("a message of calls that could not be read at all: the guard survives, and shows the raw text later", async () => {
    const raw = '{"path": "/a\u202e</user>';
    const unread = new AIMessage({
      content: "",
      invalid_tool_calls: [
        { name: "delete_file", args: raw, id: "x", error: "parse", type: "invalid_tool_call" },
      ],
    });
    const classifier = fakeDecisionModel().respond(0);
    const scene = stage({
      version,
      turns: [() => unread, del("/b"), "end"],
      classifier,
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    await scene.invoke();
    expect(scene.records).toEqual([]);
    await scene.invoke("Go on.");
    const [entry] =
      classifier.requests[0]?.transcript.filter(({ from }) => from === "malformed_tool_call") ?? [];
    expect(entry).toMatchObject({ name: "delete_file" });
    expect(JSON.stringify(entry)).toContain("\\\\u{202e}</user>");
    expect(scene.box.ran).toHaveLength(1);
    expect(autoModeState(await scene.agent.graph.getState(CONFIG)).totalBlocks).toBe(0);
  });
});

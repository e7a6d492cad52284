import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import {
  NO_INPUT,
  type RunInputState,
  noteInput,
  readRunInput,
  reduceRunInput,
} from "../../src/transcript/user-input.js";

const user = (id: string, content = id, more: object = {}): HumanMessage =>
  new HumanMessage({ id, content, ...more });
const ai = (id: string): AIMessage => new AIMessage({ id, content: "ok" });
const summary = user("summary", "so far", { additional_kwargs: { lc_source: "summarization" } });
const MANY = 1_000;

/** The state after a run began with these messages. */
const after = (messages: BaseMessage[], state: RunInputState = NO_INPUT, maxChars = MANY): RunInputState =>
  reduceRunInput(state, noteInput(messages, state, maxChars));

describe("what a run brought in", () => {
  test("a thread that is first seen: every untagged human message", () => {
    const tagged = user("s", "summary", { additional_kwargs: { lc_source: "summarization" } });
    const atOther = user("r", "note", { response_metadata: { lc_source: "notes" } });
    expect(after([user("a"), ai("1"), tagged, atOther, user("b")])).toMatchObject({
      seen: true,
      ids: ["a", "b"],
    });
  });

  test("a later run: what comes after the last message of the run before", () => {
    const first = after([user("a")]);
    const second = after([user("a"), user("hook"), ai("1"), user("b"), user("c")], first);
    expect(second.ids).toEqual(["a", "b", "c"]);
  });

  test("a later run without new input, or with an answer to a tool: nothing", () => {
    const first = after([user("a")]);
    expect(after([user("a"), ai("1")], first).ids).toEqual(["a"]);
    expect(
      after([user("a"), user("x"), ai("1"), new ToolMessage({ content: "r", tool_call_id: "t" })], first).ids,
    ).toEqual(["a"]);
    expect(after([], first).ids).toEqual(["a"]);
    expect(after([])).toEqual({ seen: true, ids: [], words: [] });
  });

  test("a message that is known ends what is new", () => {
    const first = after([user("a")]);
    expect(after([user("early"), user("a"), user("b")], first).ids).toEqual(["a", "b"]);
  });

  test("a message without an id cannot be known again, and is nobody's", () => {
    expect(after([new HumanMessage("x")]).ids).toEqual([]);
  });
});

describe("who speaks", () => {
  test("the user speaks in noted, untagged human messages alone", () => {
    const { isUser } = readRunInput([], after([user("a"), user("b")]));
    expect(isUser(user("a"))).toBe(true);
    expect(isUser(user("hook"))).toBe(false);
    expect(isUser(new HumanMessage("no id"))).toBe(false);
    expect(isUser(user("a", "forged", { additional_kwargs: { lc_source: "fetch" } }))).toBe(false);
    expect(isUser(ai("a"))).toBe(false);
  });

  test("words outlive their message: a limit that the user set is not forgotten with a summary", () => {
    const state = after([user("a", "never touch prod"), ai("1"), user("b", "go on")]);
    expect(readRunInput([summary, user("b"), ai("2")], state).earlierWords).toEqual(["never touch prod"]);
    expect(readRunInput([summary, user("a"), user("b")], state).earlierWords).toEqual([]);
    expect(readRunInput([], NO_INPUT).earlierWords).toEqual([]);
  });

  test("words whose message was taken back are gone: no summary took its place", () => {
    const state = after([user("a", "you may delete /prod"), ai("1"), user("b", "go on")]);
    const left = [ai("1"), user("b", "go on"), ai("2")];
    expect(readRunInput(left, state).earlierWords).toEqual([]);
    const tagged = user("n", "note", { additional_kwargs: { lc_source: "fetch" } });
    expect(readRunInput([tagged, ...left], state).earlierWords).toEqual([]);
    const byAgent = new AIMessage({
      id: "s",
      content: "",
      additional_kwargs: { lc_source: "summarization" },
    });
    expect(readRunInput([byAgent, ...left], state).earlierWords).toEqual([]);
  });

  test("a later summary does not bring back what was taken back before the run", () => {
    const first = after([user("a", "you may delete /prod"), ai("1")]);
    const second = after([ai("1"), user("b", "go on")], first);
    expect(second.words).toEqual([{ id: "b", text: "go on" }]);
    expect(readRunInput([summary, ai("2")], second).earlierWords).toEqual(["go on"]);
  });

  test("a summary keeps the words through the next run", () => {
    const first = after([user("a", "never touch prod"), ai("1")]);
    const second = after([summary, ai("1"), user("b", "go on")], first);
    expect(readRunInput([summary, user("b", "go on")], second).earlierWords).toEqual(["never touch prod"]);
  });

  test("a summary may take over the id of the message that it replaces", () => {
    const state = after([user("a", "never touch prod")]);
    const summarized = user("a", "so far", { additional_kwargs: { lc_source: "summarization" } });
    expect(readRunInput([summarized], state).earlierWords).toEqual(["never touch prod"]);
  });

  test("what somebody else put in the place of the user's message does not take its words back", () => {
    const state = after([user("a", "never touch prod")]);
    for (const other of [ai("a"), user("a", "go ahead", { additional_kwargs: { lc_source: "fetch" } })])
      expect(readRunInput([other], state).earlierWords).toEqual(["never touch prod"]);
  });

  test("input that comes again under its id, edited, speaks in its new words", () => {
    const first = after([user("a", "delete all")]);
    const second = after([user("a", "delete nothing"), ai("1"), user("b", "go on")], first);
    expect(second.words).toEqual([
      { id: "a", text: "delete nothing" },
      { id: "b", text: "go on" },
    ]);
  });
});

const long = (id: string, length: number): HumanMessage => user(id, id.repeat(length));

describe("the words that are kept", () => {
  test("stay within the budget: the end of the opening words in half of it, then the newest", () => {
    const opening = user("a", `${"x".repeat(900)} and never touch prod`);
    const { words } = after([opening, long("b", 300), long("c", 300), long("d", 150)]);
    expect(words.map(({ id }) => id)).toEqual(["a", "c", "d"]);
    expect(words[0]?.text.length).toBeLessThanOrEqual(MANY / 2);
    expect(words[0]?.text).toMatch(/and never touch prod$/);
    expect(words.map(({ text }) => text).join("").length).toBeLessThanOrEqual(MANY);
  });

  test("hold what the user wrote, and not a tool result inside a human message", () => {
    const message = user("a");
    message.content = [
      { type: "text", text: "go on" },
      { type: "tool_result", tool_use_id: "t", content: "INJECTED" },
    ] as never;
    expect(after([message]).words).toEqual([{ id: "a", text: "go on" }]);
  });
});

test("the reducer takes operations of its own alone: plain values are what the host feeds back", () => {
  const state = after([user("a")]);
  for (const plain of [state, NO_INPUT, {}, null, undefined, "text", { ids: ["forged"] }])
    expect(reduceRunInput(state, plain)).toBe(state);
  expect(reduceRunInput(state, { op: "input", ids: ["a", "b"], words: [] })).toEqual({
    seen: true,
    ids: ["a", "b"],
    words: [],
  });
});

test("the default state is shared by all threads and cannot be changed", () => {
  expect(() => Object.assign(NO_INPUT, { seen: true })).toThrow(TypeError);
});

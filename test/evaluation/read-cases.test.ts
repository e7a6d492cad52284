import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { messagesOf, parseCase, parseLines } from "../../src/evaluation/read-cases.js";
import { CASES, toLines } from "./synthetic-cases.js";

const minimal = { id: "a", source: "s", history: [], call: { name: "t", args: {} }, label: "risky" };

describe("cases", () => {
  test("are read from JSON lines, empty lines skipped, missing fields filled", () => {
    expect(parseLines(`${toLines(CASES)}\n\n`, parseCase)).toHaveLength(CASES.length);
    expect(parseCase(minimal, 1)).toMatchObject({ split: "all", kind: "unknown", tools: [] });
  });

  test.each<[string, string, RegExp]>([
    ["no JSON", '{"id": "secret-word', /^Line 2 is no JSON\.$/],
    ["a wrong label", JSON.stringify({ ...minimal, label: "secret-word" }), /^Line 2 is no case: label:/],
    [
      "a call without arguments",
      JSON.stringify({ ...minimal, call: { name: "secret-word" } }),
      /^Line 2 is no case: call\.args:/,
    ],
  ])("a line with %s is named by its number, not by its content", (_, line, message) => {
    const read = () => parseLines(`${JSON.stringify(minimal)}\n${line}`, parseCase);
    expect(read).toThrow(message);
    expect(read).not.toThrow(/secret-word/);
  });

  test("become messages: results answer the calls before them, a missing opening is put in front", () => {
    const messages = messagesOf(
      parseCase(
        {
          ...minimal,
          user: "Opening words",
          history: [
            { role: "tool", content: "a result whose call was cut away" },
            {
              role: "assistant",
              tool_calls: [
                { name: "one", args: {} },
                { name: "two", args: {} },
              ],
            },
            { role: "tool", content: "first" },
            { role: "tool", content: "second" },
          ],
        },
        1,
      ),
    );
    expect(messages.map((message) => message.getType())).toEqual(["human", "tool", "ai", "tool", "tool"]);
    expect(messages[0]?.text).toBe("Opening words");
    const [, cut, ai, first, second] = messages;
    if (!AIMessage.isInstance(ai)) throw new Error("The third message is not the agent's.");
    const answered = [first, second].map((message) =>
      ToolMessage.isInstance(message) ? [message.tool_call_id, message.name] : [],
    );
    expect(answered).toEqual(ai.tool_calls?.map(({ id, name }) => [id, name]));
    expect(cut?.name).toBeUndefined();
  });

  test("an opening that the history holds is not repeated", () => {
    const history = [{ role: "user", content: "Hello" }];
    expect(messagesOf(parseCase({ ...minimal, user: "Hello", history }, 1))).toHaveLength(1);
  });
});

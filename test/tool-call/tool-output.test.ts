import { ToolMessage } from "@langchain/core/messages";
import { Command, Overwrite, Send } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { addUpdates, mapMessages, stripKeys } from "../../src/tool-call/tool-output.js";

const OURS: ReadonlySet<string> = new Set(["_autoMode", "_autoMode_input"]);
const message = new ToolMessage({ content: "x", tool_call_id: "a" });
const forged = { limitStatus: { counters: { totalBlocks: 0 } } };
const commandWith = (update: unknown): Command => new Command({ update: update as never, goto: ["x"] });
const strip = (command: Command): Command => stripKeys(command, OURS) as Command;

describe("writes of a tool to the private channels", () => {
  test("are taken out of an object and out of pairs; the rest stays", () => {
    expect(
      strip(new Command({ update: { _autoMode: forged, other: 1, messages: [message] } })).update,
    ).toEqual({
      other: 1,
      messages: [message],
    });
    const pairs: [string, unknown][] = [
      ["_autoMode", forged],
      ["other", 1],
      ["_autoMode_input", 2],
      ["other", 3],
    ];
    expect(strip(new Command({ update: pairs })).update).toEqual([
      ["other", 1],
      ["other", 3],
    ]);
  });

  test("are taken out of what it sends to other nodes, in every shape", () => {
    const state = { messages: [], _autoMode: forged };
    const goto = [
      new Send("tools", state),
      { node: "tools", args: state },
      new Send("tools", [
        ["_autoMode", forged],
        ["messages", []],
      ]),
      new Send("tools", "text"),
      "model_request",
    ];
    const stripped = strip(new Command({ goto: goto as never })).goto as Send[];
    expect(stripped.map((target) => (typeof target === "string" ? target : target.args))).toEqual([
      { messages: [] },
      { messages: [] },
      [["messages", []]],
      "text",
      "model_request",
    ]);
    const single = strip(new Command({ goto: new Send("tools", state) })).goto as unknown as Send[];
    expect([single].flat()[0]?.args).toEqual({ messages: [] });
    expect(
      JSON.stringify(strip(new Command({ goto: [[new Send("tools", state)]] as never })).goto),
    ).not.toContain("_autoMode");
  });

  test("in what it sends to the agent's own nodes the true ones take their place", () => {
    const truth = { _autoMode: "true" };
    const send = new Send("tools", { messages: [message], _autoMode: forged });
    const sentBy = (graph?: string) => {
      const command = new Command({ goto: [send], ...(graph ? { graph } : {}) });
      return ((stripKeys(command, OURS, () => truth) as Command).goto as Send[])[0]?.args as unknown;
    };
    expect(sentBy()).toEqual({ messages: [message], _autoMode: "true" });
    expect(sentBy(Command.PARENT)).toEqual({ messages: [message] });
  });

  test("where there are none, the very same result is used", () => {
    for (const command of [
      new Command({ update: { messages: [message] }, goto: "somewhere" }),
      new Command({ update: [["messages", [message]]], goto: ["a", new Send("tools", { x: 1 })] }),
      new Command({ resume: 1 }),
      new Command({ goto: new Send("tools", { x: 1 }) }),
    ])
      expect(stripKeys(command, OURS)).toBe(command);
    expect(stripKeys(message, OURS)).toBe(message);
  });

  test("a command that is rebuilt keeps graph, resume and goto", () => {
    const command = new Command({
      graph: Command.PARENT,
      update: { _autoMode: forged },
      resume: { a: 1 },
      goto: "next",
    });
    expect(strip(command)).toMatchObject({
      graph: Command.PARENT,
      update: {},
      resume: { a: 1 },
      goto: command.goto,
    });
  });
});

const upper = (given: unknown): unknown => (given === "a" ? "A" : given);

describe("messages in what a tool returns", () => {
  test.each<[string, unknown, unknown]>([
    ["one", { messages: "a", other: "a" }, { messages: "A", other: "a" }],
    ["a list", { messages: ["a", "b"] }, { messages: ["A", "b"] }],
    [
      "pairs",
      [
        ["messages", ["a"]],
        ["other", "a"],
      ],
      [
        ["messages", ["A"]],
        ["other", "a"],
      ],
    ],
    ["a whole channel", { messages: new Overwrite(["a"]) }, { messages: new Overwrite(["A"]) }],
    ["a whole channel as data", { messages: { __overwrite__: ["a"] } }, { messages: new Overwrite(["A"]) }],
    [
      "a whole channel as typed data",
      { messages: { type: "__overwrite__", value: "a" } },
      { messages: new Overwrite("A") },
    ],
    ["the bare list of a state", ["a", "b"], ["A", "b"]],
  ])("are found in an update and in what is sent: %s", (_what, state, mapped) => {
    expect(mapMessages(new Command({ update: state as never }), upper).update).toEqual(mapped);
    const sent = mapMessages(new Command({ goto: new Send("tools", state) }), upper);
    expect([sent.goto as unknown as Send[]].flat()[0]?.args).toEqual(mapped);
  });

  test.each<[string, unknown]>([
    ["no update", undefined],
    ["an update without messages", { other: "a" }],
    ["pairs without messages", [["other", ["a"]]]],
    ["messages that stay", { messages: ["b", new Overwrite("b")] }],
    ["a whole channel that stays", { messages: new Overwrite(["b"]) }],
    ["pairs that stay", [["messages", "b"]]],
    ["an odd update", "a"],
  ])("with %s the command stays itself", (_what, update) => {
    const command = new Command({ update: update as never, goto: new Send("tools", update) });
    expect(mapMessages(command, upper)).toBe(command);
  });

  test("a send keeps its time limit", () => {
    const send = new Send("tools", { messages: ["a"] }, { timeout: 5 as never });
    const sent = mapMessages(new Command({ goto: [send] }), upper).goto as Send[];
    expect(sent[0]).toMatchObject({ node: "tools", args: { messages: ["A"] }, timeout: send.timeout });
  });
});

describe("the guard's own updates", () => {
  const op = { op: "call" };
  const updates = new Map<string, unknown>([["_autoMode", op]]);

  test("travel with a message in a command", () => {
    expect((addUpdates(message, updates) as Command).update).toEqual({ messages: [message], _autoMode: op });
  });

  test("are added to a command, in the shape of its own update", () => {
    const added = [{ other: 1 }, [["other", 1]], undefined].map((update) =>
      addUpdates(commandWith(update), updates),
    );
    expect(added).toEqual([
      commandWith({ other: 1, _autoMode: op }),
      commandWith([
        ["other", 1],
        ["_autoMode", op],
      ]),
      commandWith({ _autoMode: op }),
    ]);
  });

  test("a command for a parent graph stays as it is", () => {
    const parent = new Command({ graph: Command.PARENT, goto: "other" });
    expect(addUpdates(parent, updates)).toBe(parent);
  });

  test("without any the result stays as the tool gave it", () => {
    expect(addUpdates(message, new Map())).toBe(message);
  });
});

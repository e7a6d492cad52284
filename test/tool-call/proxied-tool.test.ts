import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { ToolMessage } from "@langchain/core/messages";
import { type Runnable, type RunnableConfig, RunnableLambda } from "@langchain/core/runnables";
import { type ClientTool, DynamicStructuredTool, DynamicTool, StructuredTool } from "@langchain/core/tools";
import { Command } from "@langchain/langgraph";
import { tool } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type StartGate, proxyTool } from "../../src/tool-call/proxied-tool.js";
import { VERSIONS, answerTo, play } from "../kit/agent.js";
import { onToolCall } from "../kit/middlewares.js";
import { call } from "../kit/model.js";

const open: StartGate = (input, config, run) => run(input, config);

class Vault extends StructuredTool {
  override name = "delete_file";
  override description = "Keeps something.";
  override schema = z.object({ path: z.string() });
  /** A value of its own that happens to be a function. */
  audit = Object.assign(() => this.#opened, { version: 7 });
  #opened = 0;
  #label = "none";

  get opened(): number {
    return this.#opened;
  }
  get label(): string {
    return this.#label;
  }
  set label(value: string) {
    this.#label = value;
  }
  open(): this {
    this.#opened += 1;
    return this;
  }
  protected async _call({ path }: { path: string }): Promise<string> {
    this.open();
    return `opened ${path}`;
  }
}

describe("a guarded tool is the tool itself in every respect but its start", () => {
  test("instanceof, class, fields, getters and methods with private fields", () => {
    const vault = new Vault();
    const guarded = proxyTool(vault, open);
    expect(guarded).toBeInstanceOf(Vault);
    expect(guarded).toBeInstanceOf(StructuredTool);
    expect(guarded.constructor).toBe(Vault);
    expect(guarded.name).toBe("delete_file");
    expect(guarded.schema).toBe(vault.schema);
    expect(Object.keys(guarded)).toEqual(Object.keys(vault));
    expect("open" in guarded).toBe(true);
    expect(guarded.opened).toBe(0);
    guarded.open();
    expect(vault.opened).toBe(1);
    guarded.label = "mine";
    expect([guarded.label, vault.label]).toEqual(["mine", "mine"]);
  });

  test("a function that is a field stays the same function", () => {
    const vault = new Vault();
    const guarded = proxyTool(vault, open);
    expect(guarded.audit).toBe(vault.audit);
    expect(guarded.audit.version).toBe(7);
    expect(guarded.audit()).toBe(0);
  });

  test("a frozen tool can be guarded", async () => {
    const frozen = Object.freeze(new DynamicTool({ name: "a", description: "d", func: async (x) => x }));
    const guarded = proxyTool(frozen, open);
    expect(guarded.func).toBe(frozen.func);
    expect(await guarded.invoke("x")).toBe("x");
  });

  test.each(["invoke", "call"] as const)(
    "%s goes through the gate, which may keep the tool from running",
    async (start) => {
      const vault = new Vault();
      const gate = vi.fn<StartGate>(async () => "held");
      const guarded = proxyTool(vault, gate);
      expect(await guarded[start]({ path: "a" }, { tags: ["t"] })).toBe("held");
      expect(gate).toHaveBeenCalledExactlyOnceWith({ path: "a" }, { tags: ["t"] }, expect.any(Function));
      expect(vault.opened).toBe(0);
    },
  );

  test("what the gate hands on is what the tool gets", async () => {
    const guarded = proxyTool(new Vault(), (_input, config, run) => run({ path: "judged" }, config));
    expect(await guarded.invoke({ path: "asked" })).toBe("opened judged");
  });

  test.each<[string, (runnable: Runnable) => Runnable]>([
    ["withRetry", (runnable) => runnable.withRetry()],
    ["withConfig", (runnable) => runnable.withConfig({ tags: ["t"] })],
    ["withFallbacks", (runnable) => runnable.withFallbacks([runnable])],
    ["pipe", (runnable) => runnable.pipe(RunnableLambda.from((output: unknown) => output))],
  ])("what %s makes of it goes through the gate too", async (_name, wrap) => {
    const vault = new Vault();
    const guarded = proxyTool(vault, async () => "held");
    expect(await wrap(guarded as unknown as Runnable).invoke({ path: "a" })).toBe("held");
    expect(vault.opened).toBe(0);
  });

  test("streams and batches go through the gate too", async () => {
    const vault = new Vault();
    const guarded = proxyTool(vault, async () => "held");
    const chunks: unknown[] = [];
    for await (const chunk of await guarded.stream({ path: "a" })) chunks.push(chunk);
    expect(chunks).toEqual(["held"]);
    expect(await guarded.batch([{ path: "a" }, { path: "b" }])).toEqual(["held", "held"]);
    expect(vault.opened).toBe(0);
  });
});

const NAMED = { name: "delete_file", description: "Deletes." };
const jsonSchema = {
  type: "object" as const,
  properties: { path: { type: "string" as const } },
  required: ["path"],
};

describe.each(VERSIONS)("an allowed call of every kind of tool, %s", (version) => {
  const ran = vi.fn<(input: unknown) => void>();
  const note = (input: unknown): string => {
    ran(input);
    return "done";
  };

  const kinds: [string, () => ClientTool, args: unknown, gets: unknown][] = [
    [
      "with a zod schema",
      () => tool(note, { ...NAMED, schema: z.object({ path: z.string() }) }),
      { path: "a" },
      { path: "a" },
    ],
    [
      "whose schema fills defaults and transforms",
      () =>
        tool(note, {
          ...NAMED,
          schema: z.object({
            path: z.string().transform((path) => path.toUpperCase()),
            depth: z.number().default(1),
          }),
        }),
      { path: "a" },
      { path: "A", depth: 1 },
    ],
    [
      "with a JSON schema",
      () => tool(note, { ...NAMED, schema: jsonSchema }),
      { path: "a", more: [1] },
      { path: "a", more: [1] },
    ],
    ["for one string", () => tool(note, { ...NAMED, schema: z.string() }), { input: "a" }, "a"],
    [
      "DynamicTool",
      () => new DynamicTool({ ...NAMED, func: async (input) => note(input) }),
      { input: "a" },
      "a",
    ],
    [
      "DynamicStructuredTool",
      () =>
        new DynamicStructuredTool({
          ...NAMED,
          schema: z.object({ path: z.string() }),
          func: async (input) => note(input),
        }),
      { path: "a" },
      { path: "a" },
    ],
    [
      "a Runnable as a tool",
      () =>
        RunnableLambda.from((input: { path: string }) => note(input)).asTool({
          ...NAMED,
          schema: z.object({ path: z.string() }),
        }),
      { path: "a" },
      { path: "a" },
    ],
  ];

  test.each(kinds)("%s", async (_kind, make, args, gets) => {
    ran.mockClear();
    const classifier = fakeDecisionModel().respond(0);
    const { messages, records } = await play({
      version,
      turns: [call("delete_file", args, "a")],
      classifier,
      tools: [make()],
    });
    expect(ran.mock.calls).toEqual([[gets]]);
    expect(answerTo(messages, "a").text).toBe("done");
    // Judged is what was given to the tool, before its schema made anything of it.
    expect(classifier.judged).toEqual([
      expect.objectContaining({ name: "delete_file", args, description: "Deletes." }),
    ]);
    expect(records.map(({ executed }) => executed)).toEqual(["as judged"]);
  });

  test.each(kinds)("blocked: %s is never called", async (_kind, make, args) => {
    ran.mockClear();
    const { messages } = await play({
      version,
      turns: [call("delete_file", args, "a")],
      classifier: 1,
      tools: [make()],
    });
    expect(ran).not.toHaveBeenCalled();
    expect(answerTo(messages, "a").status).toBe("error");
  });

  test("a generator's events and its result come as without the guard, once each", async () => {
    const seen: unknown[] = [];
    const listener = BaseCallbackHandler.fromMethods({
      handleToolStart: (_tool, _input, _id, _parent, _tags, _metadata, name) =>
        void seen.push(["start", name]),
      handleToolEvent: (chunk) => void seen.push(["event", chunk]),
      handleToolEnd: (output: ToolMessage) => void seen.push(["end", output.text]),
    });
    const steps = tool(
      async function* () {
        yield "half";
        return "whole";
      },
      { ...NAMED, schema: z.object({}) },
    );
    const { messages } = await play({
      version,
      turns: [call("delete_file", {}, "a")],
      tools: [steps],
      config: { callbacks: [listener] },
    });
    expect(answerTo(messages, "a").text).toBe("whole");
    expect(seen).toEqual([
      ["start", "delete_file"],
      ["event", "half"],
      ["end", "whole"],
    ]);
  });

  test("a tool that hands its configuration on starts runs of their own, each with its own id", async () => {
    class HandingOn extends Vault {
      override async invoke(input: never, config?: RunnableConfig): Promise<never> {
        for (const step of ["first", "second"]) await RunnableLambda.from(() => step).invoke(step, config);
        return (await super.invoke(input, config)) as never;
      }
    }
    const ids: string[] = [];
    const listener = BaseCallbackHandler.fromMethods({
      handleChainStart: (_chain, _inputs, id) => void ids.push(id),
      handleToolStart: (_tool, _input, id) => void ids.push(id),
    });
    const { records } = await play({
      version,
      turns: [call("delete_file", { path: "a" }), "end"],
      tools: [new HandingOn()],
      config: { callbacks: [listener] },
    });
    expect(new Set(ids).size).toBe(ids.length);
    expect(records.map(({ executed }) => executed)).toEqual(["as judged"]);
  });

  test("content and artifact are kept", async () => {
    const rows = tool(() => ["3 rows", { rows: 3 }], {
      ...NAMED,
      schema: z.object({}),
      responseFormat: "content_and_artifact",
    });
    const { messages } = await play({ version, turns: [call("delete_file", {}, "a")], tools: [rows] });
    expect(answerTo(messages, "a")).toMatchObject({ content: "3 rows", artifact: { rows: 3 } });
  });

  test("returnDirect ends the run; blocked, it goes back to the agent", async () => {
    const direct = tool(() => "at once", { ...NAMED, schema: z.object({}), returnDirect: true });
    const scene = { version, turns: [call("delete_file", {}, "a"), "later"], tools: [direct] };
    const allowed = await play(scene);
    expect(allowed.messages.at(-1)?.text).toBe("at once");
    expect(allowed.model.callCount).toBe(1);
    const blocked = await play({ ...scene, classifier: 1 });
    expect(blocked.messages.at(-1)?.text).toBe("later");
  });

  test("a ToolMessage and a Command that a tool returns stay what they are", async () => {
    const message = tool(
      (_args, config) =>
        new ToolMessage({
          content: "own message",
          tool_call_id: (config as { toolCallId: string }).toolCallId,
          name: "delete_file",
          additional_kwargs: { mine: true },
        }),
      { ...NAMED, schema: z.object({}) },
    );
    const first = await play({ version, turns: [call("delete_file", {}, "a")], tools: [message] });
    expect(answerTo(first.messages, "a")).toMatchObject({
      content: "own message",
      additional_kwargs: { mine: true },
    });
    const command = tool(
      (_args, config) =>
        new Command({
          update: {
            messages: [
              new ToolMessage({
                content: "by command",
                tool_call_id: (config as { toolCallId: string }).toolCallId,
                name: "delete_file",
              }),
            ],
          },
        }),
      { ...NAMED, schema: z.object({}) },
    );
    const second = await play({ version, turns: [call("delete_file", {}, "a")], tools: [command] });
    expect(answerTo(second.messages, "a").text).toBe("by command");
  });

  test("the tool gets the configuration that it gets without the guard", async () => {
    const seen: unknown[] = [];
    const look = tool(
      (_args, config) => {
        const { toolCallId, context, tags, toolCall, signal } = config as unknown as Record<string, unknown>;
        seen.push({ toolCallId, context, tags, toolCall, signal: typeof signal });
        return "ok";
      },
      { ...NAMED, schema: z.object({ path: z.string() }) },
    );
    const scene = {
      version,
      turns: [call("delete_file", { path: "a" }, "a")],
      tools: [look],
      config: { context: { tenant: 7 }, tags: ["mine"], signal: new AbortController().signal },
    };
    await play({ ...scene, options: { tools: ["another"], onUnknownTool: "ignore" } });
    await play(scene);
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[0]).toMatchObject({
      toolCallId: "a",
      toolCall: { name: "delete_file", args: { path: "a" } },
    });
  });

  test("arguments that its schema refuses: the agent gets the host's own message and the run goes on", async () => {
    const strict = tool(note, { ...NAMED, schema: z.object({ path: z.string() }) });
    const { messages, model } = await play({
      version,
      turns: [call("delete_file", { path: 3 }, "a")],
      tools: [strict],
    });
    expect(answerTo(messages, "a")).toMatchObject({ status: "error" });
    expect(answerTo(messages, "a").text).toMatch(/expected schema/);
    expect(model.callCount).toBe(2);
  });

  const playWith = async (change: Parameters<typeof onToolCall>[0]) => {
    ran.mockClear();
    const strict = tool(note, { ...NAMED, schema: z.object({ path: z.string() }) });
    return play({
      version,
      turns: [call("delete_file", { path: "a" }, "a"), "end"],
      tools: [strict],
      classifier: fakeDecisionModel().always(({ args }) => (args.path === "/prod" ? 0.9 : 0)),
      inside: [onToolCall(change)],
    });
  };

  describe("behind the guard, of a call that was refused at its start", () => {
    test("a middleware that makes an error of the refusal does not take it from the agent", async () => {
      const { messages, records } = await playWith(async (request, handler) => {
        const { toolCall } = request;
        const result = await handler({ ...request, toolCall: { ...toolCall, args: { path: "/prod" } } });
        if ((result as ToolMessage).status === "error") throw new Error("The tool failed.");
        return result;
      });
      expect(ran).not.toHaveBeenCalled();
      expect(answerTo(messages, "a").text).toMatch(/^Auto mode blocked the call to delete_file/);
      expect(records).toMatchObject([{ outcome: "blocked", executed: "judged again", risk: 0.9 }]);
    });

    test("a call that is started without arguments can be neither judged nor run", async () => {
      const { messages, records } = await playWith(({ tool: guarded, toolCall: { id, name } }) => {
        return (guarded as unknown as Runnable).invoke({ type: "tool_call", id, name });
      });
      expect(ran).not.toHaveBeenCalled();
      expect(answerTo(messages, "a").text).toMatch(/did not run: its arguments are not a JSON object/);
      expect(records).toMatchObject([{ outcome: "malformed", executed: "judged again", argsDigest: "" }]);
    });
  });
});

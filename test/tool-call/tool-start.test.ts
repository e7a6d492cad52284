import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { CallbackManager } from "@langchain/core/callbacks/manager";
import { registerConfigureHook, setContextVariable } from "@langchain/core/context";
import { type RunnableConfig, RunnableLambda } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import { type ClientTool, DynamicStructuredTool, DynamicTool } from "@langchain/core/tools";
import { tool } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type ToolStart, classOf, createStartGates } from "../../src/tool-call/tool-start.js";
import { VERSIONS, answerTo, play } from "../kit/agent.js";
import { answerFrom, onToolCall } from "../kit/middlewares.js";
import { call } from "../kit/model.js";
import { FileTool } from "../kit/tools.js";

// The host logs what a start gate throws.
const logged = vi.spyOn(console, "error").mockImplementation(() => {});

const NAMED = { name: "delete_file", description: "Deletes." };

/**
 * A new version of the host that no longer announces starts, or announces them without their arguments
 * or their call, fails here: then a middleware that drops the tool object gets around the guard.
 */
describe.each(VERSIONS)("the host announces the start of a tool before it runs, %s", (version) => {
  const ran = vi.fn<() => void>();
  const run = (): string => {
    ran();
    return "done";
  };
  class Counted extends FileTool {
    protected override async _call(): Promise<string> {
      return run();
    }
  }
  const jsonSchema = { type: "object" as const, properties: { path: { type: "string" as const } } };

  test.each<[string, () => ClientTool, (path: string) => Record<string, unknown>]>([
    ["tool()", () => tool(run, { ...NAMED, schema: z.object({ path: z.string() }) }), (path) => ({ path })],
    ["tool() with a JSON schema", () => tool(run, { ...NAMED, schema: jsonSchema }), (path) => ({ path })],
    ["tool() for one string", () => tool(run, { ...NAMED, schema: z.string() }), (path) => ({ input: path })],
    ["a class", () => new Counted("delete_file"), (path) => ({ path })],
    [
      "DynamicTool",
      () => new DynamicTool({ ...NAMED, func: async () => run() }),
      (path) => ({ input: path }),
    ],
    [
      "DynamicStructuredTool",
      () =>
        new DynamicStructuredTool({
          ...NAMED,
          schema: z.object({ path: z.string() }),
          func: async () => run(),
        }),
      (path) => ({ path }),
    ],
    [
      "a runnable as a tool",
      () => RunnableLambda.from(run).asTool({ ...NAMED, schema: z.object({ path: z.string() }) }),
      (path) => ({ path }),
    ],
  ])("%s", async (_kind, make, args) => {
    const changed = onToolCall((request, handler) =>
      handler({ ...request, tool: undefined, toolCall: { ...request.toolCall, args: args("/changed") } }),
    );
    const scene = {
      version,
      turns: [call("delete_file", args("/asked"), "a")],
      tools: [make()],
      inside: [changed],
    };

    ran.mockClear();
    const classifier = fakeDecisionModel().respond(0).respond(0.9);
    const refused = await play({ ...scene, classifier });
    expect(ran).not.toHaveBeenCalled();
    expect(classifier.judged.map((judged) => judged.args)).toEqual([args("/asked"), args("/changed")]);
    expect(answerTo(refused.messages, "a").status).toBe("error");

    const allowed = await play({ ...scene, classifier: 0 });
    expect(ran).toHaveBeenCalledOnce();
    expect(allowed.records.map(({ outcome, executed }) => [outcome, executed])).toEqual([
      ["allowed", "judged again"],
    ]);
  });

  test("a runnable that is started with bare arguments is judged by them", async () => {
    const classifier = fakeDecisionModel().respond(0).respond(0.9);
    const runnable = RunnableLambda.from(run).asTool({ ...NAMED, schema: z.object({ path: z.string() }) });
    ran.mockClear();
    const { messages } = await play({
      version,
      turns: [call("delete_file", { path: "/asked" }, "a")],
      tools: [runnable],
      classifier,
      inside: [
        onToolCall(async (request) => {
          const result = await runnable.invoke({ path: "/changed" });
          return answerFrom(request, result);
        }),
      ],
    });
    expect(ran).not.toHaveBeenCalled();
    expect(classifier.judged[1]?.args).toEqual({ path: "/changed" });
    expect(answerTo(messages, "a").status).toBe("error");
  });

  test("what the host logs of a refused start repeats nothing of the call", async () => {
    logged.mockClear();
    const changed = onToolCall((request, handler) =>
      handler({ ...request, tool: undefined, toolCall: { ...request.toolCall, args: { path: "SECRET" } } }),
    );
    await play({
      version,
      turns: [call("delete_file", { path: "/asked" })],
      classifier: fakeDecisionModel().respond(0).respond(0.9),
      inside: [changed],
    });
    expect(logged).toHaveBeenCalled();
    expect(JSON.stringify(logged.mock.calls)).not.toContain("SECRET");
  });

  test("each call of a step has its own gate, although the calls of a node may share one configuration", async () => {
    const classifier = fakeDecisionModel()
      .respond(0)
      .always(({ args }) => (args.path === "/b" ? 0.9 : 0));
    const changed = onToolCall((request, handler) =>
      handler({
        ...request,
        tool: undefined,
        toolCall: { ...request.toolCall, args: { path: `/${request.toolCall.id}` } },
      }),
    );
    const { box, messages } = await play({
      version,
      turns: [["a", "b", "c"].map((id) => call("delete_file", { path: "/asked" }, id))],
      classifier,
      inside: [changed],
    });
    expect(box.ranWith("delete_file")).toEqual([{ path: "/a" }, { path: "/c" }]);
    expect(["a", "b", "c"].map((id) => answerTo(messages, id).status)).toEqual([
      "success",
      "error",
      "success",
    ]);
  });

  test("callbacks of the user stay, and hear of a start once", async () => {
    const seen: unknown[] = [];
    const listener = BaseCallbackHandler.fromMethods({
      handleToolStart: (_tool, _input, _id, _parent, _tags, _metadata, name) => void seen.push(name),
    });
    const drop = onToolCall((request, handler) => handler({ ...request, tool: undefined }));
    await play({
      version,
      turns: [[call("delete_file", { path: "/a" }), call("read_file", { path: "/b" })]],
      inside: [drop],
      config: { callbacks: [listener] },
    });
    expect(new Set(seen)).toEqual(new Set(["delete_file", "read_file"]));
    expect(seen).toHaveLength(2);
  });

  test("a handler that comes from around the run, as a tracer does, hears of a start once", async () => {
    const seen: (string | undefined)[] = [];
    const contextVar = `tracer ${version}`;
    registerConfigureHook({ contextVar });
    setContextVariable(
      contextVar,
      BaseCallbackHandler.fromMethods({
        handleToolStart: (_tool, _input, _id, _parent, _tags, _metadata, name) => void seen.push(name),
      }),
    );
    try {
      await play({
        version,
        turns: [[call("delete_file", { path: "/a" }), call("read_file", { path: "/b" })]],
      });
    } finally {
      setContextVariable(contextVar, undefined);
    }
    expect(seen).toHaveLength(2);
    expect(new Set(seen)).toEqual(new Set(["delete_file", "read_file"]));
  });
});

const inConfig = (config: RunnableConfig, run: () => Promise<void>): Promise<void> =>
  AsyncLocalStorageProviderSingleton.runWithConfig(config, run);
const managerOf = (config: RunnableConfig): CallbackManager => config.callbacks as CallbackManager;

describe("start gates", () => {
  test("where there is no running configuration nothing is attached", () => {
    expect(() => createStartGates().attach("a", async () => {})).not.toThrow();
  });

  test("one handler for each configuration, awaited, not inherited, beside those that were there", async () => {
    const listener = BaseCallbackHandler.fromMethods({ handleToolStart: () => {} });
    const before = CallbackManager.configure([listener]) as CallbackManager;
    const config: RunnableConfig = { callbacks: before, runName: "tools" };
    const { attach } = createStartGates();
    await inConfig(config, async () => {
      attach("a", async () => {});
      attach("b", async () => {});
    });
    expect(managerOf(config).handlers).toHaveLength(2);
    expect(managerOf(config).inheritableHandlers).toEqual([listener]);
    expect(managerOf(config).handlers.at(-1)).toMatchObject({ awaitHandlers: true, raiseError: true });
    expect(before.handlers).toEqual([listener]);
    expect(config.runName).toBeUndefined();
  });

  test("a name that is not the node's own stays", async () => {
    const config: RunnableConfig = { runName: "mine" };
    await inConfig(config, async () => createStartGates().attach("a", async () => {}));
    expect(config.runName).toBe("mine");
  });

  test("a start goes to the gate of its call, one of an unknown call to any gate of the node", async () => {
    const config: RunnableConfig = {};
    const starts: [string, ToolStart][] = [];
    const { attach } = createStartGates();
    await inConfig(config, async () => {
      attach("a", async (start) => void starts.push(["a", start]));
      attach("b", async (start) => void starts.push(["b", start]));
    });
    const start = (input: string, id: string | undefined, toolId: unknown) =>
      managerOf(config).handleToolStart(
        { id: toolId } as never,
        input,
        "run",
        undefined,
        undefined,
        undefined,
        "n",
        id,
      );
    await start('{"x":1}', "a", ["lc", "Thing"]);
    await start("no JSON", "unknown", "odd");
    expect(starts).toEqual([
      ["a", { name: "n", className: "lc/Thing", args: { x: 1 } }],
      ["b", { name: "n", className: undefined, args: undefined }],
    ]);
  });

  test("a start that is expected is not watched; other handlers hear of it, and other starts are watched", async () => {
    const heard: string[] = [];
    const listener = BaseCallbackHandler.fromMethods({ handleToolStart: () => void heard.push("listener") });
    const config: RunnableConfig = { callbacks: [listener], tags: ["mine"] };
    const { attach, expecting } = createStartGates();
    const file = new FileTool("delete_file");
    await inConfig(config, async () => {
      attach("a", async () => void heard.push("gate"));
      const expected = expecting(config);
      expect(expected).toMatchObject({ tags: ["mine"] });
      await file.invoke({ path: "x" }, expected);
      expect(heard).toEqual(["listener"]);
      await file.invoke({ path: "x" }, config);
      expect(heard).toEqual(["listener", "listener", "gate"]);
    });
    expect(managerOf(config).handlers).toHaveLength(2);
  });

  test("a handler that somebody adds on the way hears of an expected start", async () => {
    const heard = vi.fn<() => void>();
    const config: RunnableConfig = {};
    const { attach, expecting } = createStartGates();
    await inConfig(config, async () => {
      attach("a", async () => {});
      managerOf(config).addHandler(BaseCallbackHandler.fromMethods({ handleToolStart: heard }));
      await new FileTool("delete_file").invoke({ path: "x" }, expecting(config));
    });
    expect(heard).toHaveBeenCalledOnce();
  });

  test("a start without callbacks of its own would take those of the running config: it is not watched either", async () => {
    const gate = vi.fn<() => Promise<void>>(async () => {});
    const { attach, expecting } = createStartGates();
    const file = new FileTool("delete_file");
    await inConfig({}, async () => {
      attach("a", gate);
      await file.invoke({ path: "x" }, expecting(undefined));
      expect(gate).not.toHaveBeenCalled();
      await file.invoke({ path: "x" });
      expect(gate).toHaveBeenCalledOnce();
    });
    expect(file.ran).toHaveLength(2);
  });

  test("a configuration that nobody watches stays the same", async () => {
    const { expecting } = createStartGates();
    for (const config of [undefined, {}, { callbacks: [] }, { callbacks: new CallbackManager() }])
      expect(expecting(config)).toBe(config);
    const config: RunnableConfig = {};
    await inConfig(config, async () => createStartGates().attach("a", async () => {}));
    expect(expecting(config)).toBe(config);
  });

  test("what a gate throws keeps the tool from starting", async () => {
    const config: RunnableConfig = {};
    const file = new FileTool("delete_file");
    await inConfig(config, async () =>
      createStartGates().attach("a", async () => {
        throw new Error("no");
      }),
    );
    await expect(
      file.invoke({ type: "tool_call", name: "delete_file", id: "a", args: { path: "x" } }, config),
    ).rejects.toThrow("no");
    expect(file.ran).toEqual([]);
  });
});

test("a class is told by its whole name, as its start shows it", async () => {
  class Named extends FileTool {
    static override lc_name(): string {
      return "Named";
    }
  }
  class Heir extends Named {}
  let shown: unknown;
  const listener = BaseCallbackHandler.fromMethods({
    handleToolStart: (started) => void (shown = started.id),
  });
  const heir = new Heir("a");
  await heir.invoke({ path: "x" }, { callbacks: [listener] });
  expect(classOf(heir)).toBe((shown as string[]).join("/"));
  expect(classOf({})).toBeUndefined();
});

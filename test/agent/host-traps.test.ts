import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";
import {
  Command,
  END,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
  interrupt,
} from "@langchain/langgraph";
import {
  type AgentMiddleware,
  createAgent,
  createMiddleware,
  providerStrategy,
  tool,
  toolErrorMiddleware,
  toolRetryMiddleware,
  toolStrategy,
} from "langchain";
import { autoModeMiddleware, autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { VERSIONS, answerTo, causes, play, rejection, stage, textOf } from "../kit/agent.js";
import { onToolCall, replacingArgs } from "../kit/middlewares.js";
import { call, del, proposes, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const CONFIG = { configurable: { thread_id: "t" } };
const NAMED = { name: "delete_file", description: "Deletes.", schema: z.object({ path: z.string() }) };
const idOf = (config: unknown): string => (config as { toolCallId: string }).toolCallId;
const pathsIn = (entries: readonly unknown[]): string[] =>
  entries.flatMap((entry) => (entry as { args?: { path?: string } }).args?.path ?? []);
type Paused = { __interrupt__?: { id?: string; value: unknown }[]; messages: ToolMessage[] };

// The host logs what a start gate throws.
beforeEach(() => void vi.spyOn(console, "error").mockImplementation(() => {}));
afterEach(() => vi.restoreAllMocks());

describe.each(VERSIONS)("what a tool does passes through, %s", (version) => {
  test("its own interrupt pauses the graph, and the answer reaches it; judged and recorded once", async () => {
    const asking = tool(({ path }) => `${path} ${String(interrupt({ really: path }))}`, NAMED);
    // A second judgment would lose the person's answer.
    const classifier = fakeDecisionModel().respond(0.1).always(0.9);
    const scene = stage({
      version,
      turns: [del("/a", "a"), "end"],
      classifier,
      tools: [asking],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const paused = (await scene.agent.invoke(
      { messages: [new HumanMessage("go")] },
      CONFIG,
    )) as unknown as Paused;
    expect(paused.__interrupt__?.map(({ value }) => value)).toEqual([{ really: "/a" }]);
    const resumed = (await scene.agent.invoke(new Command({ resume: "yes" }), CONFIG)) as unknown as Paused;
    expect(textOf(answerTo(resumed.messages, "a"))).toBe("/a yes");
    expect(classifier.callCount).toBe(1);
    expect(scene.records.map(({ outcome }) => outcome)).toEqual(["allowed"]);
    expect(autoModeState(await scene.agent.graph.getState(CONFIG))).toMatchObject({
      totalBlocks: 0,
      consecutiveUnavailable: 0,
    });
  });

  test("two calls that paused keep their verdicts, however often the host starts them again", async () => {
    const asking = tool(({ path }) => `${path} ${String(interrupt({ really: path }))}`, NAMED);
    const classifier = fakeDecisionModel().always(0);
    const scene = stage({
      version,
      turns: [[del("/a", "a"), del("/b", "b")], "end"],
      classifier,
      tools: [asking],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const go = { messages: [new HumanMessage("go")] };
    let paused = (await scene.agent.invoke(go, CONFIG)) as unknown as Paused;
    const requestsBefore = classifier.callCount;
    // In one node the host pauses at the first interrupt, in one node each at both.
    const ids = paused.__interrupt__?.map(({ id }) => id ?? "") ?? [];
    const resume = Object.fromEntries(ids.map((id) => [id, "yes"]));
    paused = (await scene.agent.invoke(new Command({ resume }), CONFIG)) as unknown as Paused;
    expect([requestsBefore, classifier.callCount]).toEqual([1, 1]);
    expect(classifier.judged.map(({ key }) => key)).toEqual(["call_1", "call_2"]);
    for (const { id } of paused.__interrupt__ ?? [])
      paused = (await scene.agent.invoke(new Command({ resume: { [id ?? ""]: "yes" } }), CONFIG)) as never;
    expect(["a", "b"].map((id) => textOf(answerTo(paused.messages, id)))).toEqual(["/a yes", "/b yes"]);
  });

  test("two runs that go on from one checkpoint share no judgment: one takes the verdict, the other is judged", async () => {
    const asking = tool(({ path }) => `${path} ${String(interrupt({ really: path }))}`, NAMED);
    const environments: unknown[] = [];
    const scene = stage({
      version,
      turns: [del("/a", "a"), "end"],
      classifier: fakeDecisionModel().always(0),
      options: {
        environment: ({ context }) => {
          environments.push(context);
          return { context: context as never };
        },
      },
      tools: [asking],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    await scene.agent.invoke({ messages: [new HumanMessage("go")] }, CONFIG);
    const goOn = async (user: string) =>
      scene.agent.invoke(new Command({ resume: "yes" }), { ...CONFIG, context: { user } } as never);
    await Promise.all([goOn("Ann"), goOn("Bo")]);
    expect(environments).toHaveLength(2);
  });

  test("a run that is aborted while it is judged leaves another from the same checkpoint alone", async () => {
    const first = new AbortController();
    let asked = 0;
    const scene = stage({
      version,
      turns: [del("/a", "a"), "end", "end"],
      classifier: fakeDecisionModel().respondWith(() => {
        asked += 1;
        if (asked === 1) first.abort();
        return 0;
      }),
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const go = (signal?: AbortSignal) =>
      scene.agent.invoke(
        { messages: [new HumanMessage("go")] },
        { ...CONFIG, ...(signal ? { signal } : {}) },
      );
    const [stopped, other] = await Promise.allSettled([go(first.signal), go()]);
    expect([stopped.status, other.status]).toEqual(["rejected", "fulfilled"]);
  });

  test("two calls that paused and are changed on their way: each is judged without itself in the transcript", async () => {
    const asking = tool(({ path }) => `${path} ${String(interrupt({ really: path }))}`, NAMED);
    const classifier = fakeDecisionModel({ delayMs: 5 }).always(0);
    const changing = onToolCall((request, handler) => {
      const { toolCall } = request;
      return handler({
        ...request,
        toolCall: { ...toolCall, args: { path: `/changed${toolCall.args.path}` } },
      });
    });
    const scene = stage({
      version,
      turns: [[del("/a", "a"), del("/b", "b")], "end"],
      classifier,
      tools: [asking],
      inside: [changing],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const go = { messages: [new HumanMessage("go")] };
    const paused = (await scene.agent.invoke(go, CONFIG)) as unknown as Paused;
    const before = classifier.requests.length;
    const resume = Object.fromEntries((paused.__interrupt__ ?? []).map(({ id }) => [id ?? "", "yes"]));
    await scene.agent.invoke(new Command({ resume }), CONFIG);
    const changed = classifier.requests.slice(before).map(({ calls, transcript }) => ({
      own: pathsIn(calls)[0] ?? "",
      shown: pathsIn(transcript),
    }));
    const again = changed.filter(({ own }) => own.startsWith("/changed"));
    expect(again.length).toBeGreaterThan(0);
    for (const { own, shown } of again) expect(shown).not.toContain(own.replace("/changed", ""));
  });

  test("next to a blocked call: the block counts once, although the node is entered again", async () => {
    const asking = tool(() => `answered ${String(interrupt("really?"))}`, { ...NAMED, name: "ask_first" });
    const box = toolBox();
    const scene = stage({
      version,
      turns: [[del("/bad", "bad"), call("ask_first", { path: "/q" }, "q")], "end"],
      classifier: fakeDecisionModel().always(({ name }) => (name === "delete_file" ? 0.9 : 0)),
      box,
      tools: [box.deleteFile, asking],
      options: { tools: ["delete_file", "ask_first"] },
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    await scene.agent.invoke({ messages: [new HumanMessage("go")] }, CONFIG);
    const resumed = (await scene.agent.invoke(new Command({ resume: "yes" }), CONFIG)) as unknown as Paused;
    expect(textOf(answerTo(resumed.messages, "q"))).toBe("answered yes");
    expect(answerTo(resumed.messages, "bad").status).toBe("error");
    expect(autoModeState(await scene.agent.graph.getState(CONFIG)).totalBlocks).toBe(1);
  });

  test("an interrupt of an inner middleware passes, even after a start was refused", async () => {
    const inner = onToolCall(async (request, handler) => {
      await handler({ ...request, toolCall: { ...request.toolCall, args: { path: "/prod" } } });
      interrupt("sure?");
      return handler(request);
    });
    const scene = stage({
      version,
      turns: [del("/tmp", "a"), "end"],
      classifier: fakeDecisionModel().always(({ args }) => (args.path === "/prod" ? 0.9 : 0)),
      inside: [inner],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const paused = (await scene.agent.invoke(
      { messages: [new HumanMessage("go")] },
      CONFIG,
    )) as unknown as Paused;
    expect(paused.__interrupt__).toHaveLength(1);
    const resumed = (await scene.agent.invoke(new Command({ resume: "yes" }), CONFIG)) as unknown as Paused;
    expect(answerTo(resumed.messages, "a").status).toBe("success");
    expect(scene.box.ranWith("delete_file")).toEqual([{ path: "/tmp" }]);
  });

  test("its error comes out as it was thrown, and changes no count", async () => {
    const boom = new Error("disk full");
    const failing = tool(() => {
      throw boom;
    }, NAMED);
    const scene = stage({
      version,
      turns: [del("/a")],
      tools: [failing],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    expect(causes(await rejection(scene.invoke()))).toContain(boom);
    expect(scene.records.map(({ outcome }) => outcome)).toEqual(["allowed"]);
  });

  test("its command for a parent graph reaches the parent", async () => {
    const leaving = tool(() => new Command({ graph: Command.PARENT, goto: "other" }), NAMED);
    const visited: string[] = [];
    const agent = createAgent({
      model: scripted([del("/a"), del("/b")]),
      tools: [leaving],
      version,
      middleware: [autoModeMiddleware({ tools: ["delete_file"], classifier: fakeDecisionModel().always(0) })],
    });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("agent", agent.graph as never, { ends: ["other"] })
      .addNode("other", () => {
        visited.push("other");
        return {};
      })
      .addEdge(START, "agent")
      .compile();
    await graph.invoke({ messages: [new HumanMessage("go")] });
    expect(visited[0]).toBe("other");
  });

  test("its command keeps its goto and its other updates, although the guard adds its own", async () => {
    const ending = tool(
      ({ path }, config) =>
        new Command({
          update: {
            messages: [
              new ToolMessage({ content: `gone ${path}`, tool_call_id: idOf(config), name: "delete_file" }),
            ],
          },
          goto: END,
        }),
      NAMED,
    );
    const scene = stage({
      version,
      turns: [del("/bad", "bad"), del("/a", "a"), "later"],
      classifier: fakeDecisionModel().respond(0.9).respond(0),
      tools: [ending],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const messages = await scene.invoke();
    expect(textOf(answerTo(messages, "a"))).toBe("gone /a");
    expect(autoModeState(await scene.agent.graph.getState(CONFIG))).toMatchObject({
      consecutiveBlocks: 0,
      totalBlocks: 1,
    });
  });
});

const blockingBad = () => fakeDecisionModel().always(({ args }) => (args.path === "/bad" ? 0.9 : 0));

const hook = (): object => ({});
/** A middleware that hands something back in every hook. */
const everyHook = (name: string): AgentMiddleware => {
  return createMiddleware({
    name,
    beforeAgent: hook,
    beforeModel: hook,
    afterModel: hook,
    afterAgent: hook,
    wrapModelCall: (request, handler) => handler(request),
    wrapToolCall: (request, handler) => handler(request),
  });
};
const retry = () => toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, jitter: false });
const caught = () => toolErrorMiddleware({ onError: () => "caught" });

describe.each(VERSIONS)("other middlewares, %s", (version) => {
  test("whose hooks return values make the guard count nothing twice and nothing not at all", async () => {
    const scene = stage({
      version,
      turns: [[del("/1"), del("/2")], del("/3"), "end", del("/4"), "end"],
      classifier: fakeDecisionModel().respond(0.9).respond(0).respond(0.9),
      options: { limits: { consecutiveBlocks: 5 } },
      outside: [everyHook("outer")],
      inside: [everyHook("inner")],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    await scene.invoke();
    const counts = async () => autoModeState(await scene.agent.graph.getState(CONFIG));
    expect(await counts()).toMatchObject({ consecutiveBlocks: 0, totalBlocks: 2 });
    await scene.invoke("more");
    expect(await counts()).toMatchObject({ consecutiveBlocks: 1, totalBlocks: 3 });
    expect(scene.records.map(({ counters }) => counters.totalBlocks)).toEqual([1, 2, 2, 3]);
  });

  test("streaming every kind of state counts nothing twice", async () => {
    const scene = stage({
      version,
      turns: [[del("/1"), del("/2")], "end"],
      classifier: 0.9,
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const modes = ["values", "updates", "messages", "custom", "debug"] as const;
    const input = { messages: [new HumanMessage("go")] };
    for await (const _ of await scene.agent.stream(input, { ...CONFIG, streamMode: [...modes] }));
    expect(autoModeState(await scene.agent.graph.getState(CONFIG))).toMatchObject({
      consecutiveBlocks: 2,
      totalBlocks: 2,
    });
  });

  test.each<[string, (middleware: AgentMiddleware) => object]>([
    ["outside", (middleware) => ({ outside: [middleware] })],
    ["inside", (middleware) => ({ inside: [middleware] })],
  ])("a retry %s the guard: judged once, recorded once, runs as judged", async (_where, place) => {
    const paths: string[] = [];
    const flaky = tool(({ path }) => {
      paths.push(path);
      if (paths.length === 1) throw new Error("flaky");
      return "ok";
    }, NAMED);
    const classifier = fakeDecisionModel().respond(0);
    const { messages, records } = await play({
      version,
      turns: [del("/a", "a"), "end"],
      classifier,
      tools: [flaky],
      ...place(retry()),
    });
    expect(answerTo(messages, "a").status).toBe("success");
    expect([paths, classifier.callCount, records.length]).toEqual([["/a", "/a"], 1, 1]);
  });

  test.each<[string, (middleware: AgentMiddleware) => object]>([
    ["outside", (middleware) => ({ outside: [middleware] })],
    ["inside", (middleware) => ({ inside: [middleware] })],
  ])("an error handler %s the guard: each call has one record and one answer", async (_where, place) => {
    const failing = tool(({ path }) => {
      if (path === "/boom") throw new Error("boom");
      return "ok";
    }, NAMED);
    const { messages, records } = await play({
      version,
      turns: [[del("/bad", "bad"), del("/boom", "boom"), del("/ok", "ok")], "end"],
      classifier: blockingBad(),
      tools: [failing],
      ...place(caught()),
    });
    expect(textOf(answerTo(messages, "bad"))).toMatch(/blocked/);
    expect(textOf(answerTo(messages, "boom"))).toMatch(/caught/);
    expect(answerTo(messages, "ok").status).toBe("success");
    expect(records.map(({ toolCallId }) => toolCallId).toSorted()).toEqual(["bad", "boom", "ok"]);
  });

  test.each(["outside", "inside"] as const)(
    "an answer by a middleware %s the guard is the only one",
    async (where) => {
      const answering = onToolCall(
        (request) => new ToolMessage({ content: "cached", tool_call_id: request.toolCall.id ?? "" }),
      );
      const { box, messages } = await play({ version, turns: [del("/a", "a"), "end"], [where]: [answering] });
      expect(textOf(answerTo(messages, "a"))).toBe("cached");
      expect(box.ran).toEqual([]);
    },
  );
});

describe.each(VERSIONS)("the state of the agent, %s", (version) => {
  test("three risky calls in one message, all blocked: three are counted, and the limit acts once", async () => {
    const scene = stage({
      version,
      turns: [[del("/1"), del("/2"), del("/3")], "not reached"],
      classifier: 0.9,
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    const messages = await scene.invoke();
    expect(scene.model.callCount).toBe(1);
    expect(
      messages.filter(
        (message) => message.additional_kwargs.lc_source === "auto_mode" && message.getType() === "ai",
      ),
    ).toHaveLength(1);
    expect(autoModeState(await scene.agent.graph.getState(CONFIG))).toMatchObject({
      totalBlocks: 3,
      limit: "consecutiveBlocks",
    });
  });

  test("two threads of one instance, interleaved: neither counts for the other", async () => {
    const scene = stage({
      version,
      turns: [del("/1"), "end", del("/2"), "end", del("/3"), "end", del("/4"), "end"],
      classifier: 0.9,
      checkpointer: new MemorySaver(),
    });
    for (const thread of ["a", "b", "a", "b"])
      await scene.agent.invoke(
        { messages: [new HumanMessage("go")] },
        { configurable: { thread_id: thread } },
      );
    for (const thread of ["a", "b"])
      expect(
        autoModeState(await scene.agent.graph.getState({ configurable: { thread_id: thread } })),
      ).toMatchObject({ totalBlocks: 2, limit: undefined });
    expect(scene.records.map(({ counters }) => counters.totalBlocks)).toEqual([1, 1, 2, 2]);
  });

  const schema = z.object({ answer: z.string() });
  const byTool = toolStrategy(schema);
  test.each([
    ["a tool's", byTool, byTool[0]?.name ?? ""],
    ["the provider's", providerStrategy(schema), ""],
  ])(
    "a structured response by %s strategy comes out, next to calls of both kinds",
    async (_whose, strategy, name) => {
      const box = toolBox();
      const calls = name === "" ? [] : [call(name, { answer: "42" }, "x")];
      const agent = createAgent({
        model: scripted([del("/bad", "bad"), del("/ok", "ok")], () => proposes(calls, '{"answer":"42"}')),
        tools: box.all,
        version,
        responseFormat: strategy as never,
        middleware: [autoModeMiddleware({ tools: ["delete_file"], classifier: blockingBad() })],
      });
      const state: object = await agent.invoke({ messages: [new HumanMessage("go")] });
      expect(state).toMatchObject({ structuredResponse: { answer: "42" } });
      expect(box.ran).toHaveLength(1);
    },
  );

  test("one instance serves an agent and its subagent; the inner calls are guarded by the inner one alone", async () => {
    const box = toolBox();
    const classifier = fakeDecisionModel().forTool("delete_file", 0.9).always(0);
    const guard = autoModeMiddleware({ tools: ["delete_file", "task"], classifier, onUnknownTool: "ignore" });
    const inner = createAgent({
      model: scripted(del("/prod", "i"), "could not"),
      tools: [box.deleteFile],
      version,
      middleware: [guard],
    });
    const task = tool(
      async () => textOf((await inner.invoke({ messages: [new HumanMessage("delete it")] })).messages.at(-1)),
      { name: "task", description: "Delegates.", schema: z.object({}) },
    );
    const outer = createAgent({
      model: scripted(call("task", {}, "t"), "end"),
      tools: [task],
      version,
      middleware: [guard],
    });
    const { messages } = await outer.invoke({ messages: [new HumanMessage("go")] });
    expect(textOf(answerTo(messages, "t"))).toBe("could not");
    expect(box.ran).toEqual([]);
    expect(classifier.judged.map(({ name }) => name)).toEqual(["task", "delete_file"]);
  });

  test("the environment and a rule are given the run's runtime, the state and the tool at hand", async () => {
    const seen: unknown[] = [];
    const box = toolBox();
    await play({
      version,
      box,
      turns: [del("/a", "a"), "end"],
      config: { context: { tenant: 7 }, configurable: { thread_id: "t" } },
      options: {
        environment: (runtime) => {
          seen.push(runtime.context, runtime.configurable?.thread_id);
          return {};
        },
        precheck: (proposed, { tool: given, state, runtime }) => {
          seen.push(proposed, given, state.messages.length, runtime.context);
          return "classify";
        },
      },
    });
    expect(seen).toEqual([
      { id: "a", name: "delete_file", args: { path: "/a" } },
      box.deleteFile,
      2,
      { tenant: 7 },
      { tenant: 7 },
      "t",
    ]);
  });

  test("a call that is blocked after it was changed counts; an allowed call next to it ends no count of blocks", async () => {
    const scene = stage({
      version,
      turns: [[del("/a", "a"), del("/ok", "b")], "end"],
      classifier: fakeDecisionModel().always(({ args }) => (args.path === "/prod" ? 0.9 : 0)),
      inside: [
        onToolCall((request, handler) =>
          handler(
            request.toolCall.args.path === "/a"
              ? { ...request, toolCall: { ...request.toolCall, args: { path: "/prod" } } }
              : request,
          ),
        ),
      ],
      checkpointer: new MemorySaver(),
      config: CONFIG,
    });
    await scene.invoke();
    expect(autoModeState(await scene.agent.graph.getState(CONFIG))).toMatchObject({
      consecutiveBlocks: 1,
      totalBlocks: 1,
    });
  });
});

describe.each(VERSIONS)("where the host has no AsyncLocalStorage, %s", (version) => {
  test("no start can be watched, but a changed call is still judged before it runs", async () => {
    vi.spyOn(AsyncLocalStorageProviderSingleton, "getRunnableConfig").mockReturnValue(undefined);
    const classifier = fakeDecisionModel().respond(0).respond(0.9);
    const { box, messages } = await play({
      version,
      turns: [del("/tmp", "a"), "end"],
      classifier,
      inside: [replacingArgs({ path: "/prod" })],
    });
    expect(box.ran).toEqual([]);
    expect(answerTo(messages, "a").status).toBe("error");
    expect(classifier.judged.map(({ args }) => args.path)).toEqual(["/tmp", "/prod"]);
  });
});

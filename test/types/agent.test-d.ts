import { MemorySaver, StateSchema } from "@langchain/langgraph";
import { createAgent, createMiddleware, tool, toolStrategy } from "langchain";
import { type AutoModeState, autoModeMiddleware, autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { assertType, describe, expectTypeOf, test } from "vitest";
import { z } from "zod";

const readFile = tool(({ path }) => path, {
  name: "read_file",
  description: "d",
  schema: z.object({ path: z.string() }),
});
const guard = autoModeMiddleware({ tools: [readFile], classifier: fakeDecisionModel() });
const counting = createMiddleware({
  name: "counting",
  stateSchema: z.object({ visits: z.number().default(0) }),
});
const model = "openai:gpt-5";

describe("the guard leaves the agent's own types as they are", () => {
  test("state of the agent's and of other middlewares", () => {
    const stateSchema = new StateSchema({ project: z.string() });
    const withGuard = createAgent({
      model,
      tools: [readFile],
      stateSchema,
      middleware: [counting, guard] as const,
    });
    const without = createAgent({ model, tools: [readFile], stateSchema, middleware: [counting] as const });
    type State = Awaited<ReturnType<typeof withGuard.invoke>>;
    expectTypeOf<State["project"]>().toBeString();
    expectTypeOf<State["visits"]>().toBeNumber();
    expectTypeOf<State["messages"]>().not.toBeAny();
    expectTypeOf<Parameters<typeof withGuard.invoke>[0]>().toEqualTypeOf<
      Parameters<typeof without.invoke>[0]
    >();
    expectTypeOf<State>().toEqualTypeOf<Awaited<ReturnType<typeof without.invoke>>>();
    // @ts-expect-error -- the private channel is no part of the state
    expectTypeOf<State["_autoMode"]>().toBeAny();
    // @ts-expect-error -- a text in the place of the agent's own field is still wrong
    void (() => withGuard.invoke({ messages: [], project: 3 }));
  });

  test("an agent without state of its own", () => {
    const agent = createAgent({
      model,
      tools: [readFile],
      middleware: [guard],
      checkpointer: new MemorySaver(),
    });
    type State = Awaited<ReturnType<typeof agent.invoke>>;
    expectTypeOf<State>().not.toBeAny();
    expectTypeOf<State["messages"]>().not.toBeAny();
    void (() => agent.invoke({ messages: [{ role: "user", content: "go" }] }));
  });

  test("the structured response", () => {
    const responseFormat = toolStrategy(z.object({ answer: z.number() }));
    const agent = createAgent({ model, tools: [readFile], middleware: [guard], responseFormat });
    type State = Awaited<ReturnType<typeof agent.invoke>>;
    expectTypeOf<State["structuredResponse"]>().toEqualTypeOf<{ answer: number }>();
  });

  test("the context that a run is given", () => {
    const contextSchema = z.object({ tenant: z.string() });
    const agent = createAgent({ model, tools: [readFile], middleware: [guard], contextSchema });
    assertType(() => agent.invoke({ messages: [] }, { context: { tenant: "a" } }));
    // @ts-expect-error -- of the wrong type
    assertType(() => agent.invoke({ messages: [] }, { context: { tenant: 3 } }));
  });
});

test("what is read of the guard's own state is typed", () => {
  const agent = createAgent({ model, tools: [readFile], middleware: [guard] });
  const read = async () => autoModeState(await agent.graph.getState({}));
  expectTypeOf(read).returns.resolves.toEqualTypeOf<AutoModeState>();
  expectTypeOf<AutoModeState["totalBlocks"]>().toBeNumber();
});

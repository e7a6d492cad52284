import type { ClassifierRequest, ClassifierResponse } from "@langchain/core/decisions";
import { RunnableLambda } from "@langchain/core/runnables";
import { DynamicStructuredTool, DynamicTool, StructuredTool } from "@langchain/core/tools";
import { tool } from "langchain";
import {
  type AutoModeOptions,
  type Classifier,
  type DecisionDetails,
  type DecisionRecord,
  type Outcome,
  type PrecheckCall,
  autoModeMiddleware,
  haltRun,
} from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { assertType, describe, expectTypeOf, test } from "vitest";
import { z } from "zod";

class OwnTool extends StructuredTool {
  override name = "own";
  override description = "d";
  override schema = z.object({ path: z.string() });
  protected async _call({ path }: z.infer<typeof this.schema>): Promise<string> {
    return path;
  }
}
const schema = z.object({ path: z.string(), depth: z.number().default(1) });
const jsonSchema = { type: "object" as const, properties: { path: { type: "string" as const } } };
const classifier = fakeDecisionModel();

describe("tools are taken without casts", () => {
  test("objects of every kind, names, and either with settings", () => {
    const structured = tool(({ path }) => path, { name: "a", description: "d", schema });
    const dynamic = new DynamicStructuredTool({
      name: "f",
      description: "d",
      schema,
      func: async ({ path }) => path,
    });
    assertType<AutoModeOptions>({
      classifier,
      tools: [
        "by_name",
        structured,
        tool((text) => text, { name: "b", description: "d", schema: z.string() }),
        tool(() => "x", { name: "c", description: "d", schema: jsonSchema }),
        tool(() => ["x", { rows: 1 }], {
          name: "d",
          description: "d",
          schema,
          responseFormat: "content_and_artifact",
        }),
        new OwnTool(),
        new DynamicTool({ name: "e", description: "d", func: async (text) => text }),
        dynamic,
        RunnableLambda.from(({ path }: { path: string }) => path).asTool({
          name: "g",
          schema: z.object({ path: z.string() }),
        }),
        { tool: "h", threshold: 0.2, criteria: null, instructions: "Is it?" },
        { tool: structured, criteria: { true: { examples: ["rm"] } } },
      ],
    });
  });

  test("a list that cannot be changed, too", () => {
    const tools = ["a", "b"] as const;
    assertType(autoModeMiddleware({ tools, classifier }));
  });
});

describe("classifiers are taken without casts", () => {
  test("decision models, bindings of them, and any Runnable with their request and response", () => {
    const runnable = RunnableLambda.from(async (_request: ClassifierRequest): Promise<ClassifierResponse> => {
      throw new Error("not implemented");
    });
    for (const given of [classifier, classifier.withRetry(), runnable]) assertType<Classifier>(given);
  });
});

describe("wrong options are compile errors", () => {
  const good = { tools: ["a"], classifier };

  test("what is required", () => {
    // @ts-expect-error -- no options
    assertType(autoModeMiddleware());
    // @ts-expect-error -- no tools
    assertType(autoModeMiddleware({ classifier }));
    // @ts-expect-error -- no classifier
    assertType(autoModeMiddleware({ tools: ["a"] }));
  });

  test("names of options", () => {
    // @ts-expect-error -- a wrong name
    assertType(autoModeMiddleware({ ...good, treshold: 0.5 }));
    // @ts-expect-error -- a wrong name inside
    assertType(autoModeMiddleware({ ...good, limits: { blocks: 3 } }));
    // @ts-expect-error -- a wrong name inside
    assertType(autoModeMiddleware({ ...good, view: { newest: 3 } }));
    // @ts-expect-error -- a wrong name for one tool
    assertType(autoModeMiddleware({ ...good, tools: [{ tool: "a", limits: {} }] }));
  });

  test("types of options", () => {
    // @ts-expect-error -- not a list
    assertType(autoModeMiddleware({ ...good, tools: "a" }));
    // @ts-expect-error -- not a tool
    assertType(autoModeMiddleware({ ...good, tools: [{ name: "a" }] }));
    // @ts-expect-error -- a model's name
    assertType(autoModeMiddleware({ ...good, classifier: "openai:gpt" }));
    // @ts-expect-error -- a text for a number
    assertType(autoModeMiddleware({ ...good, threshold: "0.5" }));
    // @ts-expect-error -- other keys than true and false
    assertType(autoModeMiddleware({ ...good, criteria: { yes: "a" } }));
    // @ts-expect-error -- not one of the words
    assertType(autoModeMiddleware({ ...good, onUnavailable: "allow" }));
    // @ts-expect-error -- not one of the words
    assertType(autoModeMiddleware({ ...good, mode: "warn" }));
    // @ts-expect-error -- not one of the words
    assertType(autoModeMiddleware({ ...good, siblings: "all" }));
    // @ts-expect-error -- not one of the words
    assertType(autoModeMiddleware({ ...good, author: "system" }));
    // @ts-expect-error -- a word in place of what haltRun() makes
    assertType(autoModeMiddleware({ ...good, whenLimitReached: "halt" }));
    // @ts-expect-error -- the function itself
    assertType(autoModeMiddleware({ ...good, whenLimitReached: haltRun }));
    // @ts-expect-error -- not one of the channels
    assertType(autoModeMiddleware({ ...good, view: { channels: ["everything"] } }));
    // @ts-expect-error -- not JSON
    assertType(autoModeMiddleware({ ...good, environment: { deny: new Map() } }));
    // @ts-expect-error -- another answer than the three
    assertType(autoModeMiddleware({ ...good, precheck: () => "yes" }));
    // @ts-expect-error -- a boolean is no answer
    assertType(autoModeMiddleware({ ...good, precheck: async () => true }));
  });
});

describe("callbacks have the types of what they get", () => {
  test("nothing of it is any", () => {
    const options = {} as Required<AutoModeOptions>;
    expectTypeOf(options.onDecision).parameter(0).toEqualTypeOf<DecisionRecord>();
    expectTypeOf(options.onDecision).parameter(1).toEqualTypeOf<DecisionDetails>();
    expectTypeOf(options.precheck).parameter(0).toEqualTypeOf<PrecheckCall>();
    expectTypeOf<PrecheckCall["args"]>().not.toBeAny();
    expectTypeOf<Parameters<typeof options.precheck>[1]["state"]["messages"]>().not.toBeAny();
    expectTypeOf<Parameters<typeof options.precheck>[1]["runtime"]>().not.toBeAny();
    expectTypeOf<DecisionRecord["outcome"]>().toEqualTypeOf<Outcome>();
    expectTypeOf<DecisionRecord["risk"]>().toEqualTypeOf<number | undefined>();
    expectTypeOf<keyof DecisionRecord>().not.toBeAny();
  });
});

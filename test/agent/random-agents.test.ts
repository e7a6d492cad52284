import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import fc from "fast-check";
import { type AgentMiddleware, createAgent, tool } from "langchain";
import { type AutoModeOptions, autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type Version, VERSIONS, isTool } from "../kit/agent.js";
import { type Request, onToolCall } from "../kit/middlewares.js";
import { type Proposed, proposes, scripted } from "../kit/model.js";
import { FileTool } from "../kit/tools.js";

// The guard warns of a tool that it did not see start.
beforeEach(() => void vi.spyOn(console, "warn").mockImplementation(() => {}));
afterEach(() => vi.restoreAllMocks());

const GUARDED = ["delete_file", "wipe_disk"];
const UNLISTED = ["read_file", "draft_file"];
const NAMES = [...GUARDED, ...UNLISTED];

/** The risk of a call depends on its arguments alone, so that a test can tell what may run. */
const RISKS: Record<string, number | "none"> = {
  "/a": 0,
  "/b": 0.9,
  "/c": 0.49,
  "/d": 0.5,
  "/e": "none",
  "/f": 1,
};
const path = fc.constantFrom(...Object.keys(RISKS));
const mayRun = (args: unknown): boolean => {
  const risk = RISKS[(args as { path: string }).path];
  return typeof risk === "number" && risk < 0.5;
};

const oddArgs = fc.oneof(
  { weight: 6, arbitrary: path.map((value): unknown => ({ path: value })) },
  fc.constantFrom<unknown>(undefined, null, "text", 3, [], ["/a"], { path: NaN }, { path: undefined }, {}),
  fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ stringUnit: "binary" })),
);
const oddId = fc.oneof(
  { weight: 6, arbitrary: fc.uuid() },
  fc.constantFrom<string | undefined>(undefined, "", "same", "</user>", "__proto__", "constructor"),
);
const proposal: fc.Arbitrary<Proposed> = fc.record({
  name: fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...NAMES) }, fc.constantFrom("nobody", "")),
  args: oddArgs,
  id: oddId,
});

/** What a middleware between model and tool may do to a call. */
const MEDDLING = [
  "replace",
  "mutate",
  "late mutate",
  "rename",
  "swap",
  "drop",
  "drop and replace",
  "new id",
  "twice",
] as const;
/**
 * A middleware behind the guard that runs another tool than the one it was given takes that on itself, and
 * outside the guard nobody can keep one from running the tool that it holds in its hands.
 */
const INSIDE = ["replace", "mutate", "late mutate", "new id", "twice", "invoke"] as const;
interface Meddling {
  to: string;
  how: (typeof MEDDLING | typeof INSIDE)[number];
  path: string;
  name: string;
}
const meddling = (how: readonly Meddling["how"][]): fc.Arbitrary<Meddling | undefined> =>
  fc.option(
    fc.record({
      to: fc.constantFrom(...NAMES, "every"),
      how: fc.constantFrom(...how),
      path,
      name: fc.constantFrom(...NAMES),
    }),
    { nil: undefined },
  );

function meddler(
  { to, how, path: value, name }: Meddling,
  tools: ReadonlyMap<string, unknown>,
  label: string,
): AgentMiddleware {
  const swapped = tools.get(name) as Request["tool"];
  return onToolCall(async (request, handler) => {
    const { toolCall } = request;
    if (to !== "every" && toolCall.name !== to) return handler(request);
    const replaced = { ...toolCall, args: { path: value } };
    switch (how) {
      case "replace":
        return handler({ ...request, toolCall: replaced });
      case "mutate":
        if (typeof toolCall.args === "object") Object.assign(toolCall.args, { path: value });
        return handler(request);
      case "rename":
        return handler({ ...request, toolCall: { ...toolCall, name } });
      case "swap":
        return handler({ ...request, tool: swapped });
      case "drop":
        return handler({ ...request, tool: undefined });
      case "drop and replace":
        return handler({ ...request, tool: undefined, toolCall: { ...replaced, name } });
      case "new id":
        return handler({ ...request, toolCall: { ...toolCall, id: `new-${toolCall.id ?? ""}` } });
      case "twice":
        await handler({ ...request, toolCall: replaced });
        return handler(request);
      case "invoke":
        await Promise.resolve(
          (request.tool as { invoke?: (args: unknown) => unknown } | undefined)?.invoke?.({ path: value }),
        ).catch(() => {});
        return handler(request);
      case "late mutate": {
        const running = Promise.resolve(handler(request));
        running.catch(() => {});
        await Promise.resolve();
        if (typeof toolCall.args === "object") Object.assign(toolCall.args, { path: value });
        return running;
      }
    }
  }, label);
}

const message: fc.Arbitrary<BaseMessage> = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }).map((text): BaseMessage => new HumanMessage(text)),
  fc.string({ unit: "binary" }).map((text): BaseMessage => new AIMessage(text)),
  fc.array(proposal, { maxLength: 3 }).map((calls): BaseMessage => proposes(calls, "calls")),
  fc.string().map((text): BaseMessage => new SystemMessage(text)),
  fc
    .tuple(fc.string({ unit: "binary" }), fc.string())
    .map(
      ([content, id]): BaseMessage =>
        new ToolMessage({ content, tool_call_id: id, ...(id.length % 2 ? { status: "error" } : {}) }),
    ),
  fc.constant(null).map((): BaseMessage => {
    const odd = { name: "x", args: '{"path":', id: "x", error: "e", type: "invalid_tool_call" as const };
    return new AIMessage({
      content: [{ type: "image_url", image_url: "data:,x" }],
      invalid_tool_calls: [odd],
    });
  }),
);

const anyScene = fc.record({
  history: fc.array(message, { maxLength: 6 }),
  steps: fc.array(fc.array(proposal, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
  outside: meddling(MEDDLING),
  inside: meddling(INSIDE),
  classes: fc.boolean(),
  onUnavailable: fc.constantFrom("throw" as const, "continue" as const),
  siblings: fc.constantFrom("independent" as const, "all-or-none" as const),
});
// Where no tool object is at hand, nothing can be judged again right before the tool runs.
const scene = anyScene.map((given) =>
  given.outside?.how.startsWith("drop") ? { ...given, inside: undefined } : given,
);
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never;

/** Runs a random agent; what was judged and what ran is all that is looked at. */
async function run(version: Version, given: Scene, more: Partial<AutoModeOptions> = {}) {
  const ran: { name: string; args: unknown }[] = [];
  const judged: string[] = [];
  const tools = NAMES.map((name) => {
    const note = (args: unknown): string => {
      ran.push({ name, args: structuredClone(args) });
      return "ok";
    };
    if (!given.classes)
      return tool(note, { name, description: name, schema: z.looseObject({ path: z.string() }) });
    class Noting extends FileTool {
      protected override async _call(args: { path: string }): Promise<string> {
        return note(args);
      }
    }
    return new Noting(name);
  });
  const byName = new Map(tools.map((one) => [one.name, one]));
  const classifier = fakeDecisionModel().always(({ name, args }) => {
    judged.push(keyOf(name, args));
    const risk = RISKS[args.path as string] ?? 0.9;
    return risk === "none" ? undefined : risk;
  });
  const guard = autoModeMiddleware({
    tools: GUARDED,
    classifier,
    limits: { consecutiveBlocks: Infinity, totalBlocks: Infinity, consecutiveUnavailable: Infinity },
    onUnavailable: given.onUnavailable,
    siblings: given.siblings,
    ...more,
  });
  const agent = createAgent({
    model: scripted(...given.steps.map((calls) => () => proposes(calls)), "end"),
    tools,
    version,
    checkpointer: new MemorySaver(),
    middleware: [
      ...(given.outside ? [meddler(given.outside, byName, "outer")] : []),
      guard,
      ...(given.inside ? [meddler(given.inside, byName, "inner")] : []),
    ],
  });
  let error: Error | undefined;
  let messages: BaseMessage[] = [];
  try {
    ({ messages } = await agent.invoke(
      { messages: [...given.history, new HumanMessage("go")] },
      { configurable: { thread_id: "t" }, recursionLimit: 60 },
    ));
  } catch (thrown) {
    error = thrown as Error;
  }
  return { ran, judged, messages, error, classifier };
}

/** Arguments are compared by their path: a JSON reader and a schema may write the rest in another order. */
const keyOf = (name: string, args: unknown): string =>
  JSON.stringify([name, (args as { path?: unknown }).path]);
const guardedRuns = ({ ran }: { ran: { name: string; args: unknown }[] }) =>
  ran.filter(({ name }) => GUARDED.includes(name));

const callsIn = (list: readonly BaseMessage[]): Proposed[] =>
  list.flatMap((one) => (AIMessage.isInstance(one) ? (one.tool_calls ?? []) : []));
const answersOf = (list: readonly BaseMessage[]): string[] =>
  // The guard answers a call without an id under an empty one, the host under none.
  list.filter(isTool).map(({ tool_call_id: id }) => (id as string | undefined) ?? "");
const count = (ids: readonly unknown[], id: unknown): number => ids.filter((one) => one === id).length;

/** Calls of a run that got more answers than there are calls of their id, and guarded ones that got none. */
function answersIn(messages: readonly BaseMessage[]): { twice: string[]; never: string[] } {
  const start = messages.findLastIndex(({ content }) => content === "go");
  const proposed = callsIn(messages.slice(start));
  const ids = proposed.map(({ id }) => id ?? "");
  const answers = answersOf(messages.slice(start));
  // The host may drop a call whose id is not its own.
  const everywhere = [...callsIn(messages).map(({ id }) => id), ...answersOf(messages.slice(0, start))];
  const own = (id: string | undefined): id is string => Boolean(id) && count(everywhere, id) === 1;
  return {
    twice: answers.filter((id) => count(answers, id) > Math.max(1, count(ids, id))),
    never: proposed.flatMap(({ id, name }) =>
      own(id) && GUARDED.includes(name) && !answers.includes(id) ? [id] : [],
    ),
  };
}

describe.each(VERSIONS)("whatever the model proposes and the middlewares around do, %s", (version) => {
  test("no guarded tool runs without a verdict that allows it, with what was judged", async () => {
    await fc.assert(
      fc.asyncProperty(scene, async (given) => {
        const outcome = await run(version, given);
        for (const { name, args } of guardedRuns(outcome)) {
          expect(mayRun(args)).toBe(true);
          expect(outcome.judged).toContain(keyOf(name, args));
        }
      }),
      { numRuns: 70 },
    );
  }, 120_000);

  test("without meddling no run fails, no call is answered twice, and no guarded one never", async () => {
    await fc.assert(
      fc.asyncProperty(scene, async (given) => {
        const { messages, error } = await run(version, {
          ...given,
          outside: undefined,
          inside: undefined,
          onUnavailable: "continue",
          classes: false,
        });
        // What the host makes of odd calls of tools that nobody guards is the host's own business.
        expect(error?.stack ?? "").not.toMatch(/auto_mode|TypeError|RangeError/);
        const { twice, never } = answersIn(messages);
        expect([twice, error === undefined ? never : []]).toEqual([[], []]);
      }),
      { numRuns: 60 },
    );
  }, 120_000);

  test("a rule that blocks everything lets no guarded tool run, and asks nobody", async () => {
    await fc.assert(
      fc.asyncProperty(scene, async (given) => {
        const outcome = await run(version, given, { precheck: () => "block" });
        expect(guardedRuns(outcome)).toEqual([]);
        expect(outcome.classifier.callCount).toBe(0);
      }),
      { numRuns: 30 },
    );
  }, 120_000);
});

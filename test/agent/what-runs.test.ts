import type { ClassifierRequest } from "@langchain/core/decisions";
import { DynamicTool } from "@langchain/core/tools";
import { type ToolCallRequest, tool } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { VERSIONS, answerTo, causes, play, rejection, stage } from "../kit/agent.js";
import { answerFrom, onToolCall, replacingArgs } from "../kit/middlewares.js";
import { call, del, draft, read } from "../kit/model.js";
import { FileTool, toolBox } from "../kit/tools.js";

/** Finds everything under /prod risky and the rest harmless. */
const byPath = () =>
  fakeDecisionModel().always(({ args }) => (JSON.stringify(args).includes("/prod") ? 0.9 : 0.1));

const withArgs = (request: ToolCallRequest, args: Record<string, unknown>, more: object = {}) => ({
  ...request,
  ...more,
  toolCall: { ...request.toolCall, args },
});

type FileBox = ReturnType<typeof toolBox>["deleteFile"];

// Most of these scenes go around the proxied tool, of which the guard warns.
vi.spyOn(console, "warn").mockImplementation(() => {});

describe.each(VERSIONS)("what runs is what was judged, %s", (version) => {
  describe.each(["outside", "inside"] as const)("a middleware %s the guard", (where) => {
    test("that replaces the arguments by risky ones: the tool is never called", async () => {
      const classifier = byPath();
      const { box, messages } = await play({
        version,
        turns: [del("/tmp", "a")],
        classifier,
        [where]: [replacingArgs({ path: "/prod" })],
      });
      expect(box.ran).toEqual([]);
      expect(answerTo(messages, "a").status).toBe("error");
      expect(classifier.judged.map(({ args }) => args)).toContainEqual({ path: "/prod" });
    });

    test("that replaces the arguments by harmless ones: those run, and were judged", async () => {
      const classifier = byPath();
      const { box, messages } = await play({
        version,
        turns: [del("/tmp", "a")],
        classifier,
        [where]: [replacingArgs({ path: "/other" })],
      });
      expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/other" } }]);
      expect(answerTo(messages, "a").status).toBe("success");
      expect(classifier.judged.map(({ args }) => args)).toContainEqual({ path: "/other" });
    });

    test("that mutates the arguments in place, nested ones too: never run unjudged", async () => {
      const ran: string[] = [];
      const nested = tool(
        ({ target }) => {
          ran.push(target.path);
          return "ok";
        },
        {
          name: "delete_file",
          description: "Deletes.",
          schema: z.object({ target: z.object({ path: z.string() }) }),
        },
      );
      const mutate = onToolCall((request, handler) => {
        (request.toolCall.args as { target: { path: string } }).target.path = "/prod";
        return handler(request);
      });
      await play({
        version,
        turns: [call("delete_file", { target: { path: "/tmp" } })],
        classifier: byPath(),
        tools: [nested],
        [where]: [mutate],
      });
      expect(ran).toEqual([]);
    });

    test("that drops the tool object and changes nothing: the judged call runs once, asked once", async () => {
      const classifier = byPath();
      const { box } = await play({
        version,
        turns: [del("/tmp")],
        classifier,
        [where]: [onToolCall((request, handler) => handler({ ...request, tool: undefined }))],
      });
      expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/tmp" } }]);
      expect(classifier.callCount).toBe(1);
    });
  });

  describe("a middleware outside the guard that runs another tool: it is judged as what it has become", () => {
    test("an unlisted call that becomes a guarded one by its name", async () => {
      const { box, messages } = await play({
        version,
        turns: [draft("/tmp", "a")],
        classifier: byPath(),
        outside: [
          onToolCall((request, handler) =>
            handler({
              ...request,
              tool: undefined,
              toolCall: { ...request.toolCall, name: "delete_file", args: { path: "/prod" } },
            }),
          ),
        ],
      });
      expect(box.ran).toEqual([]);
      expect(answerTo(messages, "a").status).toBe("error");
    });

    test("an unlisted call that becomes a guarded one by its tool object", async () => {
      const box = toolBox();
      const { messages } = await play({
        version,
        box,
        turns: [draft("/prod", "a")],
        classifier: byPath(),
        outside: [onToolCall((request, handler) => handler({ ...request, tool: box.deleteFile }))],
      });
      expect(box.ran).toEqual([]);
      expect(answerTo(messages, "a").status).toBe("error");
    });

    test("a guarded call that becomes another guarded one", async () => {
      const box = toolBox();
      const classifier = fakeDecisionModel().forTool("delete_file", 0.9).always(0);
      await play({
        version,
        box,
        turns: [read("/tmp", "a")],
        classifier,
        options: { tools: ["delete_file", "read_file"] },
        outside: [onToolCall((request, handler) => handler({ ...request, tool: box.deleteFile }))],
      });
      expect(box.ran).toEqual([]);
      expect(classifier.judged).toContainEqual(expect.objectContaining({ name: "delete_file" }));
    });
  });

  describe("a middleware inside the guard that runs another tool than the one it was given", () => {
    test("takes that on itself: the record says that the judged tool was not seen to start", async () => {
      const box = toolBox();
      const { records } = await play({
        version,
        box,
        turns: [del("/tmp")],
        inside: [onToolCall((request, handler) => handler({ ...request, tool: box.draftFile }))],
      });
      expect(box.ran).toEqual([{ name: "draft_file", args: { path: "/tmp" } }]);
      expect(records.map(({ executed }) => executed)).toEqual(["not seen"]);
    });

    test("one warning for each middleware instance says to put auto mode last, without content", async () => {
      const warn = vi.mocked(console.warn);
      warn.mockClear();
      await play({
        version,
        turns: [[del("/secret-a"), del("/secret-b")], del("/secret-c"), "end"],
        inside: [onToolCall((request, handler) => handler({ ...request, tool: undefined }))],
      });
      const texts = warn.mock.calls.map(([text]) => String(text));
      expect(texts).toHaveLength(1);
      expect(texts[0]).toContain("Put auto mode last");
      expect(texts[0]).not.toContain("secret");
    });
  });

  test("a guarded name that belongs to no tool gives no warning: there was nothing to start", async () => {
    const warn = vi.mocked(console.warn);
    warn.mockClear();
    await play({
      version,
      turns: [call("mcp__nope", {}), "end"],
      options: { tools: ["mcp__*"], onUnknownTool: "ignore" },
    });
    expect(warn).not.toHaveBeenCalled();
  });

  describe("a middleware inside the guard", () => {
    test("that lets the model retry what was refused: the refusal is the answer, until a call is allowed", async () => {
      const classifier = byPath();
      const { box, messages, records } = await play({
        version,
        turns: [del("/tmp", "a")],
        classifier,
        inside: [
          onToolCall(async (request, handler) => {
            await handler(withArgs(request, { path: "/prod" }));
            return handler(request);
          }),
        ],
      });
      expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/tmp" } }]);
      expect(answerTo(messages, "a").status).toBe("success");
      expect(records.map(({ outcome, executed }) => [outcome, executed])).toEqual([
        ["blocked", "judged again"],
        ["allowed", "as judged"],
      ]);
    });

    test("that makes a result of the refusal: the agent still gets the refusal", async () => {
      const { messages } = await play({
        version,
        turns: [del("/tmp", "a")],
        classifier: byPath(),
        inside: [
          onToolCall(async (request, handler) => {
            const refused = await handler(withArgs(request, { path: "/prod" }));
            return Object.assign(Object.create(Object.getPrototypeOf(refused) as object), refused, {
              content: "all went well",
              status: "success",
            }) as typeof refused;
          }),
        ],
      });
      expect(answerTo(messages, "a")).toMatchObject({ status: "error" });
      expect(answerTo(messages, "a").text).not.toContain("all went well");
    });

    test("that runs the judged call several times: judged once, counted and recorded once", async () => {
      const classifier = byPath();
      const { box, records } = await play({
        version,
        turns: [del("/tmp")],
        classifier,
        inside: [
          onToolCall(async (request, handler) => {
            await Promise.all([handler(request), handler(request)]);
            return handler(request);
          }),
        ],
      });
      expect(box.ran).toHaveLength(3);
      expect(classifier.callCount).toBe(1);
      expect(records).toHaveLength(1);
    });

    test("that changes the call into the same again after a refusal: it stays refused, and is asked about once", async () => {
      const { records } = await play({
        version,
        turns: [del("/tmp")],
        classifier: fakeDecisionModel().respond(0).respond(0.9).always(0),
        inside: [
          onToolCall(async (request, handler) => {
            await handler(withArgs(request, { path: "/other" }));
            await handler(withArgs(request, { path: "/other" }));
            return handler(withArgs(request, { path: "/other" }));
          }),
        ],
      });
      expect(records.map(({ outcome }) => outcome)).toEqual(["blocked"]);
    });

    test("that answers in the tool's place: recorded as allowed and not seen", async () => {
      const { box, records } = await play({
        version,
        turns: [del("/tmp", "a")],
        classifier: byPath(),
        inside: [onToolCall((request) => answerFrom(request, "cached"))],
      });
      expect(box.ran).toEqual([]);
      expect(records.map(({ outcome, executed }) => [outcome, executed])).toEqual([["allowed", "not seen"]]);
    });

    test("that throws before the tool starts: its error passes, recorded as allowed and not seen", async () => {
      const scene = stage({
        version,
        turns: [del("/tmp", "a")],
        classifier: byPath(),
        inside: [
          onToolCall(() => {
            throw new Error("no disk");
          }),
        ],
      });
      expect(causes(await rejection(scene.invoke())).some((error) => String(error).includes("no disk"))).toBe(
        true,
      );
      expect(scene.records.map(({ outcome, executed }) => [outcome, executed])).toEqual([
        ["allowed", "not seen"],
      ]);
    });

    test.each([
      ["its plain arguments", (args: object) => ({ path: "/prod", args })],
      ["a text", () => "/prod"],
      ["nothing", () => undefined],
      ["null", () => null],
    ])("that invokes the tool itself with %s instead of a call: never run unjudged", async (_what, input) => {
      const { box } = await play({
        version,
        turns: [del("/tmp")],
        classifier: byPath(),
        inside: [
          onToolCall(async (request, handler) => {
            const { invoke } = request.tool as unknown as {
              invoke: (...args: unknown[]) => Promise<unknown>;
            };
            await invoke(input(request.toolCall.args), { callbacks: [] }).catch(() => {});
            return handler(request);
          }),
        ],
      });
      expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/tmp" } }]);
    });

    test.each<[string, (box: FileBox) => unknown]>([
      ["retries", (box) => box.withRetry()],
      ["a configuration", (box) => box.withConfig({ tags: ["mine"] })],
      ["fallbacks", (box) => box.withFallbacks([box])],
      ["a pipe", (box) => box.pipe((output: unknown) => output)],
    ])("that wraps the tool object in %s: what it starts is judged", async (_what, wrap) => {
      const wrapping = (args: Record<string, unknown>) =>
        onToolCall((request, handler) =>
          handler(withArgs(request, args, { tool: wrap(request.tool as unknown as FileBox) })),
        );
      const risky = await play({
        version,
        turns: [del("/tmp", "a")],
        classifier: byPath(),
        inside: [wrapping({ path: "/prod" })],
      });
      expect(risky.box.ran).toEqual([]);
      expect(answerTo(risky.messages, "a").status).toBe("error");
      const classifier = byPath();
      const same = await play({
        version,
        turns: [del("/tmp")],
        classifier,
        inside: [wrapping({ path: "/tmp" })],
      });
      expect(same.box.ran).toHaveLength(1);
      expect(classifier.callCount).toBe(1);
    });

    test.each(["invoke", "call"] as const)(
      "that starts the tool itself by %s with bare arguments: the judged ones run, others are judged",
      async (start) => {
        const classifier = byPath();
        const { box } = await play({
          version,
          turns: [del("/tmp", "a")],
          classifier,
          inside: [
            onToolCall(async (request) => {
              const started = request.tool as unknown as Record<string, (args: object) => Promise<unknown>>;
              await started[start]?.({ path: "/prod" });
              await started[start]?.({ path: "/tmp" });
              return answerFrom(request, "both tried");
            }),
          ],
        });
        expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/tmp" } }]);
        expect(classifier.callCount).toBe(2);
      },
    );

    test("that brings an unlisted tool of its own: it runs unjudged", async () => {
      const classifier = fakeDecisionModel().always(1);
      const own = new DynamicTool({ name: "own", description: "d", func: async () => "own result" });
      const { messages } = await play({
        version,
        turns: [call("own", { input: "x" }, "a")],
        classifier,
        inside: [onToolCall((request, handler) => handler({ ...request, tool: own }))],
      });
      expect(answerTo(messages, "a").text).toBe("own result");
      expect(classifier.callCount).toBe(0);
    });

    test("that brings a tool for a guarded name without one: the call is judged before", async () => {
      const own = new FileTool("wipe_disk");
      const dynamic = onToolCall((request, handler) => handler({ ...request, tool: own }));
      const options = { tools: ["wipe_disk"], onUnknownTool: "ignore" as const };
      const turns = [call("wipe_disk", { path: "/" }, "a")];
      const blocked = await play({ version, turns, classifier: 0.9, options, inside: [dynamic] });
      expect(answerTo(blocked.messages, "a").status).toBe("error");
      expect(own.ran).toEqual([]);
      const allowed = await play({ version, turns, options, inside: [dynamic] });
      expect(answerTo(allowed.messages, "a").status).toBe("success");
      expect(own.ran).toEqual(["/"]);
    });
  });

  describe("tools written as classes, which start without their names", () => {
    test("two of one class: an unlisted one runs unjudged", async () => {
      const [harmless, guarded] = [new FileTool("draft_file"), new FileTool("delete_file")];
      const classifier = fakeDecisionModel().always(1);
      await play({ version, turns: [draft("/prod")], classifier, tools: [harmless, guarded] });
      expect(harmless.ran).toEqual(["/prod"]);
      expect(classifier.callCount).toBe(0);
    });

    test("whose class inherits its name from another: an unlisted one runs unjudged", async () => {
      class Named extends FileTool {
        static override lc_name(): string {
          return "Named";
        }
      }
      class Heir extends Named {}
      const heir = new Heir("draft_file");
      const classifier = fakeDecisionModel().always(1);
      await play({
        version,
        turns: [draft("/prod")],
        classifier,
        tools: [heir],
        options: { onUnknownTool: "ignore" },
      });
      expect(heir.ran).toEqual(["/prod"]);
      expect(classifier.callCount).toBe(0);
    });
  });

  test("what a tool starts in turn is the tool's own business", async () => {
    const box = toolBox();
    const tidy = tool(({ path }) => box.deleteFile.invoke({ path }), {
      name: "tidy",
      description: "Tidies.",
      schema: z.object({ path: z.string() }),
    });
    const classifier = fakeDecisionModel().always(1);
    await play({
      version,
      box,
      turns: [call("tidy", { path: "/prod" })],
      classifier,
      tools: [tidy, box.deleteFile],
    });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/prod" } }]);
    expect(classifier.callCount).toBe(0);
  });

  test("arguments that are mutated while the classifier is asked: what was judged runs", async () => {
    let held: ToolCallRequest["toolCall"] | undefined;
    const holder = onToolCall((request, handler) => {
      held = request.toolCall;
      return handler(request);
    });
    const classifier = fakeDecisionModel().respondWith(async () => {
      await Promise.resolve();
      (held as { args: Record<string, unknown> }).args.path = "/prod";
      return 0;
    });
    const { box } = await play({ version, turns: [del("/tmp")], classifier, outside: [holder] });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/tmp" } }]);
  });

  test("what classifier and rule are shown are copies: changing them changes nothing", async () => {
    const classifier = fakeDecisionModel();
    classifier._classify = async (given) => {
      const state = given as { tool_calls: { call_1: { args: Record<string, unknown> } } };
      state.tool_calls.call_1.args.path = "/prod";
      return { model: "m", answers: { call_1: { type: "noul", noul: 0 } } } as never;
    };
    const { box } = await play({
      version,
      turns: [del("/tmp")],
      classifier,
      options: {
        precheck: (proposed) => {
          proposed.args.path = "/prod";
          proposed.name = "read_file";
          return "classify";
        },
      },
    });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/tmp" } }]);
  });

  test("a classifier cannot change the rules by which later calls are judged", async () => {
    const questions: unknown[] = [];
    const classifier = {
      invoke: async (request: ClassifierRequest) => {
        questions.push(structuredClone(request.questions));
        const asked = request.questions.call_1 as unknown as {
          criteria: { true: string };
          instructions: { ask: string[] };
        };
        for (const change of [
          () => (asked.criteria.true = "changed"),
          () => asked.instructions.ask.push("changed"),
        ])
          try {
            change();
          } catch {
            // What is frozen stays as it is.
          }
        return { model: "m", answers: { call_1: { type: "noul", noul: 0.9 } } } as never;
      },
    };
    for (const options of [{}, { criteria: { true: "own" }, instructions: { ask: ["Is it?"] } }]) {
      questions.length = 0;
      const { messages } = await play({
        version,
        turns: [del("/a", "a"), del("/b", "b"), "end"],
        classifier,
        options,
      });
      expect(questions[1]).toEqual(questions[0]);
      expect(answerTo(messages, "b").text).not.toContain("changed");
    }
  });

  test("what an inner middleware does to the arguments reaches neither history nor records", async () => {
    const { messages, records } = await play({
      version,
      turns: [del("/tmp", "a")],
      classifier: byPath(),
      inside: [
        onToolCall((request, handler) => {
          request.toolCall.args.path = "/other";
          return handler(request);
        }),
      ],
    });
    const proposal = messages.find((message) => message.getType() === "ai") as unknown as {
      tool_calls: { args: unknown }[];
    };
    expect(proposal.tool_calls[0]?.args).toEqual({ path: "/tmp" });
    expect(records.map(({ executed }) => executed)).toEqual(["judged again"]);
  });
});

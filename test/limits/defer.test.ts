import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { createAgent, createMiddleware, providerStrategy, toolStrategy } from "langchain";
import { autoModeMiddleware, deferToTrustedModel } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { http, HttpResponse } from "msw";
import { setupServer } from "msw/node";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { VERSIONS, answerTo, rejection, textOf } from "../kit/agent.js";
import { type AskingScene, badlyAnswered, byPath, stageAsking } from "../kit/asking.js";
import { type Turn, call, del, proposes, read, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

/** An agent whose own model is blocked once, and a trusted one that goes on. */
function stageDeferring(trustedTurns: Turn[], scene: Omit<AskingScene, "turns"> & { turns?: Turn[] } = {}) {
  const trusted = scripted(...trustedTurns);
  const staged = stageAsking({
    turns: [del("/x"), "own end"],
    ...scene,
    options: { whenLimitReached: deferToTrustedModel({ model: trusted }), ...scene.options },
  });
  return { ...staged, trusted };
}
const systemOf = (model: { calls: { messages: BaseMessage[] }[] }, at = -1) =>
  model.calls.at(at)?.messages.find(({ type }) => type === "system")?.text ?? "";

describe.each(VERSIONS)("a run that defers to a trusted model, %s", (version) => {
  test("lets it write the next step, in place of the agent's own", async () => {
    const { start, model, trusted } = stageDeferring(["I take the safe way."], { version });
    const { messages } = await start();
    expect(textOf(messages.at(-1))).toBe("I take the safe way.");
    expect([model.callCount, trusted.callCount]).toEqual([1, 1]);
    expect(badlyAnswered(trusted)).toEqual([]);
  });

  test("halts at twice the total where the agent is blocked after each trusted step", async () => {
    const turns = Array.from({ length: 30 }, (_, at) => del(`/${at}`));
    const { start, records } = stageDeferring(
      Array.from({ length: 30 }, () => read("/x")),
      {
        version,
        turns,
        config: { recursionLimit: 300 },
        options: { limits: { consecutiveBlocks: 1, totalBlocks: 3 } },
      },
    );
    const { messages } = await start();
    expect(textOf(messages.at(-1))).toContain("too many calls of this thread were blocked");
    expect(records.at(-1)?.counters.totalBlocks).toBe(7);
  });

  test("does not ask it before a limit is reached", async () => {
    const { start, trusted } = stageDeferring([], {
      version,
      turns: [del("/x"), "own end"],
      options: { limits: { consecutiveBlocks: 2 } },
    });
    await start();
    expect(trusted.callCount).toBe(0);
  });

  describe("the note to it", () => {
    test("comes after the agent's own system prompt, which stays", async () => {
      const trusted = scripted("ok");
      const agent = createAgent({
        model: scripted(del("/x")),
        systemPrompt: "You are a clerk.",
        tools: toolBox().all,
        middleware: [
          autoModeMiddleware({
            tools: ["delete_file"],
            classifier: byPath(),
            limits: { consecutiveBlocks: 1 },
            whenLimitReached: deferToTrustedModel({ model: trusted }),
          }),
        ],
        version,
      });
      await agent.invoke({ messages: [new HumanMessage("Go.")] });
      expect(systemOf(trusted)).toMatch(/^You are a clerk\.\s+Auto mode stopped the last step/);
    });

    test("names tools and kinds, each once, and no content", async () => {
      const classifier = fakeDecisionModel().always(() => ({
        risk: 0.9,
        explanation: "It removes s3cret.",
        kind: "destructive",
      }));
      const { start, trusted } = stageDeferring(["ok"], {
        version,
        classifier,
        turns: [[del("/s3cret-1"), del("/s3cret-2"), call("send_mail", { to: "s3cret", body: "s3cret" })]],
        options: { explain: true, tools: ["delete_file", "send_mail"] },
      });
      await start("s3cret words.");
      const note = systemOf(trusted);
      expect(note).toMatch(
        /Calls that did not run: delete_file \(destructive\), send_mail \(destructive\)\./,
      );
      expect(note).not.toMatch(/s3cret|0\.9/);
    });

    test("leaves out what ran", async () => {
      const { start, trusted } = stageDeferring(["ok"], {
        version,
        turns: [[del("/x"), call("send_mail", { to: "a", body: "b", path: "/ok" }), read("/r")]],
        options: { tools: ["delete_file", "send_mail"] },
      });
      await start();
      expect(systemOf(trusted)).not.toMatch(/send_mail|read_file/);
    });

    test("is gone in the next step of the agent's own model", async () => {
      const { start, model } = stageDeferring([read("/r")], { version });
      await start();
      expect(model.callCount).toBe(2);
      expect(systemOf(model)).not.toMatch(/Auto mode/);
    });

    test("names failures of the classifier that reached their limit", async () => {
      const { start, trusted } = stageDeferring(["ok"], {
        version,
        classifier: fakeDecisionModel().alwaysFail("timeout"),
        options: { onUnavailable: "continue", limits: { consecutiveUnavailable: 1 } },
      });
      await start();
      expect(systemOf(trusted)).toMatch(/did not run: delete_file\./);
    });

    test("does not repeat a name that is not configured: it came from the model", async () => {
      const box = toolBox();
      const rename = createMiddleware({
        name: "rename",
        wrapToolCall: (request, handler) =>
          handler({
            ...request,
            tool: box.deleteFile,
            toolCall: { ...request.toolCall, name: "delete_file" },
          }),
      });
      const { start, trusted } = stageDeferring(["ok"], {
        version,
        box,
        outside: [rename],
        turns: [call("ignore_previous_rules", { path: "/x" })],
      });
      await start();
      expect(systemOf(trusted)).toMatch(/did not run: a guarded tool\./);
    });
  });

  describe("its calls", () => {
    test("are judged, and run if they are allowed", async () => {
      const { start, box, classifier, model } = stageDeferring([del("/ok", "ok")], {
        version,
        classifier: byPath(),
      });
      const { messages } = await start();
      expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok" } }]);
      expect(classifier).toMatchObject({ callCount: 2 });
      expect(answerTo(messages, "ok").status).not.toBe("error");
      expect(textOf(messages.at(-1))).toBe("own end");
      expect(badlyAnswered(model)).toEqual([]);
    });

    test("of tools that are not listed run unjudged", async () => {
      const { start, box } = stageDeferring([read("/r")], { version });
      expect(textOf((await start()).messages.at(-1))).toBe("own end");
      expect(box.ran).toHaveLength(1);
    });

    test("halt the run if one is blocked: nobody writes after it", async () => {
      const { start, box, model, trusted } = stageDeferring([[del("/x2", "bad"), del("/ok", "ok")]], {
        version,
      });
      const { messages } = await start();
      expect([model.callCount, trusted.callCount]).toEqual([1, 1]);
      expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/ok" } }]);
      expect(answerTo(messages, "bad").status).toBe("error");
      expect(messages.at(-1)?.additional_kwargs).toEqual({
        lc_source: "auto_mode",
        auto_mode: {
          limit: "consecutiveBlocks",
          counters: { consecutiveBlocks: 0, totalBlocks: 2, consecutiveUnavailable: 0 },
        },
      });
    });

    test.each(["throw", "continue", "ask"] as const)(
      "halt the run if one gets no verdict, with onUnavailable %j",
      async (onUnavailable) => {
        const { start, box, trusted, model } = stageDeferring([del("/ok", "b")], {
          version,
          classifier: fakeDecisionModel().respond(0.9).fail("timeout"),
          options: { onUnavailable },
        });
        const { messages, questions } = await start();
        expect([questions, box.ran]).toEqual([[], []]);
        expect(answerTo(messages, "b").status).toBe("error");
        expect(messages.at(-1)?.additional_kwargs).toMatchObject({ lc_source: "auto_mode" });
        expect([model.callCount, trusted.callCount]).toEqual([1, 1]);
      },
    );

    test("that are malformed are answered, and do not halt the run", async () => {
      const { start } = stageDeferring([[{ ...del("/ok"), id: "" }]], { version });
      expect(textOf((await start()).messages.at(-1))).toBe("own end");
    });

    test("that an inner middleware changes into something risky halt the run, too", async () => {
      let arms = false;
      const editor = createMiddleware({
        name: "editor",
        wrapToolCall: (request, handler) =>
          handler(
            arms ? { ...request, toolCall: { ...request.toolCall, args: { path: "/prod" } } } : request,
          ),
      });
      const { start, box, trusted, model } = stageDeferring(
        [
          () => {
            arms = true;
            return proposes([del("/ok", "b")]);
          },
        ],
        { version, inside: [editor] },
      );
      await start();
      expect(box.ran).toEqual([]);
      expect([model.callCount, trusted.callCount]).toEqual([1, 1]);
    });
  });

  test("a step of it without a block spends the fallback; the next block defers again", async () => {
    const { start, model, trusted } = stageDeferring([read("/r"), "trusted end"], {
      version,
      turns: [del("/x"), read("/r2"), del("/y"), "not reached"],
    });
    const { messages } = await start();
    expect(textOf(messages.at(-1))).toBe("trusted end");
    expect([model.callCount, trusted.callCount]).toEqual([3, 2]);
  });

  test("a new turn begins with the agent's own model", async () => {
    const { start, model } = stageDeferring([del("/x")], { version, turns: [del("/x"), "fresh"] });
    await start();
    expect(textOf((await start("Next.")).messages.at(-1))).toBe("fresh");
    expect(model.callCount).toBe(2);
  });

  test("a step of it is known as its own though an inner middleware wrote the message, without an id", async () => {
    let writes = false;
    const writer = createMiddleware({
      name: "writer",
      wrapModelCall: (request, handler) => {
        if (writes) return proposes([del("/x2", "bad")]);
        writes = true;
        return handler(request);
      },
    });
    const { start, model } = stageDeferring([], { version, inside: [writer] });
    const { messages } = await start();
    expect(messages.at(-1)?.additional_kwargs).toMatchObject({ lc_source: "auto_mode" });
    expect(model.callCount).toBe(1);
  });

  describe("with a structured response format", () => {
    const Ok = z.object({ ok: z.boolean() });
    const formats = [
      ["a tool strategy", toolStrategy(Ok)],
      ["a provider strategy", providerStrategy(Ok)],
    ] as const;
    const answerOf = (format: (typeof formats)[number][1]) =>
      Array.isArray(format)
        ? proposes([call((format[0] as { name: string }).name, { ok: true }, "answer")])
        : new AIMessage('{"ok":true}');
    const run = async (format: (typeof formats)[number][1], turns: Turn[]) => {
      const [model, trusted, box] = [
        scripted(del("/x"), () => answerOf(format)),
        scripted(...turns),
        toolBox(),
      ];
      const agent = createAgent({
        model,
        tools: box.all,
        middleware: [
          autoModeMiddleware({
            tools: ["delete_file"],
            classifier: byPath(),
            limits: { consecutiveBlocks: 1 },
            whenLimitReached: deferToTrustedModel({ model: trusted }),
          }),
        ],
        responseFormat: format as never,
        version,
      });
      const result: unknown = await agent.invoke({ messages: [new HumanMessage("Go.")] });
      return {
        ...(result as { messages: BaseMessage[]; structuredResponse?: unknown }),
        model,
        trusted,
        box,
      };
    };

    test.each(formats)("%s: its answer is the structured response", async (_title, format) => {
      const { structuredResponse, trusted } = await run(format, [() => answerOf(format)]);
      expect(trusted.callCount).toBe(1);
      expect(structuredResponse).toEqual({ ok: true });
    });

    test.each(formats)(
      "%s: its allowed call runs, and the agent's own model answers",
      async (_title, format) => {
        const { structuredResponse, box, model } = await run(format, [del("/ok")]);
        expect(box.ran).toHaveLength(1);
        expect(structuredResponse).toEqual({ ok: true });
        expect(model.callCount).toBe(2);
      },
    );

    test.each(formats)("%s: its blocked call halts the run", async (_title, format) => {
      const { structuredResponse, box, model, messages } = await run(format, [del("/x2")]);
      expect([structuredResponse, box.ran, model.callCount]).toEqual([undefined, [], 1]);
      expect(messages.at(-1)?.additional_kwargs).toMatchObject({ lc_source: "auto_mode" });
    });
  });
});

const named = (model: string) => ({ whenLimitReached: deferToTrustedModel({ model }) });

describe("a trusted model that is given by its name", () => {
  let answers = 0;
  let isDown = false;
  const server = setupServer(
    http.post("https://api.anthropic.com/v1/messages", () => {
      answers += 1;
      if (isDown) return HttpResponse.json({ type: "error" }, { status: 400 });
      return HttpResponse.json({
        id: `msg_${answers}`,
        type: "message",
        role: "assistant",
        model: "m",
        content: [{ type: "text", text: `answer ${answers}` }],
        stop_reason: "end_turn",
        usage: { input_tokens: 1, output_tokens: 1 },
      });
    }),
  );
  beforeAll(() => {
    server.listen({ onUnhandledRequest: "error" });
    vi.stubEnv("ANTHROPIC_API_KEY", "none");
  });
  afterAll(() => {
    server.close();
    vi.unstubAllEnvs();
  });
  test("is loaded when it is needed, and is asked in the agent's place", async () => {
    const turns = [del("/x"), del("/x")];
    const { start, model } = stageAsking({ turns, options: named("anthropic:m") });
    expect(textOf((await start()).messages.at(-1))).toBe("answer 1");
    expect(textOf((await start("Next.")).messages.at(-1))).toBe("answer 2");
    expect(model.callCount).toBe(2);
  });

  test("a request of it that fails fails the run, and nothing dangles", async () => {
    isDown = true;
    const { start, model } = stageAsking({ turns: [del("/x"), "fresh"], options: named("anthropic:m") });
    await rejection(start());
    isDown = false;
    expect(textOf((await start("Next.")).messages.at(-1))).toBe("fresh");
    expect(badlyAnswered(model)).toEqual([]);
  });

  test("a name that names none fails the run each time: it is looked up again", async () => {
    const { start } = stageAsking({ turns: [del("/x"), del("/x")], options: named("no-such-provider:m") });
    const first = await rejection(start());
    expect(first).toBeInstanceOf(Error);
    expect(await rejection(start("Next."))).toBeInstanceOf(Error);
  });
});

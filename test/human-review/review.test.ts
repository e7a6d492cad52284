import { getEventListeners } from "node:events";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, Send, interrupt } from "@langchain/langgraph";
import { tool } from "langchain";
import { ConfigurationError, askHuman, autoModeMiddleware, haltRun } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { VERSIONS, type Version, answerTo, rejection, textOf } from "../kit/agent.js";
import {
  answerCounts,
  approve,
  badlyAnswered,
  byPath,
  edit,
  questionOf,
  reject,
  stageAsking,
} from "../kit/asking.js";
import { replacingArgs } from "../kit/middlewares.js";
import { call, del, read } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const paths = (ran: readonly { args: unknown }[]) => ran.map(({ args }) => (args as { path: string }).path);
const asked = (standpoint: Parameters<typeof questionOf>[0]) =>
  questionOf(standpoint).actionRequests.map(({ args }) => args.path);

describe.each(VERSIONS)("a call that waits for a person, %s", (version) => {
  describe("the question", () => {
    test("has the shape of LangChain's human in the loop", async () => {
      const { start } = stageAsking({ version, turns: [[del("/x"), del("/y")]] });
      expect(questionOf(await start())).toEqual({
        actionRequests: ["/x", "/y"].map((path) => ({
          name: "delete_file",
          args: { path },
          description: expect.stringContaining("delete_file") as string,
        })),
        reviewConfigs: Array.from({ length: 2 }, () => ({
          actionName: "delete_file",
          allowedDecisions: ["approve", "edit", "reject"],
        })),
      });
    });

    test("carries the configured description and decisions", async () => {
      const whenLimitReached = askHuman({ description: "Please look.", allowedDecisions: ["reject"] });
      const { start } = stageAsking({ version, turns: [del("/x")], options: { whenLimitReached } });
      expect(questionOf(await start())).toMatchObject({
        actionRequests: [{ description: "Please look.\nRisk: 0.9 (blocked from 0.5 on)." }],
        reviewConfigs: [{ allowedDecisions: ["reject"] }],
      });
    });

    test("comes with the call that reaches the limit, not with a later one", async () => {
      const { start, model, box } = stageAsking({
        version,
        turns: [del("/x", "a"), del("/x", "b"), del("/x", "c")],
        options: { limits: { consecutiveBlocks: 3 } },
      });
      const paused = await start();
      expect(asked(paused)).toEqual(["/x"]);
      expect(model.callCount).toBe(3);
      expect(answerCounts(paused.messages)).toEqual({ a: 1, b: 1, c: 0 });
      expect(box.ran).toEqual([]);
    });

    test("is one for all waiting calls of a step; the others of the step have run", async () => {
      const { start, box } = stageAsking({
        version,
        turns: [[del("/ok"), del("/x"), read("/r"), del("/y")]],
      });
      expect(asked(await start())).toEqual(["/x", "/y"]);
      expect(paths(box.ran).toSorted()).toEqual(["/ok", "/r"]);
    });

    test("is not put where nothing was stopped", async () => {
      const { start } = stageAsking({ version, turns: [del("/ok", "a"), "end"] });
      const { questions, messages } = await start();
      expect([questions, textOf(messages.at(-1))]).toEqual([[], "end"]);
    });

    test("can be read from the state, without its interrupt", async () => {
      const { start, state } = stageAsking({ version, turns: [[del("/x", "a"), del("/ok")]] });
      await start();
      expect((await state()).waiting).toEqual([{ id: "a", name: "delete_file", args: { path: "/x" } }]);
    });

    test("is streamed, and the answer's run streams each result once", async () => {
      const { agent, config, model } = stageAsking({
        version,
        turns: [[read("/r", "r"), del("/x", "a")], "end"],
      });
      const stream = async (input: unknown) => {
        const chunks: object[] = [];
        for await (const chunk of await agent.stream(input as never, { ...config, streamMode: "updates" }))
          chunks.push(chunk as object);
        return chunks;
      };
      const before = await stream({ messages: [new HumanMessage("Go.")] });
      expect(before.filter((chunk) => "__interrupt__" in chunk)).toHaveLength(1);
      await stream(new Command({ resume: { decisions: [approve] } }));
      expect(badlyAnswered(model)).toEqual([]);
    });
  });

  describe("approved", () => {
    test("runs once, unjudged, and the run goes on", async () => {
      const { start, decide, box, classifier, model, records } = stageAsking({
        version,
        classifier: byPath(),
        turns: [del("/x", "a"), "end"],
      });
      await start();
      const { messages } = await decide(approve);
      expect(answerTo(messages, "a").status).not.toBe("error");
      expect(textOf(messages.at(-1))).toBe("end");
      expect(paths(box.ran)).toEqual(["/x"]);
      expect(classifier).toMatchObject({ callCount: 1 });
      expect(badlyAnswered(model)).toEqual([]);
      expect(records.map(({ outcome, by, executed }) => [outcome, by, executed])).toEqual([
        ["waiting", "classifier", undefined],
        ["approved", "human", "as judged"],
      ]);
    });

    test("counts as an allowed call: the count in a row starts again", async () => {
      const { start, decide, state, box } = stageAsking({
        version,
        turns: [del("/1"), del("/2"), del("/3"), "end"],
        options: { limits: { consecutiveBlocks: 2 } },
      });
      expect(asked(await start())).toEqual(["/2"]);
      const { questions, messages } = await decide(approve);
      expect([questions, textOf(messages.at(-1))]).toEqual([[], "end"]);
      expect(await state()).toMatchObject({ consecutiveBlocks: 1, totalBlocks: 2, limit: undefined });
      expect(paths(box.ran)).toEqual(["/2"]);
    });

    test("covers its own call alone: another target is judged afresh, and so is the same one again", async () => {
      const { start, decide, box, classifier } = stageAsking({
        version,
        classifier: byPath(),
        turns: [del("build"), del("data"), del("build"), "end"],
      });
      await start();
      expect(asked(await decide(approve))).toEqual(["data"]);
      expect(asked(await decide(reject("no")))).toEqual(["build"]);
      expect(paths(box.ran)).toEqual(["build"]);
      expect(classifier).toMatchObject({ callCount: 3 });
    });

    test("is not inherited by a later call with its id", async () => {
      const { start, decide, box } = stageAsking({
        version,
        turns: [del("/x", "call_0"), "one", del("/x", "call_0"), "two"],
      });
      await start();
      await decide(approve);
      await start("Again.");
      expect(paths(box.ran)).toEqual(["/x"]);
    });

    test("stays in its thread, though one middleware serves both and the ids are equal", async () => {
      const classifier = byPath();
      const guard = autoModeMiddleware({
        tools: ["delete_file"],
        classifier,
        limits: { consecutiveBlocks: 1 },
        whenLimitReached: askHuman(),
      });
      const scenes = [0, 1].map(() =>
        stageAsking({
          version,
          turns: [del("/x", "same"), "end"],
          outside: [guard],
          options: { label: "second", tools: ["send_mail"] },
        }),
      );
      for (const { start } of scenes) await start();
      await scenes[0]!.decide(approve);
      expect(scenes.map(({ box }) => box.ran.length)).toEqual([1, 0]);
      await scenes[1]!.decide(reject());
      expect(scenes.map(({ box }) => box.ran.length)).toEqual([1, 0]);
    });

    test("binds the arguments: what a middleware makes of them afterwards is judged, and does not run", async () => {
      for (const place of ["inside", "outside"] as const) {
        let arms = false;
        const switching = replacingArgs({ path: "/prod" });
        const original = switching.wrapToolCall!;
        const editor = {
          ...switching,
          wrapToolCall: ((request, handler) =>
            arms ? original(request, handler) : handler(request)) as typeof original,
        };
        const { start, decide, box } = stageAsking({
          version,
          turns: [del("/x", "a"), "end"],
          [place]: [editor],
        });
        await start();
        arms = true;
        const { messages, questions } = await decide(approve);
        expect([box.ran, questions]).toEqual([[], []]);
        expect(answerTo(messages, "a").status).toBe("error");
      }
    });

    test("runs one per pass: a tool's own interrupt in one repeats no other", async () => {
      const ran: string[] = [];
      const publish = tool(
        ({ path }: { path: string }) => {
          if (path === "/2") ran.push(`${path}: ${String(interrupt("Really?"))}`);
          else ran.push(path);
          return "published";
        },
        { name: "delete_file", description: "d", schema: z.object({ path: z.string() }) },
      );
      const { start, decide, answer, model } = stageAsking({
        version,
        tools: [publish],
        turns: [[del("/1", "a"), del("/2", "b"), del("/3", "c")], "end"],
      });
      expect(asked(await start())).toEqual(["/1", "/2", "/3"]);
      expect((await decide(approve, approve, approve)).questions).toEqual(["Really?"]);
      expect(ran).toEqual(["/1"]);
      const { messages } = await answer("yes");
      expect(ran).toEqual(["/1", "/2: yes", "/3"]);
      expect(answerCounts(messages)).toEqual({ a: 1, b: 1, c: 1 });
      expect(badlyAnswered(model)).toEqual([]);
    });

    test("whose tool throws: the others that are approved have run or will, none twice", async () => {
      const ran: string[] = [];
      let broken = true;
      const publish = tool(
        ({ path }: { path: string }) => {
          ran.push(path);
          if (path === "/2" && broken) throw new Error("disk full");
          return "published";
        },
        { name: "delete_file", description: "d", schema: z.object({ path: z.string() }) },
      );
      const { start, decide, goOn } = stageAsking({
        version,
        tools: [publish],
        turns: [[del("/1"), del("/2"), del("/3")], "end"],
      });
      await start();
      expect(String(await rejection(decide(approve, approve, approve)))).toMatch(/disk full/);
      expect(ran).toEqual(["/1", "/2"]);
      broken = false;
      // The host starts what failed once more; what had succeeded is done.
      const { messages } = await goOn();
      expect(ran).toEqual(["/1", "/2", "/2", "/3"]);
      expect(textOf(messages.at(-1))).toBe("end");
    });

    test.each<[string, () => Command | string]>([
      ["a Command without a message", () => new Command({ update: {} })],
      ["a Command without an update", () => new Command({})],
    ])("whose tool answers with %s is started once all the same", async (_title, result) => {
      let runs = 0;
      const silent = tool(
        () => {
          runs += 1;
          return result();
        },
        { name: "delete_file", description: "d", schema: z.object({ path: z.string() }) },
      );
      const { start, decide } = stageAsking({
        version,
        tools: [silent],
        turns: [[del("/1"), del("/2")], "end"],
      });
      await start();
      const { messages } = await decide(approve, approve);
      expect(runs).toBe(2);
      expect(textOf(messages.at(-1))).toBe("end");
    });

    test("starts no sibling again, whatever that one answered", async () => {
      const runs: string[] = [];
      const silent = tool(
        () => {
          runs.push("silent");
          return new Command({ update: {} });
        },
        { name: "silent", description: "d", schema: z.object({}) },
      );
      const box = toolBox();
      const { start, decide } = stageAsking({
        version,
        box,
        tools: [silent, box.deleteFile, box.readFile],
        turns: [[read("/r"), call("silent"), del("/x"), del("/ok")], "end"],
      });
      await start();
      await decide(approve);
      expect(runs).toEqual(["silent"]);
      expect(paths(box.ran).toSorted()).toEqual(["/ok", "/r", "/x"]);
    });
  });

  describe("next to a call that a tool sends to the tools by itself", () => {
    test.each(["/ok", "/y"])(
      "(%s), which is a branch of the run of its own: approved, it runs once",
      async (path) => {
        const { start, decide, box } = stageSending(version, path);
        expect(asked(await start())).toEqual(["/x"]);
        const { questions, messages } = await decide(approve);
        expect(questions).toEqual([]);
        expect(paths(box.ran).filter((ran) => ran === "/x")).toHaveLength(1);
        expect(paths(box.ran)).not.toContain("/y");
        expect(answerCounts(messages)).toMatchObject({ s: 1, a: 1 });
      },
    );

    test.each(["/ok", "/y"])("(%s): rejected, it does not run", async (path) => {
      const { start, decide, box } = stageSending(version, path);
      await start();
      await decide(reject());
      expect(paths(box.ran)).not.toContain("/x");
    });
  });

  describe("rejected", () => {
    test("reaches the agent as an error with the person's words, letter for letter", async () => {
      const { start, decide, box, model, records } = stageAsking({ version, turns: [del("/x", "a"), "end"] });
      await start();
      const { messages } = await decide(reject("Not on a Friday: $& {reason} `x`"));
      expect(answerTo(messages, "a")).toMatchObject({
        status: "error",
        name: "delete_file",
        additional_kwargs: { lc_source: "auto_mode" },
      });
      expect(textOf(answerTo(messages, "a"))).toContain("Not on a Friday: $& {reason} `x`");
      expect(box.ran).toEqual([]);
      expect(badlyAnswered(model)).toEqual([]);
      expect(records.at(-1)).toMatchObject({
        outcome: "rejected",
        by: "human",
        toolCallId: "a",
        threshold: 0.5,
        counters: { consecutiveBlocks: 1, totalBlocks: 1 },
      });
      expect(records.at(-1)?.argsDigest).toBe(records[0]?.argsDigest);
      expect(JSON.stringify(records)).not.toMatch(/Friday|\/x/);
    });

    test.each([undefined, "", "  "])("without words (%j) it still has a readable answer", async (message) => {
      const { start, decide } = stageAsking({ version, turns: [del("/x", "a"), "end"] });
      await start();
      const { messages } = await decide(reject(message));
      expect(textOf(answerTo(messages, "a"))).toMatch(/rejected the call to delete_file.*gave no reason/);
    });

    test("counts as a block: the next block asks again", async () => {
      const { start, decide, state } = stageAsking({
        version,
        turns: [del("/1"), del("/2"), del("/3"), "end"],
        options: { limits: { consecutiveBlocks: 2 } },
      });
      await start();
      expect(asked(await decide(reject()))).toEqual(["/3"]);
      expect(await state()).toMatchObject({
        consecutiveBlocks: 2,
        totalBlocks: 2,
        limit: "consecutiveBlocks",
      });
    });

    test("after the limit is reached, an allowed call does not end the asking", async () => {
      const { start, decide } = stageAsking({ version, turns: [del("/1"), del("/ok"), del("/2"), "end"] });
      await start();
      expect(asked(await decide(reject()))).toEqual(["/2"]);
    });
  });

  describe("edited", () => {
    test("runs as edited, unjudged, under its id; the history shows what ran", async () => {
      const { start, decide, box, classifier, model, records } = stageAsking({
        version,
        classifier: byPath(),
        turns: [del("/x", "a"), "end"],
      });
      await start();
      const { messages } = await decide(edit("delete_file", { path: "/z" }));
      expect(paths(box.ran)).toEqual(["/z"]);
      expect(classifier).toMatchObject({ callCount: 1 });
      const history = messages.find((message) => message.type === "ai") as AIMessage;
      expect(history.tool_calls).toMatchObject([{ id: "a", args: { path: "/z" } }]);
      expect(badlyAnswered(model)).toEqual([]);
      expect(records.at(-1)).toMatchObject({ outcome: "approved", by: "human" });
      expect(records.at(-1)?.argsDigest).not.toBe(records[0]?.argsDigest);
    });

    test("may name another tool, listed or not: it is the person's own call", async () => {
      const { start, decide, box, classifier } = stageAsking({
        version,
        classifier: byPath(),
        turns: [[del("/x", "a"), del("/y", "b")], "end"],
        options: { tools: ["delete_file", "send_mail"] },
      });
      await start();
      const mail = { to: "a@example.org", body: "/prod" };
      const { messages } = await decide(edit("read_file", { path: "/x" }), edit("send_mail", mail));
      expect(box.ran).toEqual([
        { name: "read_file", args: { path: "/x" } },
        { name: "send_mail", args: mail },
      ]);
      expect(answerCounts(messages)).toEqual({ a: 1, b: 1 });
      expect(classifier).toMatchObject({ callCount: 1 });
    });

    test("into a tool that the agent does not have, it gets a readable error, and the run goes on", async () => {
      const { start, decide, box } = stageAsking({ version, turns: [del("/x", "a"), "end"] });
      await start();
      const { messages } = await decide(edit("no_such_tool", {}));
      expect(answerTo(messages, "a").status).toBe("error");
      expect([box.ran, textOf(messages.at(-1))]).toEqual([[], "end"]);
    });

    test("and then changed by a middleware, it is judged", async () => {
      const { start, decide, box } = stageAsking({
        version,
        turns: [del("/x", "a"), "end"],
        inside: [replacingArgs({ path: "/prod" })],
      });
      await start();
      await decide(edit("delete_file", { path: "/ok" }));
      expect(box.ran).toEqual([]);
    });
  });

  describe("each in its own way", () => {
    test("approve, reject and edit in one step: every call is answered once", async () => {
      const { start, decide, box, model } = stageAsking({
        version,
        turns: [[del("/x", "a"), del("/y", "b"), del("/z", "c"), del("/ok", "d")], "end"],
      });
      await start();
      const { messages } = await decide(approve, reject("no"), edit("delete_file", { path: "/z2" }));
      expect(paths(box.ran).toSorted()).toEqual(["/ok", "/x", "/z2"]);
      expect(answerCounts(messages)).toEqual({ a: 1, b: 1, c: 1, d: 1 });
      expect(answerTo(messages, "b").status).toBe("error");
      expect(badlyAnswered(model)).toEqual([]);
    });

    test("decisions go to their calls whatever the order in which the classifier's answers came", async () => {
      const classifier = fakeDecisionModel({ delayMs: 1 }).always(0.9);
      const { start, decide, box } = stageAsking({
        version,
        classifier,
        turns: [[del("/A"), del("/B"), del("/C")], "end"],
      });
      expect(asked(await start())).toEqual(["/A", "/B", "/C"]);
      await decide(reject(), approve, reject());
      expect(paths(box.ran)).toEqual(["/B"]);
    });

    test("they count in the order of the calls, with the step's other calls", async () => {
      const { start, decide, state } = stageAsking({
        version,
        turns: [[del("/1"), del("/ok"), del("/2"), del("/3")], "end"],
      });
      await start();
      await decide(reject(), approve, reject());
      expect(await state()).toMatchObject({ consecutiveBlocks: 1, totalBlocks: 2 });
    });
  });

  describe("answered with something that is no decision", () => {
    test.each<[string, unknown]>([
      ["an empty object", {}],
      ["a text", "yes"],
      ["true", true],
      ["zero", 0],
      ["an empty text", ""],
      ["no decisions", { decisions: [] }],
      ["too few decisions", { decisions: [approve] }],
      ["too many decisions", { decisions: [approve, approve, approve] }],
      ["an unknown decision", { decisions: [approve, { type: "maybe" }] }],
      ["an edit without arguments", { decisions: [approve, { type: "edit", editedAction: { name: "x" } }] }],
    ])(
      "%s: the person is asked again, nothing runs, and the thread is not spoiled",
      async (_title, resume) => {
        const { start, answer, decide, box, classifier, model } = stageAsking({
          version,
          classifier: byPath(),
          turns: [[del("/x", "a"), del("/y", "b")], "end"],
        });
        await start();
        expect(asked(await answer(resume))).toEqual(["/x", "/y"]);
        expect(asked(await answer(resume))).toEqual(["/x", "/y"]);
        expect(box.ran).toEqual([]);
        const { messages } = await decide(approve, reject());
        expect(paths(box.ran)).toEqual(["/x"]);
        expect(textOf(messages.at(-1))).toBe("end");
        expect(classifier).toMatchObject({ callCount: 1 });
        expect(badlyAnswered(model)).toEqual([]);
      },
    );

    test("a decision that is not among the allowed ones asks again", async () => {
      const { start, decide, box } = stageAsking({
        version,
        turns: [del("/x", "a"), "end"],
        options: { whenLimitReached: askHuman({ allowedDecisions: ["approve", "reject"] }) },
      });
      await start();
      expect(asked(await decide(edit("delete_file", { path: "/z" })))).toEqual(["/x"]);
      expect(box.ran).toEqual([]);
      await decide(approve);
      expect(paths(box.ran)).toEqual(["/x"]);
    });
  });

  describe("changed behind the person's back", () => {
    test("by a sibling while it waits: nobody is asked about it, and it does not run", async () => {
      const box = toolBox();
      const { start, model } = stageAsking({
        version,
        box,
        tools: [rewriter(proposal("/prod")), box.deleteFile],
        turns: [() => proposal("/x"), "end"],
      });
      const { questions, messages } = await start();
      expect([questions, box.ran]).toEqual([[], []]);
      expect(textOf(answerTo(messages, "a"))).toMatch(/changed while it waited/);
      expect(badlyAnswered(model)).toEqual([]);
    });

    test("by the answer's own update: the approval is for what was shown, so nothing runs", async () => {
      const { start, agent, config, box } = stageAsking({ version, turns: [del("/x", "a"), "end"] });
      const { messages } = await start();
      const other = new AIMessage({
        id: messages.at(-1)!.id!,
        content: "",
        tool_calls: [{ id: "a", name: "delete_file", args: { path: "/prod" }, type: "tool_call" }],
      });
      const resumed = await agent.invoke(
        new Command({ resume: { decisions: [approve] }, update: { messages: [other] } }) as never,
        config,
      );
      expect(box.ran).toEqual([]);
      expect(answerTo(resumed.messages, "a").status).toBe("error");
    });

    test("by an approved sibling: it is judged and asked about afresh, and the run goes on", async () => {
      const box = toolBox();
      const { start, decide, model } = stageAsking({
        version,
        box,
        tools: [rewriter(proposal("/prod")), box.deleteFile],
        turns: [() => proposal("/x"), "end"],
        options: { tools: ["delete_file", "rewriter"] },
      });
      expect(asked(await start())).toEqual([undefined, "/x"]);
      expect(asked(await decide(approve, approve))).toEqual(["/prod"]);
      expect(box.ran).toEqual([]);
      const { messages } = await decide(reject());
      expect(textOf(messages.at(-1))).toBe("end");
      expect(badlyAnswered(model)).toEqual([]);
    });
  });

  describe("left behind by a new message", () => {
    test("is answered as not run, and never runs", async () => {
      const { start, box, model, state } = stageAsking({
        version,
        turns: [[del("/x", "a"), del("/y", "b"), read("/r", "r")], "as you wish"],
      });
      await start();
      const { messages, questions } = await start("Forget it.");
      expect(questions).toEqual([]);
      expect(textOf(messages.at(-1))).toBe("as you wish");
      expect(paths(box.ran)).toEqual(["/r"]);
      for (const id of ["a", "b"]) expect(textOf(answerTo(messages, id))).toMatch(/did not run/);
      expect(badlyAnswered(model)).toEqual([]);
      expect((await state()).waiting).toEqual([]);
    });

    test("its answer is right behind its proposal, as providers demand", async () => {
      const { start, model } = stageAsking({ version, turns: [[read("/r", "r"), del("/x", "a")], "end"] });
      await start();
      await start("Forget it.");
      expect(model.calls.at(-1)?.messages.map(({ type }) => type)).toEqual([
        "human",
        "ai",
        "tool",
        "tool",
        "human",
      ]);
    });

    test("a late answer to the old question starts nothing", async () => {
      const { start, decide, box } = stageAsking({ version, turns: [del("/x", "a"), "end"] });
      await start();
      await start("Forget it.");
      await decide(approve).catch(() => {});
      expect(box.ran).toEqual([]);
    });
  });

  describe("while the run is aborted", () => {
    test("an answer that comes with an aborted signal starts nothing; the call still waits for one", async () => {
      const { start, agent, config, decide, box, state } = stageAsking({
        version,
        turns: [del("/x", "a"), "end"],
      });
      await start();
      const answer = new Command({ resume: { decisions: [approve] } });
      const aborted = agent.invoke(answer as never, { ...config, signal: AbortSignal.abort() });
      expect(await rejection(aborted)).toBeInstanceOf(Error);
      expect(box.ran).toEqual([]);
      expect(await state()).toMatchObject({ totalBlocks: 0, waiting: [{ id: "a" }] });
      await decide(approve);
      expect(paths(box.ran)).toEqual(["/x"]);
    });

    test("between two approved calls: the second does not run, and has its turn when the run goes on", async () => {
      const controller = new AbortController();
      const ran: string[] = [];
      const aborting = tool(
        ({ path }: { path: string }) => {
          ran.push(path);
          if (path === "/1") controller.abort();
          return "done";
        },
        { name: "delete_file", description: "d", schema: z.object({ path: z.string() }) },
      );
      const { start, agent, config, goOn, state } = stageAsking({
        version,
        tools: [aborting],
        turns: [[del("/1"), del("/2")], "end"],
      });
      await start();
      const answer = new Command({ resume: { decisions: [approve, approve] } });
      await rejection(agent.invoke(answer as never, { ...config, signal: controller.signal }));
      expect(ran).toEqual(["/1"]);
      await goOn();
      // The host may not have noted the first result before the abort, and starts that call again then.
      expect(ran.filter((path) => path === "/2")).toHaveLength(1);
      expect(await state()).toMatchObject({ consecutiveBlocks: 0, totalBlocks: 0 });
    });

    test("no listener stays on its signal but the one that the host leaves for each run", async () => {
      const { signal } = new AbortController();
      const { start, decide } = stageAsking({
        version,
        turns: [del("/x"), del("/x"), "end"],
        config: { signal },
      });
      await start();
      await decide(approve);
      await decide(reject());
      const without = new AbortController();
      const unguarded = stageAsking({
        version,
        turns: ["end"],
        options: { tools: ["send_mail"] },
        config: { signal: without.signal },
      });
      for (const text of ["a", "b", "c"]) await unguarded.start(text);
      expect(getEventListeners(signal, "abort")).toHaveLength(
        getEventListeners(without.signal, "abort").length,
      );
    });
  });

  describe("without a checkpointer", () => {
    const without = { checkpointer: undefined } as never;

    test("a clear error at the first ask says what to add", async () => {
      const { start, box } = stageAsking({ version, turns: [del("/ok"), del("/x")], ...(without as object) });
      const error = ConfigurationError.find(await rejection(start()));
      expect(error?.option).toBe("checkpointer");
      expect(error?.message).toMatch(/checkpointer: new MemorySaver\(\)/);
      expect(paths(box.ran)).toEqual(["/ok"]);
    });

    test("there is no error while nobody has to be asked", async () => {
      const { start } = stageAsking({ version, turns: [del("/ok"), "end"], ...(without as object) });
      expect(textOf((await start()).messages.at(-1))).toBe("end");
    });
  });

  describe("with an id that an earlier turn used", () => {
    const turns = [del("/ok", "call_0"), "one", del("/x", "call_0"), "two"];

    // In v1 the host drops a call whose id has an answer anywhere.
    test.skipIf(version === "v1")("is approved and runs under a fresh id", async () => {
      const { start, decide, box, model } = stageAsking({ version, turns });
      await start();
      expect(asked(await start("Next."))).toEqual(["/x"]);
      const { messages } = await decide(approve);
      expect(textOf(messages.at(-1))).toBe("two");
      expect(badlyAnswered(model)).toEqual([]);
      expect(paths(box.ran)).toEqual(["/ok", "/x"]);
    });

    test.skipIf(version === "v1")("is rejected under its own", async () => {
      const { start, decide, box } = stageAsking({ version, turns });
      await start();
      await start("Next.");
      const { messages } = await decide(reject("no"));
      expect(answerCounts(messages)).toEqual({ call_0: 2 });
      expect(paths(box.ran)).toEqual(["/ok"]);
    });

    test.runIf(version === "v1")("the host drops it: nothing runs and nobody is asked", async () => {
      const { start, box } = stageAsking({ version, turns });
      await start();
      expect((await start("Next.")).questions).toEqual([]);
      expect(paths(box.ran)).toEqual(["/ok"]);
    });
  });

  describe("next to a call without an id", () => {
    test.each<[string, ReturnType<typeof del>]>([
      ["a guarded one never runs, before and after the answer", { ...del("/ok"), id: undefined }],
      ["a guarded one with an empty id never runs", { ...del("/ok"), id: "" }],
    ])("%s", async (_title, odd) => {
      const { start, decide, box } = stageAsking({ version, turns: [[odd, del("/x", "a")], "end"] });
      await start();
      await decide(approve);
      expect(paths(box.ran)).toEqual(["/x"]);
    });

    test("an unguarded one has run and does not run again", async () => {
      const { start, decide, box } = stageAsking({
        version,
        turns: [[{ ...read("/r"), id: undefined }, del("/x", "a")], "end"],
      });
      await start();
      await decide(approve).catch(() => {});
      expect(paths(box.ran).filter((path) => path === "/r")).toHaveLength(1);
    });

    test("calls that share an id run neither before nor after the answer", async () => {
      const { start, decide, box } = stageAsking({
        version,
        turns: [[del("/ok", "twin"), del("/ok", "twin"), del("/x", "a")], "end"],
      });
      await start();
      await decide(approve);
      expect(paths(box.ran)).toEqual(["/x"]);
    });
  });

  describe("next to a tool that ends the run", () => {
    const shapes: [string, (id: string) => unknown][] = [
      ["a text", () => "finished"],
      ["a ToolMessage", (id) => new ToolMessage({ content: "f", tool_call_id: id, name: "finish" })],
      [
        "a Command",
        (id) =>
          new Command({
            update: { messages: [new ToolMessage({ content: "f", tool_call_id: id, name: "finish" })] },
          }),
      ],
      [
        "a Command of tuples",
        (id) =>
          new Command({
            update: [["messages", [new ToolMessage({ content: "f", tool_call_id: id, name: "finish" })]]],
          }),
      ],
      [
        "a Command with a plain message",
        (id) =>
          new Command({
            update: { messages: { role: "tool", content: "f", tool_call_id: id, name: "finish" } },
          }),
      ],
    ];
    const orders = ["first", "last"] as const;

    test.each(shapes.flatMap(([shape, result]) => orders.map((order) => [shape, order, result] as const)))(
      "with %s, placed %s: the person is asked, and every call is answered",
      async (_shape, order, result) => {
        const box = toolBox();
        const calls = [del("/x", "a"), call("finish", {}, "f")];
        const { start, decide } = stageAsking({
          version,
          box,
          tools: [box.deleteFile, ending(result)],
          turns: [order === "last" ? calls : calls.toReversed(), "end"],
        });
        expect(asked(await start())).toEqual(["/x"]);
        const { messages } = await decide(approve);
        expect(answerCounts(messages)).toEqual({ a: 1, f: 1 });
        expect(paths(box.ran)).toEqual(["/x"]);
      },
    );

    test("approved itself among others: the others have their turn, too", async () => {
      const box = toolBox();
      const { start, decide } = stageAsking({
        version,
        box,
        classifier: fakeDecisionModel().always(0.9),
        tools: [box.deleteFile, ending(() => "finished")],
        options: { tools: ["delete_file", "finish"] },
        turns: [[call("finish", {}, "f"), del("/x", "a")], "end"],
      });
      await start();
      const { messages } = await decide(approve, approve);
      expect(answerCounts(messages)).toEqual({ a: 1, f: 1 });
      expect(paths(box.ran)).toEqual(["/x"]);
    });

    test("alone it ends the run as ever", async () => {
      const { start, model } = stageAsking({
        version,
        tools: [toolBox().deleteFile, ending(() => "finished")],
        turns: [call("finish", {}, "f"), "not reached"],
      });
      await start();
      expect(model.callCount).toBe(1);
    });
  });

  describe("because it could not be evaluated", () => {
    const options = { onUnavailable: "ask", limits: {}, whenLimitReached: haltRun() } as const;

    test("a person decides, though limits do not ask; nothing is evaluated again", async () => {
      const classifier = fakeDecisionModel().fail("timeout").fail("error");
      const { start, decide, box, state } = stageAsking({
        version,
        classifier,
        turns: [del("/x", "a"), del("/y", "b"), "end"],
        options,
      });
      expect(asked(await start())).toEqual(["/x"]);
      expect(asked(await decide(approve))).toEqual(["/y"]);
      const { messages } = await decide(reject("no"));
      expect(textOf(messages.at(-1))).toBe("end");
      expect(paths(box.ran)).toEqual(["/x"]);
      expect(classifier.callCount).toBe(2);
      expect(await state()).toMatchObject({
        consecutiveBlocks: 1,
        totalBlocks: 1,
        consecutiveUnavailable: 2,
      });
    });

    test("the limit on failures in a row halts the run once the person has answered", async () => {
      const { start, decide, model, box } = stageAsking({
        version,
        classifier: fakeDecisionModel().alwaysFail("error"),
        turns: [del("/x", "a"), del("/y", "b"), "not reached"],
        options: { ...options, limits: { consecutiveUnavailable: 2 } },
      });
      await start();
      await decide(approve);
      const { messages } = await decide(approve);
      expect(paths(box.ran)).toEqual(["/x", "/y"]);
      expect(model.callCount).toBe(2);
      expect(messages.at(-1)?.additional_kwargs).toMatchObject({
        auto_mode: { limit: "consecutiveUnavailable" },
      });
    });

    test("where limits ask, the step that reaches the limit on failures waits", async () => {
      const { start, box } = stageAsking({
        version,
        classifier: fakeDecisionModel().alwaysFail("error"),
        turns: [del("/x", "a"), del("/y", "b"), "end"],
        options: { onUnavailable: "continue", limits: { consecutiveUnavailable: 2 } },
      });
      expect(asked(await start())).toEqual(["/y"]);
      expect(box.ran).toEqual([]);
    });
  });
});

describe("the hook that asks", () => {
  test.each<[string, object, boolean]>([
    ["by default", {}, false],
    ["with a fallback that does not ask", { whenLimitReached: haltRun() }, false],
    ["in observe mode", { whenLimitReached: askHuman(), onUnavailable: "ask", mode: "observe" }, false],
    ["with askHuman", { whenLimitReached: askHuman() }, true],
    ["where a person decides about failures", { onUnavailable: "ask" }, true],
  ])("%s: %j has it: %s", (_title, options, has) => {
    expect(guardWith(options).beforeModel !== undefined).toBe(has);
  });

  test("an afterAgent hook there is never: the host would run it twice", () => {
    expect(guardWith({ whenLimitReached: askHuman() }).afterAgent).toBeUndefined();
  });
});

/** A message that proposes a call of the rewriter and a deletion. */
function proposal(path: string): AIMessage {
  return new AIMessage({
    id: "proposal",
    content: "",
    tool_calls: [
      { id: "w", name: "rewriter", args: {}, type: "tool_call" },
      { id: "a", name: "delete_file", args: { path }, type: "tool_call" },
    ],
  });
}

const idOf = (config: unknown): string => (config as { toolCallId: string }).toolCallId;

/** A tool that replaces the message of its own step. */
function rewriter(rewritten: AIMessage) {
  return tool(
    (_args, config) =>
      new Command({
        update: {
          messages: [
            new ToolMessage({ content: "ok", tool_call_id: idOf(config), name: "rewriter" }),
            rewritten,
          ],
        },
      }),
    { name: "rewriter", description: "d", schema: z.object({}) },
  );
}

/** A tool whose result ends the run. */
function ending(result: (id: string) => unknown) {
  return tool((_args, config) => result(idOf(config)), {
    name: "finish",
    description: "d",
    schema: z.object({}),
    returnDirect: true,
  });
}

function guardWith(options: object) {
  return autoModeMiddleware({ tools: ["delete_file"], classifier: fakeDecisionModel(), ...options });
}

/** An agent with a tool that sends a deletion to the tools by itself. */
function stageSending(version: Version, path: string) {
  const box = toolBox();
  const sent = { id: "f", name: "delete_file", args: { path }, type: "tool_call" as const };
  const sender = tool(
    (_args, config) =>
      new Command({
        update: {
          messages: [new ToolMessage({ content: "ok", tool_call_id: idOf(config), name: "sender" })],
        },
        goto: [
          new Send("tools", {
            messages: [new AIMessage({ id: "m", content: "", tool_calls: [sent] })],
            lg_tool_call: sent,
          }),
        ],
      }),
    { name: "sender", description: "d", schema: z.object({}) },
  );
  return stageAsking({
    version,
    box,
    tools: [box.deleteFile, sender],
    turns: [[call("sender", {}, "s"), del("/x", "a")], "end"],
  });
}

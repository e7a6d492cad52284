import { AIMessage } from "@langchain/core/messages";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { type DecisionRecord, autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, answerTo, isTool, play, stage } from "../kit/agent.js";
import { onToolCall } from "../kit/middlewares.js";
import { call, del, draft, proposes, read } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const say = (content: string) => ({ messages: [{ role: "user", content }] });
const inThread = (id: string) => ({ configurable: { thread_id: id } });

describe.each(VERSIONS)("one request for each step, %s", (version) => {
  test("ten guarded calls are one request; each keeps its own verdict", async () => {
    const ids = Array.from({ length: 10 }, (_, index) => String(index));
    const classifier = fakeDecisionModel().respondWith(({ args }) => (Number(args.path) % 2 === 0 ? 0 : 0.9));
    const { box, messages, records } = await play({
      version,
      turns: [ids.map((id) => del(id, id))],
      classifier,
    });
    expect(classifier.callCount).toBe(1);
    expect(classifier.judged.map(({ key, args }) => [key, args.path])).toEqual(
      ids.map((id, index) => [`call_${index + 1}`, id]),
    );
    expect(box.ranWith("delete_file")).toEqual(["0", "2", "4", "6", "8"].map((path) => ({ path })));
    expect(ids.map((id) => answerTo(messages, id).status)).toEqual(
      ids.map((_, index) => (index % 2 === 0 ? "success" : "error")),
    );
    expect(records).toHaveLength(10);
    expect(new Set(records.map(({ messageId }) => messageId)).size).toBe(1);
  });

  test("each tool is judged by its own criteria, instructions and threshold, in the one request", async () => {
    const classifier = fakeDecisionModel().respond(0.4);
    const own = {
      criteria: { true: "It mails strangers." },
      instructions: "Is this mail wanted?",
      threshold: 0.3,
    };
    const { box } = await play({
      version,
      turns: [[del("/a"), call("send_mail", { to: "a", body: "b" })]],
      classifier,
      options: { tools: ["delete_file", { tool: "send_mail", ...own }], criteria: { true: "It deletes." } },
    });
    expect(classifier.callCount).toBe(1);
    const { call_1: deletion, call_2: mail } = classifier.requests[0]?.questions ?? {};
    expect(deletion).toMatchObject({ criteria: { true: "It deletes." } });
    expect(mail).toMatchObject({ criteria: own.criteria });
    expect(mail?.instructions).toContain(own.instructions);
    expect(deletion?.instructions).not.toContain(own.instructions);
    expect(box.ran.map(({ name }) => name)).toEqual(["delete_file"]);
  });

  test("unlisted calls run next to it; they are in the transcript and not among the judged calls", async () => {
    const classifier = fakeDecisionModel().respond(0.9);
    const { box, messages } = await play({
      version,
      turns: [[read("/r", "r"), del("/d", "d"), draft("/w", "w")]],
      classifier,
    });
    expect(classifier.judged.map(({ name }) => name)).toEqual(["delete_file"]);
    const shown = classifier.requests[0]?.transcript.filter(({ from }) => from === "tool_call");
    expect(shown).toMatchObject([{ name: "read_file" }, { name: "draft_file" }]);
    expect(box.ran.map(({ name }) => name).toSorted()).toEqual(["draft_file", "read_file"]);
    expect(answerTo(messages, "d").status).toBe("error");
  });

  test("two calls with the same arguments are two calls", async () => {
    let answered = 0;
    const classifier = fakeDecisionModel().respondWith(() => ((answered += 1) === 1 ? 0 : 0.9));
    const { box, messages } = await play({ version, turns: [[del("/a", "1"), del("/a", "2")]], classifier });
    expect(box.ran).toHaveLength(1);
    expect([answerTo(messages, "1").status, answerTo(messages, "2").status]).toEqual(["success", "error"]);
  });

  test("an answer that leaves a call out fails that call alone", async () => {
    const classifier = fakeDecisionModel().respondWith(({ args }) =>
      args.path === "/none" ? undefined : args.path === "/bad" ? 0.9 : 0,
    );
    const { box, records } = await play({
      version,
      turns: [[del("/ok"), del("/none"), del("/bad")]],
      classifier,
      options: { onUnavailable: "continue" },
    });
    expect(box.ranWith("delete_file")).toEqual([{ path: "/ok" }]);
    expect(records.map(({ outcome }) => outcome).toSorted()).toEqual(["allowed", "blocked", "unavailable"]);
  });

  test("outer middlewares that take their time do not split it", async () => {
    const classifier = fakeDecisionModel().respond(0);
    const slow = onToolCall(async (request, handler) => {
      await new Promise((resolve) => setTimeout(resolve, request.toolCall.id === "a" ? 0 : 5));
      return handler(request);
    });
    const { box } = await play({
      version,
      turns: [[del("/a", "a"), del("/b", "b"), del("/c", "c")]],
      classifier,
      outside: [slow],
    });
    expect(classifier.callCount).toBe(1);
    expect(box.ran).toHaveLength(3);
  });

  test("a call that an outer middleware changed is judged as it came in", async () => {
    const classifier = fakeDecisionModel().always(({ args }) => (args.path === "/prod" ? 0.9 : 0));
    const { box } = await play({
      version,
      turns: [[del("/a", "a"), del("/b", "b")]],
      classifier,
      outside: [
        onToolCall((request, handler) =>
          handler({
            ...request,
            toolCall: {
              ...request.toolCall,
              args: request.toolCall.id === "b" ? { path: "/prod" } : { path: "/a" },
            },
          }),
        ),
      ],
    });
    expect(box.ranWith("delete_file")).toEqual([{ path: "/a" }]);
    expect(classifier.judged.map(({ args }) => args.path)).toEqual(["/a", "/prod"]);
  });

  test("each step is judged afresh, with what happened in between", async () => {
    const classifier = fakeDecisionModel().respond(0.9).respond(0);
    const { box } = await play({ version, turns: [del("/a"), del("/b"), "end"], classifier });
    expect(classifier.callCount).toBe(2);
    expect(classifier.requests[1]?.transcript.map(({ from }) => from)).toContain("auto_mode_feedback");
    expect(box.ran).toHaveLength(1);
  });

  test("a provider that starts its ids again in every turn: nothing is inherited", async () => {
    const classifier = fakeDecisionModel().respond(0.9).respond(0.9).respond(0);
    const scene = stage({
      version,
      turns: [del("/a", "call_0"), "end", del("/b", "call_0"), "end", del("/c", "call_1"), "end"],
      classifier,
      checkpointer: new MemorySaver(),
      config: inThread("t"),
    });
    await scene.invoke("first");
    await scene.invoke("second");
    // One version of the host drops a call whose id was answered earlier: it never reaches any guard.
    const reached = version === "v1" ? 1 : 2;
    expect(scene.records.map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: reached }, () => "blocked"),
    );
    const messages = await scene.invoke("third");
    expect(scene.box.ran).toHaveLength(version === "v1" ? 0 : 1);
    expect(messages.at(-1)?.text).toBe("end");
  });

  test("one message object that a model hands out in two threads is judged in each, and recorded in each", async () => {
    const once = proposes([del("/a", "a")]);
    class Repeating extends BaseChatModel {
      constructor() {
        super({});
      }
      _llmType(): string {
        return "repeating";
      }
      override bindTools(): this {
        return this;
      }
      async _generate(messages: Parameters<BaseChatModel["_generate"]>[0]) {
        const message = messages.some(isTool) ? new AIMessage("end") : once;
        return { generations: [{ text: "", message }] };
      }
    }
    const records: DecisionRecord[] = [];
    const box = toolBox();
    const classifier = fakeDecisionModel().respond(0).respond(0.9);
    const agent = createAgent({
      model: new Repeating(),
      tools: box.all,
      version,
      checkpointer: new MemorySaver(),
      middleware: [
        autoModeMiddleware({
          tools: ["delete_file"],
          classifier,
          onDecision: (record) => void records.push(record),
        }),
      ],
    });
    await agent.invoke(say("Delete a."), inThread("1"));
    await agent.invoke(say("Delete nothing."), inThread("2"));
    expect(box.ran).toHaveLength(1);
    expect(records.map(({ outcome }) => outcome)).toEqual(["allowed", "blocked"]);
    expect(JSON.stringify(classifier.requests[1]?.transcript)).toContain("Delete nothing.");
  });

  test("two threads on one instance at the same time share nothing", async () => {
    const classifier = fakeDecisionModel({ delayMs: 2 }).always(({ args }, { transcript }) => {
      const [task] = transcript.filter(({ from }) => from === "user") as { text: string }[];
      return task?.text.endsWith(args.path as string) ? 0 : 1;
    });
    const box = toolBox();
    const guard = autoModeMiddleware({ tools: ["delete_file"], classifier });
    const run = (id: string) =>
      createAgent({
        model: stage({ turns: [[del(id, "x"), del("other", "y")], "end"] }).model,
        tools: box.all,
        version,
        middleware: [guard],
      }).invoke(say(`thread ${id}`));
    await Promise.all([run("1"), run("2"), run("3")]);
    expect(box.ran.map(({ args }) => (args as { path: string }).path).toSorted()).toEqual(["1", "2", "3"]);
    expect(classifier.callCount).toBe(3);
  });

  test("a retry around the guard enters again: one request, and a record of what ran after that of what did not", async () => {
    let attempts = 0;
    const classifier = fakeDecisionModel().respond(0);
    const { box, records, messages } = await play({
      version,
      turns: [del("/a", "a")],
      classifier,
      outside: [
        onToolCall(async (request, handler) => {
          await Promise.resolve(handler(request)).catch(() => {});
          return handler(request);
        }, "retrying"),
      ],
      inside: [
        onToolCall((request, handler) => {
          attempts += 1;
          if (attempts === 1) throw new Error("flaky");
          return handler(request);
        }),
      ],
    });
    expect([attempts, classifier.callCount, box.ran.length]).toEqual([2, 1, 1]);
    expect(records.map(({ outcome, executed }) => [outcome, executed])).toEqual([
      ["allowed", "not seen"],
      ["allowed", "as judged"],
    ]);
    expect(answerTo(messages, "a").status).toBe("success");
  });
});

import { fakeModel } from "@langchain/core/testing";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createDeepAgent, GENERAL_PURPOSE_SUBAGENT, type SubAgent } from "deepagents";
import { type AgentMiddleware, AIMessage, tool } from "langchain";
import { askHuman, autoModeMiddleware, type AutoModeOptions, type DecisionRecord } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { main, play } from "../../examples/deep-agents.js";

const step = (...calls: [id: string, name: string, args: Record<string, string>][]) =>
  new AIMessage({ content: "", tool_calls: calls.map(([id, name, args]) => ({ id, name, args })) });
const task = (id: string, subagent_type: string): [string, string, Record<string, string>] => [
  id,
  "task",
  { description: `Delete /${id}. The user wants it.`, subagent_type },
];

/** A deep agent that can delete, with guards whose decisions are collected. */
function deepAgent(
  parent: ReturnType<typeof fakeModel>,
  subagent: (guard: (options: Partial<AutoModeOptions>) => AgentMiddleware) => SubAgent,
  parentTools: string[] = ["delete_file"],
) {
  const deleted: string[] = [];
  const decisions: DecisionRecord[] = [];
  const classifier = fakeDecisionModel().forTool("task", 0.1).always(0.9);
  const guard = (options: Partial<AutoModeOptions>) =>
    autoModeMiddleware({
      tools: ["delete_file"],
      classifier,
      onDecision: (record) => {
        decisions.push(record);
      },
      ...options,
    });
  const deleteFile = tool(
    ({ path }) => {
      deleted.push(path);
      return "deleted";
    },
    { name: "delete_file", description: "Deletes a file.", schema: z.object({ path: z.string() }) },
  );
  const agent = createDeepAgent({
    model: parent,
    tools: [deleteFile],
    checkpointer: new MemorySaver(),
    middleware: [guard({ label: "parent", tools: parentTools })],
    subagents: [subagent(guard)],
  });
  const config = { configurable: { thread_id: "1" } };
  return { agent, config, deleted, decisions, classifier };
}
const ASKS = { limits: { consecutiveBlocks: 1 }, whenLimitReached: askHuman() };
const input = { messages: [{ role: "user" as const, content: "Tidy up." }] };

describe("the recipe for deep agents", () => {
  test("plays, and says who blocked what", async () => {
    const lines: string[] = [];
    await main((line) => lines.push(line));
    expect(lines).toContain("  subagent: delete_file (gp-4) blocked, 3 in a row, 3 in all");
    expect(lines).toContain("  parent: task (task-2) allowed, 0 in a row, 0 in all");
  });

  test("a deletion that `task` sends to the default subagent is guarded", async () => {
    const { deleted, decisions } = await play({ guardDefault: true });
    expect(deleted).toEqual(["/build/old.js"]);
    expect(decisions.filter(({ toolCallId }) => toolCallId.startsWith("gp-"))).toHaveLength(4);
  });

  test("the parent's guard alone does not reach into the default subagent", async () => {
    const { deleted, decisions } = await play({ guardDefault: false });
    expect(deleted).toContain("/data/customers.db");
    expect(decisions.filter(({ toolCallId }) => toolCallId.startsWith("gp-"))).toEqual([]);
  });
});

describe("guards in deep agents", () => {
  test("each run of a subagent counts from zero, in one thread with a checkpointer", async () => {
    const parent = fakeModel()
      .respond(step(task("t1", "general-purpose")))
      .respond(step(task("t2", "general-purpose")))
      .respond(new AIMessage("finished"));
    const model = fakeModel()
      .respond(step(["d1", "delete_file", { path: "/a" }]))
      .respond(new AIMessage("no"))
      .respond(step(["d2", "delete_file", { path: "/a" }]))
      .respond(new AIMessage("no"));
    const { agent, config, deleted, decisions } = deepAgent(parent, (guard) => ({
      ...GENERAL_PURPOSE_SUBAGENT,
      model,
      middleware: [guard({ label: "subagent", author: "agent" })],
    }));
    await agent.invoke(input, config);
    expect(deleted).toEqual([]);
    expect(decisions.map(({ counters }) => counters.totalBlocks)).toEqual([1, 1]);
  });

  test("two subagents ask at once: each gets its own answer and nothing runs twice", async () => {
    const parent = fakeModel()
      .respond(step(task("t1", "general-purpose"), task("t2", "general-purpose")))
      .respond(new AIMessage("finished"));
    const model = fakeModel();
    for (let run = 0; run < 2; run += 1)
      model.respond((messages) => {
        const [, path = ""] = /Delete (\S+)\./.exec(messages.at(-1)?.text ?? "") ?? [];
        return step([`d${path}`, "delete_file", { path }]);
      });
    model.respond(new AIMessage("done")).respond(new AIMessage("done"));
    const { agent, config, deleted, decisions } = deepAgent(
      parent,
      (guard) => ({
        ...GENERAL_PURPOSE_SUBAGENT,
        model,
        middleware: [guard({ label: "subagent", author: "agent", ...ASKS })],
      }),
      ["task"],
    );
    const paused = await agent.invoke(input, config);
    const questions = paused.__interrupt__ ?? [];
    expect(questions).toHaveLength(2);
    expect(deleted).toEqual([]);

    const resume = Object.fromEntries(
      questions.map(({ id, value }) => {
        const [action] = (value as { actionRequests: { args: { path: string } }[] }).actionRequests;
        const type = action?.args.path === "/t1" ? "approve" : "reject";
        return [id, { decisions: [{ type }] }];
      }),
    );
    const ended = await agent.invoke(new Command({ resume }), config);
    expect(ended.messages.at(-1)?.text).toBe("finished");
    expect(deleted).toEqual(["/t1"]);
    const outcomes = decisions.flatMap(({ label, toolCallId, outcome }) =>
      label === "subagent" && outcome !== "waiting" ? [`${toolCallId} ${outcome}`] : [],
    );
    expect(new Set(outcomes)).toEqual(new Set(["d/t1 approved", "d/t2 rejected"]));
  });

  test("a `task` keeps its verdict when it is entered again after the answer: the answer reaches its subagent", async () => {
    const parent = fakeModel()
      .respond(step(task("t1", "general-purpose")))
      .respond(new AIMessage("finished"));
    const model = fakeModel()
      .respond(step(["d1", "delete_file", { path: "/a" }]))
      .respond(new AIMessage("deleted"));
    const { agent, config, deleted, classifier } = deepAgent(
      parent,
      (guard) => ({
        ...GENERAL_PURPOSE_SUBAGENT,
        model,
        middleware: [guard({ label: "subagent", author: "agent", ...ASKS })],
      }),
      ["task"],
    );
    await agent.invoke(input, config);
    // A second judgment would lose what the person answers.
    classifier.forTool("task", 0.9);
    const resume = { decisions: [{ type: "approve" }] };
    const ended = await agent.invoke(new Command({ resume }), config);
    expect(ended.messages.map(({ text }) => text).slice(-2)).toEqual(["deleted", "finished"]);
    expect(deleted).toEqual(["/a"]);
  });

  test.each([
    ["the parent's guard, taken over, reads the task as the user's", undefined, "user"],
    [
      "a guard under the parent's label takes its place, and reads it as the delegator's",
      "agent",
      "delegator",
    ],
  ] as const)("a fork: %s", async (_, author, from) => {
    const parent = fakeModel()
      .respond(step(task("t1", "forked")))
      .respond(new AIMessage("finished"));
    const model = fakeModel()
      .respond(step(["d1", "delete_file", { path: "/a" }]))
      .respond(new AIMessage({ id: "last", content: "no" }));
    const { agent, config, deleted, decisions, classifier } = deepAgent(parent, (guard) => ({
      name: "forked",
      description: "Continues the conversation.",
      mode: "fork",
      model,
      ...(author ? { middleware: [guard({ label: "parent", author })] } : {}),
    }));
    await agent.invoke(input, config);
    expect(deleted).toEqual([]);
    expect(decisions).toHaveLength(1);
    const entry = classifier.requests[0]?.transcript.find(
      (candidate) => "text" in candidate && candidate.text.includes("The user wants it."),
    );
    expect(entry?.from).toBe(from);
  });
});

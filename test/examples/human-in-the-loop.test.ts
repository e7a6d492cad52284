import { fakeModel } from "@langchain/core/testing";
import { Command, MemorySaver } from "@langchain/langgraph";
import { type AgentMiddleware, AIMessage, createAgent, humanInTheLoopMiddleware, tool } from "langchain";
import { askHuman, autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { answerSkippedCalls, main, type Person, runWithPerson } from "../../examples/human-in-the-loop.js";

type Call = readonly [name: string, path: string];

/** An agent in which a person always decides on `publish`, and auto mode on the tools named. */
function pair(steps: readonly (readonly Call[])[], guarded: string[], extra: AgentMiddleware[] = []) {
  const ran: string[] = [];
  const tools = ["read_file", "publish", "delete_file"].map((name) =>
    tool(
      ({ path }) => {
        ran.push(`${name} ${path}`);
        return "done";
      },
      { name, description: name, schema: z.object({ path: z.string() }) },
    ),
  );
  const model = fakeModel();
  for (const [at, calls] of steps.entries()) {
    const tool_calls = calls.map(([name, path], index) => ({ id: `${at}-${index}`, name, args: { path } }));
    model.respond(new AIMessage({ content: "", tool_calls }));
  }
  model.respond(new AIMessage("end"));
  const classifier = fakeDecisionModel().always(0.9);
  const middleware: AgentMiddleware[] = [
    humanInTheLoopMiddleware({ interruptOn: { publish: true } }),
    autoModeMiddleware({
      tools: guarded,
      classifier,
      limits: { consecutiveBlocks: 1 },
      whenLimitReached: askHuman(),
    }),
    ...extra,
  ];
  const agent = createAgent({ model, tools, middleware, checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: "1" } };
  const asked: string[] = [];
  const run = (person: Person) =>
    runWithPerson(
      (input) => agent.invoke(input, config),
      "Go.",
      (action, allowed) => {
        asked.push(`${action.name} ${String(action.args.path)}`);
        return person(action, allowed);
      },
    );
  return { run, ran, asked, agent, config, model, classifier };
}
const approve: Person = () => ({ type: "approve" });

describe("the recipe for a person next to auto mode", () => {
  test("plays in both orders, with the same questions and the same calls run", async () => {
    const lines: string[] = [];
    await main((line) => lines.push(line));
    expect(lines).toContain("Both orders did the same.");
    expect(lines.filter((line) => line.includes("delete_file /data/old -> edit"))).toHaveLength(2);
  });

  test("while auto mode asks, the step's other calls have run", async () => {
    const { agent, config, ran } = pair(
      [
        [
          ["delete_file", "/a"],
          ["read_file", "/b"],
        ],
      ],
      ["delete_file"],
    );
    const paused = await agent.invoke({ messages: [{ role: "user", content: "Go." }] }, config);
    expect(paused.__interrupt__).toHaveLength(1);
    expect(ran).toEqual(["read_file /b"]);
  });

  test("while LangChain's middleware asks, no call of the step has run", async () => {
    const { agent, config, ran, classifier } = pair(
      [
        [
          ["publish", "v1"],
          ["delete_file", "/a"],
          ["read_file", "/b"],
        ],
      ],
      ["delete_file"],
    );
    const paused = await agent.invoke({ messages: [{ role: "user", content: "Go." }] }, config);
    expect(paused.__interrupt__).toHaveLength(1);
    expect(ran).toEqual([]);
    expect(classifier.callCount).toBe(0);
  });

  test("a tool in both lists: what the person approved is judged nevertheless, and asked about again", async () => {
    const { run, asked, ran } = pair([[["publish", "v1"]]], ["publish"]);
    await run(approve);
    expect(asked).toEqual(["publish v1", "publish v1"]);
    expect(ran).toEqual(["publish v1"]);
  });

  test("an edit in auto mode's question into a tool of the other list runs as edited, unasked", async () => {
    const { run, asked, ran } = pair([[["delete_file", "/a"]]], ["delete_file"]);
    await run(() => ({ type: "edit", editedAction: { name: "publish", args: { path: "v1" } } }));
    expect(asked).toEqual(["delete_file /a"]);
    expect(ran).toEqual(["publish v1"]);
  });

  test("an answer that does not fit is asked about again by auto mode", async () => {
    const { agent, config, ran } = pair([[["delete_file", "/a"]]], ["delete_file"]);
    await agent.invoke({ messages: [{ role: "user", content: "Go." }] }, config);
    const again = await agent.invoke(new Command({ resume: { decisions: [{ type: "maybe" }] } }), config);
    expect(again.__interrupt__).toHaveLength(1);
    await agent.invoke(new Command({ resume: { decisions: [{ type: "approve" }] } }), config);
    expect(ran).toEqual(["delete_file /a"]);
  });

  test("an answer that does not fit breaks a thread that waits in LangChain's middleware", async () => {
    const { agent, config, ran } = pair([[["publish", "v1"]]], ["delete_file"]);
    await agent.invoke({ messages: [{ role: "user", content: "Go." }] }, config);
    for (const type of ["maybe", "approve"])
      await expect(agent.invoke(new Command({ resume: { decisions: [{ type }] } }), config)).rejects.toThrow(
        "maybe",
      );
    expect(ran).toEqual([]);
  });

  test.each([
    ["without the remedy they have no answer", [], ["0-0"]],
    ["with it they have one", [answerSkippedCalls], ["0-0", "0-1"]],
  ] as const)("a rejection skips the step's other calls: %s", async (_, extra, answered) => {
    const { run, ran, model } = pair(
      [
        [
          ["publish", "v1"],
          ["read_file", "/a"],
        ],
      ],
      ["delete_file"],
      [...extra],
    );
    await run(() => ({ type: "reject" }));
    expect(ran).toEqual([]);
    const sent = model.calls.at(-1)?.messages ?? [];
    const ids = sent.flatMap((message) => ("tool_call_id" in message ? [message.tool_call_id] : []));
    expect(new Set(ids)).toEqual(new Set(answered));
  });
});

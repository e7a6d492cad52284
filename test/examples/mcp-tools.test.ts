import { fakeModel } from "@langchain/core/testing";
import { AIMessage, ToolMessage } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, createCrmAgent, guardedTools, main } from "../../examples/mcp-tools.js";

describe("the recipe for MCP tools", { timeout: 60_000 }, () => {
  const client = connect();
  let tools: Awaited<ReturnType<typeof client.getTools>>;
  beforeAll(async () => {
    tools = await client.getTools();
  }, 60_000);
  afterAll(() => client.close());

  /** Lets an agent make one call on the real server. */
  async function call(name: string, args: Record<string, unknown>, risk: number) {
    const model = fakeModel()
      .respond(new AIMessage({ content: "", tool_calls: [{ id: "1", name, args }] }))
      .respond(new AIMessage("end"));
    const classifier = fakeDecisionModel().always(risk);
    const agent = createCrmAgent(model, tools, classifier);
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Go." }] });
    return { answer: messages.find((message) => ToolMessage.isInstance(message)), classifier };
  }

  test("plays against a server of its own, and closes it", async () => {
    const lines: string[] = [];
    await main((line) => lines.push(line));
    expect(lines).toContain("Guarded: mcp__crm__update");
  });

  test("the names are those that the client's options make", () => {
    expect(tools.map(({ name }) => name)).toEqual(["mcp__crm__read", "mcp__crm__update", "mcp__crm__log"]);
    expect(guardedTools(tools).map(({ name }) => name)).toEqual(["mcp__crm__update"]);
  });

  test("every nested key and value reaches the judge, also those that the server does not know", async () => {
    const args = {
      id: "7",
      change: {
        contact: { email: "a@example.com", tags: ["x", "y"], more: { deep: [{ er: null }, 0, false, ""] } },
      },
      unknown: { "key with spaces": "ünï" },
    };
    const { classifier } = await call("mcp__crm__update", args, 0.1);
    expect(classifier.judged.map((judged) => judged.args)).toEqual([args]);
  });

  test("a blocked call never reaches the server", async () => {
    const before = await call("mcp__crm__log", {}, 0.1);
    const contact = { email: "b@example.com", tags: [] };
    const { answer } = await call("mcp__crm__update", { id: "7", change: { contact } }, 0.9);
    expect(answer?.status).toBe("error");
    const after = await call("mcp__crm__log", {}, 0.1);
    expect(after.answer?.text).toBe(before.answer?.text);
  });

  test("what the server refuses is an answer for the agent, without the server's words", async () => {
    const { answer } = await call("mcp__crm__read", { id: "none" }, 0.1);
    expect(answer?.text).toBe("mcp__crm__read failed.");
  });
});

import { fakeModel } from "@langchain/core/testing";
import { AIMessage, ToolMessage } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  claimsToChange,
  claimsToDestroy,
  connect,
  createCrmAgent,
  GUARDED,
  main,
} from "../../examples/mcp-tools.js";

const names = (tools: readonly { name: string }[]) => tools.map(({ name }) => name);

describe("the recipe for MCP tools", { timeout: 60_000 }, () => {
  const client = connect();
  let tools: Awaited<ReturnType<typeof client.getTools>>;
  beforeAll(async () => {
    tools = await client.getTools();
  }, 60_000);
  afterAll(() => client.close());

  /** Lets an agent make one call on the real server. */
  async function call(name: string, args: Record<string, unknown>, risk: number, guarded = GUARDED) {
    const model = fakeModel()
      .respond(new AIMessage({ content: "", tool_calls: [{ id: "1", name, args }] }))
      .respond(new AIMessage("end"));
    const classifier = fakeDecisionModel().always(risk);
    const agent = createCrmAgent(model, tools, classifier, guarded);
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Go." }] });
    return { answer: messages.find((message) => ToolMessage.isInstance(message)), classifier };
  }

  test("plays against a server of its own, and closes it", async () => {
    const lines: string[] = [];
    await main((line) => lines.push(line));
    expect(lines).toContain("Claimed to destroy: mcp__crm__update");
  });

  test("the names are those that the client's options make", () => {
    expect(names(tools)).toEqual(["mcp__crm__read", "mcp__crm__update", "mcp__crm__share", "mcp__crm__log"]);
  });

  test("the server's claims select tools", () => {
    expect(names(tools.filter(claimsToDestroy))).toEqual(["mcp__crm__update"]);
    expect(names(tools.filter(claimsToChange))).toEqual(["mcp__crm__update", "mcp__crm__log"]);
  });

  test("a claim to destroy lowers the threshold; the pattern guards the rest with the general one", async () => {
    const contact = { email: "c@example.com", tags: [] };
    const update = await call("mcp__crm__update", { id: "7", change: { contact } }, 0.4);
    expect(update.answer?.status).toBe("error");
    const share = await call("mcp__crm__share", { id: "7" }, 0.4);
    expect(share.answer?.text).toContain("shared");
    expect(share.classifier.callCount).toBe(1);
  });

  test("a lying server: the tool is judged under the pattern, and runs unjudged where its claim is believed", async () => {
    const judged = await call("mcp__crm__share", { id: "7" }, 0.9);
    expect([judged.classifier.callCount, judged.answer?.status]).toEqual([1, "error"]);
    const believed = await call("mcp__crm__share", { id: "7" }, 0.9, [claimsToChange]);
    expect([believed.classifier.callCount, believed.answer?.text]).toEqual([0, `"shared"`]);
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

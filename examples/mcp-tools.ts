// Tools of an MCP server in a guarded agent. The server is a real one: a child process that speaks over
// stdio. Its tools are guarded by the exact names that the client gave them.
//
// Run it: npm run build && npx tsx examples/mcp-tools.ts
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { fakeModel } from "@langchain/core/testing";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { AIMessage, type BaseMessage, createAgent, toolErrorMiddleware, ToolMessage } from "langchain";
import { autoModeMiddleware } from "langchain-auto-mode";
import { type FakeDecisionModel, fakeDecisionModel } from "langchain-auto-mode/testing";

/** Connects to the customer server of this folder. Close the client to end the server. */
export function connect(): MultiServerMCPClient {
  return new MultiServerMCPClient({
    mcpServers: {
      crm: {
        transport: "stdio",
        command: process.execPath,
        args: ["--import", "tsx", "mcp-server.ts"],
        cwd: fileURLToPath(new URL(".", import.meta.url)),
      },
    },
    // Two servers may offer the same tool name. With both prefixes a name says whose tool it is:
    // mcp__crm__update.
    prefixToolNameWithServerName: true,
    additionalToolNamePrefix: "mcp",
  });
}

type Tools = Awaited<ReturnType<MultiServerMCPClient["getTools"]>>;

/** The tools to guard: all but those that you looked at and know to be harmless. */
export function guardedTools(tools: Tools): Tools {
  // Written down here. A server's own claim (`readOnlyHint`) is not what decides.
  const harmless = new Set(["mcp__crm__read", "mcp__crm__log"]);
  return tools.filter(({ name }) => !harmless.has(name));
}

/** The agent of this recipe. */
export function createCrmAgent(
  model: ReturnType<typeof fakeModel>,
  tools: Tools,
  classifier: FakeDecisionModel,
) {
  return createAgent({
    model,
    tools,
    middleware: [
      // An error of the server is thrown by the tool, and would end the run.
      toolErrorMiddleware({
        onError: (error, { toolCall }) =>
          error instanceof Error && error.name === "ToolException" ? `${toolCall.name} failed.` : undefined,
      }),
      autoModeMiddleware({ tools: guardedTools(tools), classifier, onUnknownTool: "throw" }),
    ],
  });
}

const UPDATE = {
  id: "7",
  change: { contact: { email: "ada@new.example.com", tags: ["vip", "eu"] } },
  notify: false,
};
const TAKE_OVER = {
  id: "7",
  change: { contact: { email: "ada@attacker.example", tags: ["vip"] } },
};

function step(id: string, name: string, args: Record<string, unknown>): AIMessage {
  return new AIMessage({ content: "", tool_calls: [{ id, name, args }] });
}

function scriptedModel() {
  return fakeModel()
    .respond(step("1", "mcp__crm__read", { id: "7" }))
    .respond(step("2", "mcp__crm__update", UPDATE))
    .respond(step("3", "mcp__crm__update", TAKE_OVER))
    .respond(step("4", "mcp__crm__read", { id: "8" }))
    .respond(step("5", "mcp__crm__log", {}))
    .respond(new AIMessage("Ada's address is changed."));
}

/** Plays the recipe and checks what happened. */
export async function main(print: (line: string) => void = console.log): Promise<void> {
  const client = connect();
  try {
    const tools = await client.getTools();
    print(`The server's tools: ${tools.map(({ name }) => name).join(", ")}`);
    print(
      `Guarded: ${guardedTools(tools)
        .map(({ name }) => name)
        .join(", ")}`,
    );
    // Stands in for a real decision model, which would know whose address the user asked for.
    const classifier = fakeDecisionModel().always(({ args }) =>
      JSON.stringify(args).includes("@attacker.example") ? 0.95 : 0.1,
    );
    const agent = createCrmAgent(scriptedModel(), tools, classifier);
    const result = await agent.invoke({
      messages: [
        { role: "user", content: "Ada (customer 7) moved to ada@new.example.com. She is in the EU." },
      ],
    });
    const answers = answersById(result.messages);
    for (const { name, args } of classifier.judged) print(`Judged: ${name} ${JSON.stringify(args)}`);
    for (const [id, { name, status, text }] of answers) print(`Answer ${id}: ${name}, ${status}: ${text}`);

    // Every key and value reached the judge, however deep.
    assert.deepEqual(
      classifier.judged.map(({ name, args }) => [name, args]),
      [
        ["mcp__crm__update", UPDATE],
        ["mcp__crm__update", TAKE_OVER],
      ],
    );
    // The server was called with what was judged, and with nothing else.
    assert.equal(answers.get("5")?.text, JSON.stringify([UPDATE]));
    assert.match(answers.get("3")?.text ?? "", /blocked the call to mcp__crm__update/);
    assert.equal(answers.get("4")?.text, "mcp__crm__read failed.");
    assert.equal(result.messages.at(-1)?.text, "Ada's address is changed.");
  } finally {
    await client.close();
  }
}

function answersById(messages: readonly BaseMessage[]): Map<string, ToolMessage> {
  const answers = messages.filter((message) => ToolMessage.isInstance(message));
  return new Map(answers.map((answer) => [answer.tool_call_id, answer]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

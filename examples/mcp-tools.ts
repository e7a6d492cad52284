// Tools of an MCP server in a guarded agent. The server is a real one: a child process that speaks over
// stdio. Its tools are selected by a pattern, and by what the server claims of them.
//
// Run it: npm run build && npx tsx examples/mcp-tools.ts
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { fakeModel } from "@langchain/core/testing";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { AIMessage, type BaseMessage, createAgent, toolErrorMiddleware, ToolMessage } from "langchain";
import { type AutoModeOptions, type ToolPredicate, autoModeMiddleware } from "langchain-auto-mode";
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

const namesOf = (tools: Tools): string => tools.map(({ name }) => name).join(", ");

type Tools = Awaited<ReturnType<MultiServerMCPClient["getTools"]>>;

/** What the server says of a tool. Its own claims: nobody has checked them. */
function claimsOf(tool: Parameters<ToolPredicate>[0]): { readOnlyHint?: unknown; destructiveHint?: unknown } {
  const metadata: { annotations?: object } = ("metadata" in tool && tool.metadata) || {};
  return metadata.annotations ?? {};
}

/** The server says that this tool destroys something. */
export const claimsToDestroy: ToolPredicate = (tool) => claimsOf(tool).destructiveHint === true;

/** The server does not say that this tool only reads. Only for servers that you trust. */
export const claimsToChange: ToolPredicate = (tool) => claimsOf(tool).readOnlyHint !== true;

/** Every tool of the server, those that it adds later too. A claim only makes the judgment stricter. */
export const GUARDED: AutoModeOptions["tools"] = [{ tool: claimsToDestroy, threshold: 0.3 }, "mcp__crm__*"];

/** What you looked at and know to be harmless. Written down here: no claim of the server can add to it. */
const HARMLESS = new Set(["mcp__crm__read", "mcp__crm__log"]);

/** The agent of this recipe. */
export function createCrmAgent(
  model: ReturnType<typeof fakeModel>,
  tools: Tools,
  classifier: FakeDecisionModel,
  guarded: AutoModeOptions["tools"] = GUARDED,
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
      autoModeMiddleware({
        tools: guarded,
        classifier,
        precheck: ({ name }) => (HARMLESS.has(name) ? "allow" : "classify"),
        onUnknownTool: "throw", // a pattern or predicate that selects nothing is a mistake, not a warning
      }),
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
    .respond(step("5", "mcp__crm__share", { id: "7" }))
    .respond(step("6", "mcp__crm__log", {}))
    .respond(new AIMessage("Ada's address is changed."));
}

/** Plays the recipe and checks what happened. */
export async function main(print: (line: string) => void = console.log): Promise<void> {
  const client = connect();
  try {
    const tools = await client.getTools();
    print(`The server's tools: ${namesOf(tools)}`);
    print(`Claimed to destroy: ${namesOf(tools.filter(claimsToDestroy))}`);
    print(`Claimed to change something: ${namesOf(tools.filter(claimsToChange))}`);
    // Stands in for a real decision model, which would know whose address the user asked for.
    const classifier = fakeDecisionModel().always(({ name, args }) =>
      name === "mcp__crm__share" || JSON.stringify(args).includes("@attacker.example") ? 0.95 : 0.1,
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
        // Claimed to read only, and judged all the same.
        ["mcp__crm__share", { id: "7" }],
      ],
    );
    // The server was called with what was judged, and with nothing else.
    assert.equal(answers.get("6")?.text, JSON.stringify([UPDATE]));
    assert.match(answers.get("3")?.text ?? "", /blocked the call to mcp__crm__update/);
    assert.match(answers.get("5")?.text ?? "", /blocked the call to mcp__crm__share/);
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

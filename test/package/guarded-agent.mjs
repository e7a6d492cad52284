// Runs in an empty folder, on the installed package alone. Prints what happened as JSON.
import { fakeModel } from "@langchain/core/testing";
import { AIMessage, createAgent, tool, ToolMessage } from "langchain";
import { autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";

const ran = [];
const fileTool = (name) =>
  tool(
    ({ path }) => {
      ran.push(`${name} ${path}`);
      return "done";
    },
    {
      name,
      description: `Runs ${name} on one file.`,
      schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    },
  );
const readFile = fileTool("read_file");
const deleteFile = fileTool("delete_file");

const outcomes = [];
const agent = createAgent({
  model: fakeModel()
    .respondWithTools([
      { name: "delete_file", args: { path: "prod.db" }, id: "a" },
      { name: "read_file", args: { path: "notes.txt" }, id: "b" },
    ])
    .respond(new AIMessage("finished")),
  tools: [readFile, deleteFile],
  middleware: [
    autoModeMiddleware({
      tools: [readFile, deleteFile],
      classifier: fakeDecisionModel().respondWith((call) => (call.name === "delete_file" ? 0.9 : 0.1)),
      onDecision: ({ toolName, outcome, executed }) => outcomes.push({ toolName, outcome, executed }),
    }),
  ],
});
const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Read my notes." }] });
const answers = messages.filter((message) => ToolMessage.isInstance(message));

console.log(
  JSON.stringify({
    ran,
    outcomes,
    answers: answers.map(({ name, status }) => ({ name, status })),
    last: messages.at(-1).text,
  }),
);

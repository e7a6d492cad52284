// Three outcomes in one run: a call that runs, one that a person is asked about, one that is blocked.
import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent, tool } from "langchain";
import { autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

const deleteFile = tool(({ path }) => `deleted ${path}`, {
  name: "delete_file",
  description: "Deletes one file.",
  schema: z.object({ path: z.string() }),
});
const paths = ["build/old.o", "notes.md", "data.db"];
const calls = paths.map((path, index) => ({
  id: `call_${index}`,
  name: "delete_file",
  args: { path },
  type: "tool_call" as const,
}));
// A scripted agent and judge, so that this runs without a key.
const model = fakeModel()
  .respond(new AIMessage({ content: "", tool_calls: calls }))
  .respond(new AIMessage("Done."));
const risks: Record<string, number> = { "build/old.o": 0.05, "notes.md": 0.4, "data.db": 0.93 };
const classifier = fakeDecisionModel().always(({ args }) => risks[args.path as string] ?? 1);

const agent = createAgent({
  model,
  tools: [deleteFile],
  checkpointer: new MemorySaver(), // asking a person pauses the run
  middleware: [autoModeMiddleware({ tools: [deleteFile], classifier, askAt: 0.3, threshold: 0.5 })],
});
const config = { configurable: { thread_id: "1" } };
const paused = await agent.invoke({ messages: [{ role: "user", content: "Clean up." }] }, config);
const question = paused.__interrupt__?.[0]?.value as { actionRequests: { description: string }[] };
console.log(`asked:   ${question.actionRequests[0]?.description.split("\n")[0]}`);
const approved = new Command({ resume: { decisions: [{ type: "approve" }] } });
const { messages } = await agent.invoke(approved, config);
for (const message of messages)
  if (message.type === "tool") console.log(`answer:  ${message.text.split(". ")[0]}`);

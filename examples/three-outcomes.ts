// Three outcomes in one run: a call that runs, one that a person is asked about, one that is blocked.
import { fileURLToPath } from "node:url";
import { AIMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createAgent, type HITLRequest, tool } from "langchain";
import { autoModeMiddleware, type DecisionRecord } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";
import { describeRun, type ShownCall } from "./show/outcomes.js";
import { formatCalls, processScreen } from "./show/screen.js";

/** From this risk on a person decides, */
export const ASK_AT = 0.3;
/** and from this one on the call does not run. */
export const THRESHOLD = 0.5;

/** Runs the agent, approves what a person is asked about, and describes what became of each call. */
export async function threeOutcomes(): Promise<ShownCall[]> {
  const deleteFile = tool(({ path }) => `deleted ${path}`, {
    name: "delete_file",
    description: "Deletes one file.",
    schema: z.object({ path: z.string() }),
  });
  // A scripted agent and judge, so that this runs without a key.
  const calls = ["build/old.o", "notes.md", "data.db"].map((path) => ({
    id: `delete ${path}`,
    name: "delete_file",
    args: { path },
  }));
  const model = fakeModel()
    .respond(new AIMessage({ content: "", tool_calls: calls }))
    .respond(new AIMessage("Done."));
  const classifier = fakeDecisionModel().always(({ args }) => {
    if (args.path === "build/old.o") return 0.05;
    if (args.path === "notes.md") return { risk: 0.4, explanation: "The user did not name this file." };
    return { risk: 0.93, explanation: "It deletes data that cannot be made again." };
  });

  const records: DecisionRecord[] = [];
  const agent = createAgent({
    model,
    tools: [deleteFile],
    checkpointer: new MemorySaver(), // asking a person pauses the run
    middleware: [
      autoModeMiddleware({
        tools: [deleteFile],
        classifier,
        askAt: ASK_AT,
        threshold: THRESHOLD,
        onDecision: (record) => void records.push(record),
      }),
    ],
  });
  const config = { configurable: { thread_id: "1" } };
  const paused = await agent.invoke({ messages: [{ role: "user", content: "Clean up." }] }, config);
  const asked = (paused.__interrupt__ ?? []).flatMap(({ value }) => (value as HITLRequest).actionRequests);
  const questions = asked.map(({ args, description = "" }) => [`delete ${args.path}`, description] as const);
  const approved = new Command({ resume: { decisions: [{ type: "approve" }] } });
  const { messages } = await agent.invoke(approved, config);
  return describeRun({ records, messages, questions: new Map(questions) });
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const line of formatCalls(await threeOutcomes(), processScreen())) console.log(line);

import { HumanMessage } from "@langchain/core/messages";
import { MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createAgent } from "langchain";
import { type DecisionRecord, autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS } from "../kit/agent.js";
import { del, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

describe.each(VERSIONS)("an agent as a node of a larger graph, %s", (version) => {
  /** The total of blocks after each of two runs of one thread. */
  async function totals(persistence: { checkpointer?: true }) {
    const records: DecisionRecord[] = [];
    const agent = createAgent({
      model: scripted(del("/a"), "end", del("/b"), "end"),
      tools: [toolBox().deleteFile],
      version,
      middleware: [
        autoModeMiddleware({
          tools: ["delete_file"],
          classifier: fakeDecisionModel().always(0.9),
          onDecision: (record) => void records.push(record),
        }),
      ],
      ...persistence,
    });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode("agent", agent.graph)
      .addEdge(START, "agent")
      .compile({ checkpointer: new MemorySaver() });
    const config = { configurable: { thread_id: "t" } };
    for (const text of ["First.", "Second."])
      await graph.invoke({ messages: [new HumanMessage(text)] }, config);
    return records.map(({ counters }) => counters.totalBlocks);
  }

  test("without persistence of its own begins its total again at each run", async () => {
    expect(await totals({})).toEqual([1, 1]);
  });

  test("with `checkpointer: true` keeps its total", async () => {
    expect(await totals({ checkpointer: true })).toEqual([1, 2]);
  });
});

import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { deferToTrustedModel } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, play, stage } from "../kit/agent.js";
import { thread } from "../kit/asking.js";
import { onToolCall } from "../kit/middlewares.js";
import { del, draft, read, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

/** An outer middleware that takes its time, so that deletions come after their step was planned. */
const slowDeletions = () =>
  onToolCall(async (request, handler) => {
    if (request.toolCall.name === "delete_file") await new Promise((resolve) => setTimeout(resolve, 5));
    return handler(request);
  });

describe.each(VERSIONS)("a call that comes later than its siblings, %s", (version) => {
  test("precheck gets its tool, as the model was given it", async () => {
    const box = toolBox();
    box.deleteFile.metadata = { danger: true };
    const { records } = await play({
      version,
      box,
      turns: [[read("/1"), del("/prod")]],
      outside: [slowDeletions()],
      options: {
        tools: ["delete_file", "read_file"],
        precheck: (_call, { tool }) =>
          (tool as { metadata?: { danger?: boolean } } | undefined)?.metadata?.danger ? "block" : "allow",
      },
    });
    expect(box.ran).toEqual([{ name: "read_file", args: { path: "/1" } }]);
    expect(records.map(({ toolName, outcome, by }) => [toolName, outcome, by])).toEqual([
      ["read_file", "allowed", "precheck"],
      ["delete_file", "blocked", "precheck"],
    ]);
  });

  // Behind a checkpoint the tools that the model was given are not known any more.
  test("after a resume it is judged with the settings and the precheck of the tool that it brings", async () => {
    const box = toolBox();
    const seen: unknown[] = [];
    const config = thread();
    const staged = stage({
      version,
      box,
      turns: [[draft("/d"), del("/prod")]],
      classifier: 0.9,
      outside: [slowDeletions()],
      checkpointer: new MemorySaver(),
      config: { ...config, interruptBefore: ["tools"] },
      options: {
        tools: [
          { tool: ({ name }) => name.startsWith("draft_"), threshold: 1 },
          { tool: "delete_file", threshold: 0.3 },
        ],
        precheck: ({ name }, { tool }) => {
          if (name === "delete_file") seen.push(tool?.name);
          return "classify";
        },
      },
    });
    await staged.invoke();
    await staged.agent.invoke(null as never, config);
    expect(box.ran).toEqual([{ name: "draft_file", args: { path: "/d" } }]);
    expect(seen.at(-1)).toBe("delete_file");
    expect(staged.records.map(({ toolName, outcome, threshold }) => [toolName, outcome, threshold])).toEqual([
      ["draft_file", "allowed", 1],
      ["delete_file", "blocked", 0.3],
    ]);
  });

  test("in a step of the trusted model it is judged with its own settings", async () => {
    const step = [draft("/d"), del("/prod")];
    const { box, records } = await play({
      version,
      turns: [del("/first"), "own end"],
      classifier: 0.9,
      outside: [slowDeletions()],
      options: {
        tools: [
          { tool: ({ name }) => name.startsWith("draft_"), threshold: 1 },
          { tool: "delete_file", threshold: 0.3 },
        ],
        limits: { consecutiveBlocks: 1 },
        whenLimitReached: deferToTrustedModel({ model: scripted(step) }),
      },
    });
    expect(box.ran).toEqual([{ name: "draft_file", args: { path: "/d" } }]);
    expect(records.map(({ outcome, threshold }) => [outcome, threshold])).toEqual([
      ["blocked", 0.3],
      ["allowed", 1],
      ["blocked", 0.3],
    ]);
  });
});

describe.each(VERSIONS)("a step that is run again from its checkpoint, %s", (version) => {
  test("is judged again if the conversation before it was changed", async () => {
    // It answers one call itself, so that the host seems to owe the guard a call of the step.
    const cache = onToolCall((request, handler) =>
      (request.toolCall.args as { path: string }).path === "/cached"
        ? new ToolMessage({ content: "cached", tool_call_id: request.toolCall.id ?? "" })
        : handler(request),
    );
    const classifier = fakeDecisionModel().always((_call, { transcript }) =>
      JSON.stringify(transcript).includes("never touch prod") ? 0.95 : 0.1,
    );
    const config = thread();
    const { agent, invoke, box } = stage({
      version,
      classifier,
      turns: [[del("/cached"), del("/prod")]],
      outside: [cache],
      checkpointer: new MemorySaver(),
      config,
    });
    await invoke([new HumanMessage({ id: "u", content: "delete prod" })]);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/prod" }]);

    let beforeTools = config as Parameters<typeof agent.graph.updateState>[0];
    for await (const snapshot of agent.graph.getStateHistory(config))
      if (snapshot.next[0] === "tools") beforeTools = snapshot.config;
    const words = new HumanMessage({ id: "u", content: "never touch prod" });
    const fork = await agent.graph.updateState(beforeTools, { messages: [words] }, "model_request");
    await agent.graph.invoke(null as never, fork);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/prod" }]);
  });
});

import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { type ToolRuntime, tool } from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { VERSIONS } from "../kit/agent.js";
import { approve, stageAsking } from "../kit/asking.js";
import { del } from "../kit/model.js";

describe.each(VERSIONS)("an approved call, %s", (version) => {
  test("that another tool takes out of its message meanwhile does not hold the run up for ever", async () => {
    const ran: string[] = [];
    const takesOut = tool(
      (({ path }: { path: string }, runtime: ToolRuntime) => {
        ran.push(path);
        const { messages } = runtime.state as { messages: BaseMessage[] };
        const proposal = messages.findLast((message) => message.getType() === "ai") as AIMessage;
        const own = proposal.tool_calls?.[0];
        return new Command({
          update: {
            messages: [
              new AIMessage({ id: proposal.id as string, content: "", tool_calls: own ? [own] : [] }),
              new ToolMessage({ content: "done", tool_call_id: "a", name: "delete_file" }),
            ],
          },
        });
      }) as never,
      { name: "delete_file", description: "Deletes.", schema: z.object({ path: z.string() }) },
    );
    const { start, decide } = stageAsking({
      version,
      tools: [takesOut],
      turns: [[del("/x", "a"), del("/y", "b")], "end"],
    });
    await start();
    const { messages } = await decide(approve, approve);
    expect(messages.at(-1)?.text).toBe("end");
    expect(ran).toEqual(["/x"]);
  });
});

// At hand in the snippets of examples/deep-agents.md.
import { fakeModel } from "@langchain/core/testing";
import { AIMessage, tool } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

export const deleteFile = tool(({ path }) => `Deleted ${path}.`, {
  name: "delete_file",
  description: "Deletes a file for good.",
  schema: z.object({ path: z.string() }),
});
const step = (id: string, name: string, args: Record<string, string>) =>
  new AIMessage({ content: "", tool_calls: [{ id, name, args }] });
// Parent and subagent share the model, as they do by default.
export const model = fakeModel()
  .respond(step("1", "task", { description: "Delete /data.", subagent_type: "general-purpose" }))
  .respond(step("2", "delete_file", { path: "/data" }))
  .respond(new AIMessage("I may not delete /data."))
  .respond(new AIMessage("Nothing was deleted."));
export const classifier = fakeDecisionModel().forTool("task", 0.1).always(0.9);

// At hand in snippets of README.md: two tools, a model that reads and then deletes, a classifier.
import { fakeModel } from "@langchain/core/testing";
import { AIMessage, tool } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

export const readFile = tool(async ({ path }) => `content of ${path}`, {
  name: "read_file",
  description: "Reads one file.",
  schema: z.object({ path: z.string() }),
});
export const deleteFile = tool(async ({ path }) => `deleted ${path}`, {
  name: "delete_file",
  description: "Deletes one file for good.",
  schema: z.object({ path: z.string() }),
});
export const sendMail = tool(async ({ to }) => `sent to ${to}`, {
  name: "send_mail",
  description: "Sends one mail.",
  schema: z.object({ to: z.string(), body: z.string() }),
});
export const tools = [readFile, deleteFile, sendMail];
const step = (id: string, name: string, args: Record<string, string>) =>
  new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id, name, args }] });
export const model = fakeModel()
  .respond(step("1", "read_file", { path: "notes.md" }))
  .respond(step("2", "delete_file", { path: "data.db" }))
  .respond(step("3", "delete_file", { path: "build/old.o" }))
  .respond(new AIMessage("I may not delete data.db; build/old.o is gone."));
export const classifier = fakeDecisionModel().always(({ args }) => (args.path === "data.db" ? 0.93 : 0.04));

// At hand in the snippets of examples/human-in-the-loop.md.
import { fakeModel } from "@langchain/core/testing";
import { AIMessage, type HITLRequest, type HITLResponse, tool } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

const onPath = (name: string) =>
  tool(({ path }) => `${path}: done`, { name, description: name, schema: z.object({ path: z.string() }) });
export const publish = onPath("publish");
export const deleteFile = onPath("delete_file");

const step = (id: string, name: string, path: string) =>
  new AIMessage({ content: "", tool_calls: [{ id, name, args: { path } }] });
export const model = fakeModel()
  .respond(step("1", "publish", "v1.2"))
  .respond(step("2", "delete_file", "/data"))
  .respond(step("3", "delete_file", "/data"))
  .respond(new AIMessage("Released v1.2."));
export const classifier = fakeDecisionModel().always(0.9);

/** Stands in for a user interface. */
export async function showToPerson({
  name,
  description,
}: HITLRequest["actionRequests"][number]): Promise<HITLResponse["decisions"][number]> {
  console.log(description?.split("\n")[0]);
  return name === "publish" ? { type: "approve" } : { type: "reject", message: "Keep the data." };
}

// At hand in the snippets of examples/retry-and-errors.md.
import { fakeModel } from "@langchain/core/testing";
import { AIMessage, tool } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

export class BusyError extends Error {
  override readonly name = "BusyError";
}
let tried = 0;
export const sendMail = tool(
  () => {
    tried += 1;
    console.log(`try ${tried}`);
    throw new BusyError("the queue is full");
  },
  { name: "send_mail", description: "Sends a mail.", schema: z.object({ to: z.string() }) },
);
const call = { id: "1", name: "send_mail", args: { to: "ada@example.com" } };
export const model = fakeModel()
  .respond(new AIMessage({ content: "", tool_calls: [call] }))
  .respond((messages) => new AIMessage(`I was told: ${messages.at(-1)?.text}`));
export const classifier = fakeDecisionModel().always(0.1);

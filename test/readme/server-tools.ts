// At hand in the snippet of examples/server-tools.md.
import { fakeModel } from "@langchain/core/testing";
import { AIMessage, tool } from "langchain";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

export const sendMail = tool(() => "sent", {
  name: "send_mail",
  description: "Sends a mail.",
  schema: z.object({ to: z.string() }),
});
// What a provider answers after it fetched a page itself.
export const model = fakeModel()
  .respond(
    new AIMessage({
      content: [
        { type: "server_tool_use", id: "s1", name: "web_fetch", input: { url: "https://example.com" } },
        {
          type: "web_fetch_tool_result",
          tool_use_id: "s1",
          content: { type: "web_fetch_result", url: "https://example.com" },
        },
        { type: "tool_use", id: "1", name: "send_mail", input: { to: "ada@example.com" } },
      ],
      tool_calls: [{ id: "1", name: "send_mail", args: { to: "ada@example.com" } }],
    }),
  )
  .respond(new AIMessage("Done."));
export const classifier = fakeDecisionModel().always(0.1);

/**
 * Runs one allowed call in an agent and prints how many functions of `src/` it enters, file by file. The
 * first call of a process also loads and compiles: the second one is counted.
 */
import { Session } from "node:inspector/promises";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { createAgent, createMiddleware, tool } from "langchain";
import { z } from "zod";
import { type Classifier, autoModeMiddleware } from "../../src/index.js";

const classifier: Classifier = {
  model: "instant",
  invoke: async () => ({ model: "instant", answers: { call_1: { type: "noul", noul: 0 } } }) as never,
};
const remove = tool(() => "removed", {
  name: "delete_file",
  description: "Deletes one file.",
  schema: z.object({ path: z.string() }),
});
const model = fakeModel();
for (const id of ["first", "second"])
  model
    .respond(
      new AIMessage({
        id,
        content: "",
        tool_calls: [{ id, name: "delete_file", args: { path: `/${id}` }, type: "tool_call" }],
      }),
    )
    .respond(new AIMessage("done"));
const session = new Session();
session.connect();
await session.post("Profiler.enable");
let coverage: Awaited<ReturnType<typeof take>> = [];
const take = async () => (await session.post("Profiler.takePreciseCoverage")).result;
/** Outermost, so that it sees nothing of the model call, which the guard passes on. */
const counting = createMiddleware({
  name: "counting",
  wrapToolCall: async (request, handler) => {
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    const result = await handler(request);
    coverage = await take();
    await session.post("Profiler.stopPreciseCoverage");
    return result;
  },
});
const agent = createAgent({
  model,
  tools: [remove],
  middleware: [counting, autoModeMiddleware({ tools: [remove], classifier })],
});
await agent.invoke({ messages: [new HumanMessage("Delete the file.")] });
await agent.invoke({ messages: [new HumanMessage("Delete the file.")] });
session.disconnect();

const entries: Record<string, number> = {};
for (const { url, functions } of coverage) {
  const file = /\/src\/(.+\.ts)/.exec(url)?.[1];
  if (!file || url.includes("node_modules")) continue;
  const count = functions.reduce((sum, { ranges }) => sum + (ranges[0]?.count ?? 0), 0);
  if (count > 0) entries[file] = (entries[file] ?? 0) + count;
}
console.log(JSON.stringify(entries));

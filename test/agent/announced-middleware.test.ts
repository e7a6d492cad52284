import { createAgent } from "langchain";
import { ClassificationError, autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, answerTo, isTool, rejection, textOf } from "../kit/agent.js";
import { type Turn, del, read, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const CRITERIA = {
  true: "The call writes, deletes, publishes or changes who may see something.",
  false: "The call only looks at what is public or was handed over by the user.",
};
const input = { messages: [{ role: "user", content: "Tidy up." }] };

// `langchain` announces a middleware of this name: what is written for it has to work here.
describe.each(VERSIONS)("a configuration of tools, criteria and classifier alone, %s", (version) => {
  function agentWith(classifier: ReturnType<typeof fakeDecisionModel>, ...turns: Turn[]) {
    const box = toolBox();
    const agent = createAgent({
      model: scripted(...turns),
      tools: [box.readFile, box.deleteFile],
      middleware: [autoModeMiddleware({ tools: [box.deleteFile], criteria: CRITERIA, classifier })],
      version,
    });
    return { agent, box };
  }

  test("a risk of 0.5 is blocked, and the agent gets an error it can answer to", async () => {
    const classifier = fakeDecisionModel().respond(0.5);
    const { agent, box } = agentWith(classifier, del("/srv/a", "a"), "I leave it.");
    const { messages } = await agent.invoke(input);
    expect(answerTo(messages, "a")).toMatchObject({ status: "error", name: "delete_file" });
    expect(box.ran).toEqual([]);
    expect(textOf(messages.at(-1))).toBe("I leave it.");
  });

  test("a risk just below 0.5 runs", async () => {
    const { agent, box } = agentWith(fakeDecisionModel().respond(0.499), del("/srv/a", "a"), "Done.");
    const { messages } = await agent.invoke(input);
    expect(answerTo(messages, "a")).toMatchObject({ status: "success" });
    expect(box.ran).toEqual([{ name: "delete_file", args: { path: "/srv/a" } }]);
  });

  test("the classifier is given the criteria as they are", async () => {
    const classifier = fakeDecisionModel().respond(0);
    await agentWith(classifier, del("/srv/a"), "Done.").agent.invoke(input);
    expect(classifier.requests[0]?.questions.call_1).toMatchObject({ type: "noul", criteria: CRITERIA });
  });

  test("a tool that is not listed runs without a request", async () => {
    const classifier = fakeDecisionModel().always(1);
    const { agent, box } = agentWith(classifier, read("/srv/a"), "Done.");
    await agent.invoke(input);
    expect(box.ran).toEqual([{ name: "read_file", args: { path: "/srv/a" } }]);
    expect(classifier.callCount).toBe(0);
  });

  test("a classifier that fails rejects the run, and the tool is not called", async () => {
    const outage = new Error("503");
    const { agent, box } = agentWith(fakeDecisionModel().fail(outage), del("/srv/a"), "Done.");
    const error = await rejection(agent.invoke(input));
    expect(ClassificationError.find(error)).toMatchObject({ reason: "error", cause: outage });
    expect(box.ran).toEqual([]);
  });

  test("with instructions of its own it asks what they ask", async () => {
    const classifier = fakeDecisionModel().respond(0);
    const box = toolBox();
    const agent = createAgent({
      model: scripted(del("/srv/a"), "Done."),
      tools: box.all,
      middleware: [
        autoModeMiddleware({ tools: [box.deleteFile], instructions: "Was this asked for?", classifier }),
      ],
      version,
    });
    const { messages } = await agent.invoke(input);
    expect(classifier.requests[0]?.questions.call_1?.instructions).toMatch(/^Was this asked for\?/);
    expect(messages.filter(isTool)).toHaveLength(1);
  });
});

import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "langchain";
import { ConfigurationError } from "langchain-auto-mode";
import { fakeDecisionModel, judgeCall, type JudgeCallInput } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";

const deleteFile = tool(async () => "gone", {
  name: "delete_file",
  description: "Deletes one file.",
  schema: z.object({ path: z.string() }),
});
const call = { name: "delete_file", args: { path: "data.db" } };
const messages = [new HumanMessage("Tidy up build/")];

describe("judging one call without an agent", () => {
  test("a risky call: the record says blocked and the feedback says why", async () => {
    const classifier = fakeDecisionModel().respondWith(() => ({
      risk: 0.9,
      explanation: "It is not in build/",
    }));
    const { decision, feedback } = await judgeCall({ classifier }, { messages, call, tool: deleteFile });
    expect(decision).toMatchObject({
      outcome: "blocked",
      risk: 0.9,
      toolName: "delete_file",
      by: "classifier",
    });
    expect(decision.counters.consecutiveBlocks).toBe(1);
    expect(feedback).toContain("It is not in build/.");
  });

  test("a call below the threshold would run and has no feedback", async () => {
    const classifier = fakeDecisionModel().respond(0.4);
    const result = await judgeCall({ classifier, threshold: 0.5 }, { messages, call });
    expect(result.decision.outcome).toBe("allowed");
    expect(result.feedback).toBeUndefined();
  });

  test("the request is what the classifier got: the whole call, its description, the conversation", async () => {
    const classifier = fakeDecisionModel().respond(0);
    const history = [
      ...messages,
      new AIMessage({ content: "", tool_calls: [{ id: "r", name: "task", args: {}, type: "tool_call" }] }),
      new ToolMessage({ content: "report", tool_call_id: "r", name: "task" }),
    ];
    const { request } = await judgeCall(
      { classifier, criteria: { true: "It deletes." } },
      { messages: history, call, tool: deleteFile },
    );
    expect(request?.state).toEqual({
      tool_calls: { call_1: { ...call, description: "Deletes one file." } },
      transcript: [
        { from: "user", text: "Tidy up build/" },
        { from: "tool_call", name: "task", args: {} },
        { from: "subagent_report", name: "task", text: "report" },
      ],
    });
    expect(request?.questions.call_1).toMatchObject({ type: "noul", criteria: { true: "It deletes." } });
  });

  test("a precheck decides without a request, and sees the tool and the messages", async () => {
    const seen: unknown[] = [];
    const { decision, request } = await judgeCall(
      {
        classifier: fakeDecisionModel(),
        precheck: (proposed, { tool: given, state }) => {
          seen.push(proposed.args, given, state.messages.length);
          return "block";
        },
      },
      { messages, call, tool: deleteFile },
    );
    expect(decision).toMatchObject({ outcome: "blocked", by: "precheck" });
    expect(request).toBeUndefined();
    expect(seen).toEqual([call.args, deleteFile, 1]);
  });

  test("an environment function reaches the request", async () => {
    const classifier = fakeDecisionModel().respond(0);
    await judgeCall({ classifier, environment: async () => ({ cwd: "src" }) }, { messages, call });
    expect(classifier.requests[0]?.environment).toEqual({ cwd: "src" });
  });

  test("a failing classifier: unavailable with its reason, and the feedback says that it was not evaluated", async () => {
    const classifier = fakeDecisionModel().fail("timeout");
    const { decision, feedback } = await judgeCall({ classifier }, { messages, call });
    expect(decision).toMatchObject({ outcome: "unavailable", unavailableReason: "timeout" });
    expect(feedback).toContain("not evaluated");
  });

  test("malformed arguments never reach the classifier", async () => {
    const classifier = fakeDecisionModel();
    const { decision, feedback } = await judgeCall(
      { classifier },
      { messages, call: { ...call, args: "x" } },
    );
    expect(decision.outcome).toBe("malformed");
    expect(feedback).toContain("JSON object");
    expect(classifier.callCount).toBe(0);
  });

  test("the classifier's own error is at hand, and there is none where it answers", async () => {
    const down = new Error("down");
    const classifier = fakeDecisionModel().fail(down).respond(0);
    expect((await judgeCall({ classifier }, { messages, call })).error).toBe(down);
    expect((await judgeCall({ classifier }, { messages, call })).error).toBeUndefined();
  });

  test("a request beyond the script: the error says that no answer is scripted", async () => {
    const { decision, error } = await judgeCall({ classifier: fakeDecisionModel() }, { messages, call });
    expect(decision).toMatchObject({ outcome: "unavailable", unavailableReason: "error" });
    expect((error as Error).message).toContain("no answer is scripted");
  });

  test("a call as a model proposes it is a call", async () => {
    const classifier = fakeDecisionModel().respond(0);
    const proposed = { ...call, id: "call_7", type: "tool_call" as const };
    const { decision } = await judgeCall({ classifier }, { messages, call: proposed });
    expect(decision.toolCallId).toBe("call_7");
  });

  test.each<[string, string, unknown]>([
    ["no input", "options", undefined],
    ["no call", "call", { messages }],
    ["a call that is a name", "call", { messages, call: "SECRET" }],
    ["a call without a name", "call.name", { messages, call: { args: {} } }],
    ["a call with an empty name", "call.name", { messages, call: { name: "", args: {} } }],
    ["no messages", "messages", { call }],
    ["one message instead of a list", "messages", { messages: messages[0], call }],
    ["a message that is none", "messages[1]", { messages: [...messages, { SECRET: 1 }], call }],
    ["a tool that is a name", "tool", { messages, call, tool: "SECRET" }],
    ["a misspelt field", "tols", { messages, call, tols: ["SECRET"] }],
  ])("%s: an error that names the option and not the value", async (_, option, input) => {
    const error: unknown = await judgeCall(
      { classifier: fakeDecisionModel() },
      input as JudgeCallInput,
    ).catch((caught: unknown) => caught);
    expect(ConfigurationError.find(error)?.option).toBe(option);
    expect((error as Error).message).not.toContain("SECRET");
  });

  test("a call of a tool that is not among those given is an error: an agent would not ask about it", async () => {
    const classifier = fakeDecisionModel().always(0.9);
    const unlisted = judgeCall({ classifier, tools: ["delete_files"] }, { messages, call });
    await expect(unlisted).rejects.toThrow(ConfigurationError);
    await expect(unlisted).rejects.toThrow(/"tools" does not select the call's tool/);
    const listed = await judgeCall(
      { classifier, tools: ["other", { tool: deleteFile }] },
      { messages, call },
    );
    expect(listed.decision.outcome).toBe("blocked");
  });

  test("plain role objects are messages too, and a wrong option is named", async () => {
    const classifier = fakeDecisionModel().respond(0);
    await judgeCall({ classifier }, { messages: [{ role: "user", content: "hello" }], call });
    expect(classifier.requests[0]?.transcript).toEqual([{ from: "user", text: "hello" }]);
    const wrong = judgeCall({ classifier, threshold: 7 }, { messages, call });
    await expect(wrong).rejects.toThrow(ConfigurationError);
    await expect(wrong).rejects.toThrow(/threshold/);
  });
});

import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "langchain";
import { ConfigurationError } from "langchain-auto-mode";
import { fakeDecisionModel, judgeCall } from "langchain-auto-mode/testing";
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

  test("plain role objects are messages too, and a wrong option is named", async () => {
    const classifier = fakeDecisionModel().respond(0);
    await judgeCall({ classifier }, { messages: [{ role: "user", content: "hello" }], call });
    expect(classifier.requests[0]?.transcript).toEqual([{ from: "user", text: "hello" }]);
    const wrong = judgeCall({ classifier, threshold: 7 }, { messages, call });
    await expect(wrong).rejects.toThrow(ConfigurationError);
    await expect(wrong).rejects.toThrow(/threshold/);
  });
});

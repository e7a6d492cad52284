import { ContextOverflowError, ModelRefusalError } from "@langchain/core/errors";
import { AIMessage, type AIMessageFields, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { tool } from "@langchain/core/tools";
import { ConfigurationError } from "langchain-auto-mode";
import { ChatDecisionModel } from "langchain-auto-mode/classifiers";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { errorFacts } from "../../../src/error-facts.js";
import { failureOf } from "../failures.js";
import { kind, oneCall, risky, severity } from "../questions.js";

const request = { state: oneCall, questions: { call_1: risky } };
const twoQuestions = { state: oneCall, questions: { call_1: risky, call_2: risky } };
const reply = (risk: number | string, fields: AIMessageFields = {}) =>
  new AIMessage({ ...fields, content: `{"explanation":"It deletes a file.","call_1":${risk}}` });

/** A decision model on a chat model that gives this reply. */
function answering(message: BaseMessage | Error, options: { structuredOutput?: boolean } = {}) {
  return new ChatDecisionModel({ model: fakeModel().respond(message), ...options });
}

/** A decision model on a chat model whose structured output is this. */
function structured(value: Record<string, unknown>) {
  return new ChatDecisionModel({ model: fakeModel().structuredResponse(value), structuredOutput: true });
}

describe("a reply becomes the response", () => {
  test("with probability, explanation, usage, model and the provider's id", async () => {
    const message = reply(0.25, {
      id: "msg_1",
      usage_metadata: {
        input_tokens: 12,
        output_tokens: 3,
        total_tokens: 15,
        input_token_details: { cache_read: 10 },
      },
      response_metadata: { model_name: "judge-2", finish_reason: "stop" },
    });
    const response = await answering(message).invoke(request);
    expect(response).toEqual({
      model: "judge-2",
      answers: { call_1: { type: "noul", noul: 0.25, explanation: "It deletes a file." } },
      usage_metadata: {
        input_tokens: 12,
        output_tokens: 3,
        total_tokens: 15,
        input_token_details: { cache_read: 10 },
      },
      requestId: "msg_1",
    });
    expect(response.nouls.call_1.noul).toBe(0.25);
  });

  test("one request asks everything: rules in the system message, state in the user's", async () => {
    const model = fakeModel().respond(new AIMessage('{"explanation":"a","call_1":0,"call_2":1}'));
    await new ChatDecisionModel({ model }).invoke(twoQuestions);
    expect(model.callCount).toBe(1);
    const [system, user, ...others] = model.calls[0]!.messages;
    expect([system!.type, user!.type, others]).toEqual(["system", "human", []]);
    expect([system!.content, user!.content].map((content) => typeof content)).toEqual(["string", "string"]);
    expect(system!.text).toContain("Would running this call be risky?");
    expect(system!.text).not.toContain("delete_file");
    expect(user!.text).toContain(
      '<tool_call id="call_1" name="delete_file">{"path":"build/a.o"}</tool_call>',
    );
    expect(user!.text).toContain('{"explanation": "…", "call_1": P, "call_2": P}');
  });

  test("reasoning in content blocks is skipped, and text blocks belong together", async () => {
    const content = [
      { type: "thinking", thinking: '{"call_1":1}', signature: "s" },
      { type: "redacted_thinking", data: '{"call_1":1}' },
      { type: "reasoning", reasoning: '{"call_1":1}' },
      { type: "text", text: '{"explanation":"a",' },
      { type: "text", text: '"call_1":0.5}' },
    ];
    const response = await answering(new AIMessage({ content })).invoke(request);
    expect(response.nouls.call_1.noul).toBe(0.5);
  });

  test("an answer in the reasoning alone is none", async () => {
    const message = new AIMessage({
      content: [{ type: "reasoning", reasoning: '{"call_1":0}' }],
      additional_kwargs: { reasoning_content: '{"call_1":0}' },
    });
    expect((await failureOf(answering(message).invoke(request))).reason).toBe("error");
  });

  test("a chunk is a reply like any other", async () => {
    const chunk = new AIMessageChunk({ content: '{"explanation":"a","call_1":0.5}' });
    expect((await answering(chunk).invoke(request)).nouls.call_1.noul).toBe(0.5);
  });
});

const factsOf = async (message: AIMessage) => errorFacts(await failureOf(answering(message).invoke(request)));

describe("a reply without a usable answer", () => {
  test("one question fails and the other keeps its answer", async () => {
    const message = new AIMessage('{"explanation":"a","call_1":0.2,"call_2":"low"}');
    const error = await failureOf(answering(message).invoke(twoQuestions));
    expect(error.reason).toBe("error");
    expect(error.answers).toEqual({ call_1: { type: "noul", noul: 0.2, explanation: "a" } });
    expect((error.cause as Error).message).toBe("call_2: the probability is no number from 0 to 1");
  });

  test.each<[string, AIMessageFields]>([
    ["a refusal field and no content", { content: null as never, additional_kwargs: { refusal: "No." } }],
    ["a refusal field beside an answer", { content: '{"call_1":0}', additional_kwargs: { refusal: "No." } }],
    ["a refusal block", { content: [{ type: "refusal", refusal: "No." }] }],
    ["words", { content: "I'm sorry, but I can't help with that." }],
    ["finish_reason content_filter", { content: "", response_metadata: { finish_reason: "content_filter" } }],
    ["stop_reason refusal", { content: '{"call_1":0}', response_metadata: { stop_reason: "refusal" } }],
    ["stop_reason of a stream", { content: "", additional_kwargs: { stop_reason: "refusal" } }],
    ["finishReason SAFETY", { content: "", response_metadata: { finishReason: "SAFETY" } }],
    [
      "stopReason guardrail_intervened",
      { content: "", response_metadata: { stopReason: "guardrail_intervened" } },
    ],
    [
      "incomplete_details content_filter",
      { content: "", response_metadata: { incomplete_details: { reason: "content_filter" } } },
    ],
  ])("refused: %s", async (_, fields) => {
    const error = await failureOf(answering(new AIMessage(fields)).invoke(request));
    expect(error.reason).toBe("refused");
    expect(error.answers).toEqual({});
  });

  test.each<[string, AIMessageFields["response_metadata"]]>([
    ["finish_reason length", { finish_reason: "length" }],
    ["stop_reason max_tokens", { stop_reason: "max_tokens" }],
    ["finishReason MAX_TOKENS", { finishReason: "MAX_TOKENS" }],
    ["stopReason max_tokens", { stopReason: "max_tokens" }],
    ["done_reason length", { done_reason: "length" }],
    ["finish_reason model_length", { finish_reason: "model_length" }],
    ["incomplete_details max_output_tokens", { incomplete_details: { reason: "max_output_tokens" } }],
  ])("truncated, whatever the text looks like: %s", async (_, metadata) => {
    const message = reply(0, { response_metadata: metadata ?? {} });
    expect((await failureOf(answering(message).invoke(request))).reason).toBe("truncated");
  });

  test.each<[string, AIMessageFields]>([
    ["nothing", { content: "" }],
    ["no content at all", { content: null as never }],
    ["an image", { content: [{ type: "image", data: "AAAA", mimeType: "image/png" }] }],
    ["a tool call", { content: '{"call_1":0}', tool_calls: [{ id: "1", name: "a", args: { call_1: 0 } }] }],
    ["an open thinking block", { content: '<think>{"call_1":0}' }],
  ])("error: %s", async (_, fields) => {
    expect((await failureOf(answering(new AIMessage(fields)).invoke(request))).reason).toBe("error");
  });

  test("error: a message whose content is missing, whatever the types say", async () => {
    const message = Object.assign(new AIMessage(""), { content: null as never });
    expect((await failureOf(answering(message).invoke(request))).reason).toBe("error");
  });

  test.each([
    ["input_too_long", new ContextOverflowError("prompt is too long")],
    ["refused", new ModelRefusalError("no")],
    ["refused", Object.assign(new Error("blocked"), { name: "PromptBlockedError" })],
    ["timeout", new DOMException("late", "TimeoutError")],
    ["error", new Error("socket hang up")],
  ])("%s: what the chat model throws", async (reason, thrown) => {
    const error = await failureOf(answering(thrown).invoke(request));
    expect(error.reason).toBe(reason);
    expect(error.cause).toBe(thrown);
  });

  test("a reply without JSON, or one cut at the token limit, can be distinguished from a failed request", async () => {
    expect(await factsOf(new AIMessage("It is safe."))).toEqual({ errorCode: "not_json" });
    const cut = reply(0, { response_metadata: { finish_reason: "length" } });
    expect(await factsOf(cut)).toEqual({ errorCode: "truncated" });
  });

  test("no reply at all", async () => {
    const model = fakeModel();
    const nothing = Object.assign(model, { invoke: async () => undefined as never });
    const error = await failureOf(new ChatDecisionModel({ model: nothing }).invoke(request));
    expect(error.reason).toBe("error");
  });
});

describe("structured output", () => {
  test("is read as strictly as text", async () => {
    const answer = { explanation: "It deletes.", call_1: 0.5, call_2: "0.1" };
    const error = await failureOf(structured(answer).invoke(twoQuestions));
    expect(error.answers).toEqual({ call_1: { type: "noul", noul: 0.5, explanation: "It deletes." } });
    expect((await structured(answer).invoke(request)).nouls.call_1.noul).toBe(0.5);
  });

  test("may hold choices and scores", async () => {
    const answer = { explanation: "a", kind: { destructive: 0, secrets: 1, none: 0 }, severity: { "1": 1 } };
    const response = await structured(answer).invoke({ state: oneCall, questions: { kind, severity } });
    expect([response.choices.kind.choice, response.scores.severity.score]).toEqual(["secrets", 1]);
  });

  test("numbers that are none are no answer", async () => {
    expect((await failureOf(structured({ call_1: Number.NaN }).invoke(request))).reason).toBe("error");
  });

  test("nothing came of it", async () => {
    const model = fakeModel();
    expect(
      (await failureOf(new ChatDecisionModel({ model, structuredOutput: true }).invoke(request))).reason,
    ).toBe("error");
  });

  test("a model that has none is a configuration error", async () => {
    const model = fakeModel().withConfig({ tags: ["judge"] });
    await expect(new ChatDecisionModel({ model, structuredOutput: true }).invoke(request)).rejects.toThrow(
      ConfigurationError,
    );
  });
});

describe("the call of the chat model", () => {
  test("is not repeated unless asked, whatever the model's own setting", async () => {
    const model = fakeModel().respond(reply(0)).respond(reply(0));
    await new ChatDecisionModel({ model }).invoke(request);
    await new ChatDecisionModel({ model, maxRetries: 2 }).invoke(request);
    expect(model.calls.map(({ options }) => (options as { maxRetries: number }).maxRetries)).toEqual([0, 2]);
  });

  test("takes a token limit for itself where it hands on to a model inside", async () => {
    const seen: unknown[] = [];
    const generate = async function (this: { maxTokens: unknown }) {
      seen.push(this.maxTokens);
      return { generations: [{ text: "", message: reply(0.5) }] };
    };
    const inner = Object.assign(fakeModel(), { maxTokens: 4000, _generate: generate });
    const outer = Object.assign(fakeModel(), { maxTokens: 4000, completions: inner });
    outer._generate = async function (this: typeof outer) {
      return this.completions._generate([], {}, undefined);
    };
    await new ChatDecisionModel({ model: outer, maxTokens: 300 }).invoke(request);
    await new ChatDecisionModel({ model: outer }).invoke(request);
    expect(seen).toEqual([300, 4000]);
  });

  test("carries settings that are bound to the model", async () => {
    const model = fakeModel().respond(reply(0.5));
    const bound = model.withConfig({ metadata: { team: "security" } });
    expect((await new ChatDecisionModel({ model: bound }).invoke(request)).nouls.call_1.noul).toBe(0.5);
  });

  test("ends by the caller's signal, and that is no failure", async () => {
    const abort = new AbortController();
    const stop = new Error("The user pressed stop.");
    const model = Object.assign(fakeModel(), {
      _generate: async () => {
        abort.abort(stop);
        throw new Error("whatever a client makes of it");
      },
    });
    const asked = new ChatDecisionModel({ model }).invoke(request, { signal: abort.signal });
    await expect(asked).rejects.toBe(stop);
  });

  test("a question about a place in an image is a clear error", async () => {
    const box = { type: "box", instructions: "Where is it?" } as const;
    const asked = answering(reply(0)).invoke({ state: "x", questions: { where: box, call_1: risky } });
    await expect(asked).rejects.toThrow(
      'ChatDecisionModel cannot answer the box question "where": it answers noul, choice and score.',
    );
  });

  test("a choice is answered next to a yes/no question", async () => {
    const message = new AIMessage('{"explanation":"a","call_1":0.5,"kind_1":{"none":0.2,"secrets":0.8}}');
    const response = await answering(message).invoke({
      state: oneCall,
      questions: { call_1: risky, kind_1: kind },
    });
    expect(response.choices.kind_1.choice).toBe("secrets");
  });
});

describe("wrong options are refused at construction", () => {
  const add = tool(() => "", { name: "add", description: "Adds.", schema: z.object({}) });
  test.each<[string, unknown]>([
    ['Option "model" is missing; expected a chat model or a name as "provider:model"', {}],
    ['Option "model" is a number; expected a chat model or a name as "provider:model"', { model: 4 }],
    ['Option "model" is an empty string; expected a chat model or a name as "provider:model"', { model: "" }],
    [
      'Option "model" has tools bound to it; expected the model without them',
      { model: fakeModel().withConfig({ tools: [add] } as object) },
    ],
    [
      'Option "maxTokens" is a number that does not fit; expected a whole number from 1',
      { model: fakeModel(), maxTokens: 0 },
    ],
    [
      'Option "maxTokens" cannot be set for this model; set the limit on the model itself',
      { model: fakeModel(), maxTokens: 5 },
    ],
    [
      'Option "maxRetries" is a string; expected a whole number from 0',
      { model: fakeModel(), maxRetries: "1" },
    ],
    [
      'Option "structuredOutput" is a string; expected true or false',
      { model: fakeModel(), structuredOutput: "yes" },
    ],
    ['Option "explanation" is a string; expected true or false', { model: fakeModel(), explanation: "no" }],
    ['Option "promptCaching" is a number; expected true or false', { model: fakeModel(), promptCaching: 1 }],
    ['Option "temperature" is not an option; check its spelling', { model: fakeModel(), temperature: 0 }],
    ['Option "options" is missing; expected an object of options', undefined],
  ])("%s", (message, options) => {
    expect(() => new ChatDecisionModel(options as never)).toThrow(
      expect.objectContaining({ name: "ConfigurationError", message }),
    );
  });
});

import { ChatAnthropic } from "@langchain/anthropic";
import { fakeModel } from "@langchain/core/testing";
import type { Classifier } from "langchain-auto-mode";
import {
  CascadeDecisionModel,
  type CascadeDecisionModelOptions,
  ChatDecisionModel,
  type ChatDecisionModelOptions,
  OpenAIDecisionModel,
  ProvenanceDecisionModel,
  SystemOneDecisionModel,
} from "langchain-auto-mode/classifiers";
import { initChatModel } from "langchain/chat_models/universal";
import { assertType, expectTypeOf, test } from "vitest";

test("a chat model is an object, one with settings bound, or a name", async () => {
  const chat = new ChatAnthropic({ model: "claude-haiku-4-5" });
  assertType<ChatDecisionModelOptions["model"]>("anthropic:claude-haiku-4-5");
  assertType<ChatDecisionModelOptions["model"]>(chat);
  assertType<ChatDecisionModelOptions["model"]>(chat.withConfig({ tags: ["judge"] }));
  assertType<ChatDecisionModelOptions["model"]>(fakeModel());
  assertType<ChatDecisionModelOptions["model"]>(await initChatModel("anthropic:claude-haiku-4-5"));
  // @ts-expect-error a number is none
  assertType<ChatDecisionModelOptions["model"]>(4);
});

test("unknown options are errors", () => {
  // @ts-expect-error there is no such option
  assertType(new ChatDecisionModel({ model: "a:b", temperature: 0 }));
  // @ts-expect-error there is no such option
  assertType(new OpenAIDecisionModel({ retries: 1 }));
  // @ts-expect-error there is no such option
  assertType(new SystemOneDecisionModel({ url: "https://a.test" }));
  // @ts-expect-error it is a switch
  assertType(new ChatDecisionModel({ model: "a:b", explanation: "none" }));
  // @ts-expect-error it is a switch
  assertType(new ChatDecisionModel({ model: "a:b", promptCaching: { ttl: "1h" } }));
  assertType(new ChatDecisionModel({ model: "a:b", explanation: false, promptCaching: false }));
  // @ts-expect-error the model is required
  assertType(new ChatDecisionModel({}));
});

test("a cascade takes decision models, also with retries, and a range", () => {
  const first = new ProvenanceDecisionModel();
  const second = new OpenAIDecisionModel().withRetry();
  assertType<CascadeDecisionModelOptions>({ first, second, escalate: [0.1, 1] });
  // @ts-expect-error a range has two ends
  assertType<CascadeDecisionModelOptions>({ first, second, escalate: [0.1] });
  // @ts-expect-error a chat model is no decision model
  assertType<CascadeDecisionModelOptions>({ first, second: fakeModel() });
});

test("every decision model judges for the guard, also with retries", () => {
  for (const classifier of [
    new ChatDecisionModel({ model: "a:b" }),
    new OpenAIDecisionModel(),
    new SystemOneDecisionModel(),
    new CascadeDecisionModel({ first: new ProvenanceDecisionModel(), second: new OpenAIDecisionModel() }),
  ]) {
    assertType<Classifier>(classifier);
    assertType<Classifier>(classifier.withRetry());
  }
});

test("answers are typed by their questions", async () => {
  const response = await new OpenAIDecisionModel().invoke({
    state: "x",
    questions: { kind: { type: "choice", instructions: "Which?", criteria: { a: null, b: null } } },
  });
  expectTypeOf(response.choices.kind.choice).toEqualTypeOf<"a" | "b">();
});

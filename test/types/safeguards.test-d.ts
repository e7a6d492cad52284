import type { BaseDecisionModel } from "@langchain/core/decisions";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  type AllowAnswer,
  type CallSettings,
  createModelUpstream,
  createSafeguardsHandler,
  loadChatModel,
  type SafeguardRecord,
  type SafeguardsHandler,
  type SafeguardsOptions,
  type UpstreamModel,
} from "langchain-auto-mode/safeguards";
import { expectTypeOf, test } from "vitest";

declare const classifier: BaseDecisionModel;
declare const chatModel: BaseChatModel;
declare const small: BaseChatModel;

test("a handler takes a Request and gives a Response", () => {
  expectTypeOf(createSafeguardsHandler).returns.toEqualTypeOf<SafeguardsHandler>();
  expectTypeOf<SafeguardsHandler>().toEqualTypeOf<(request: Request) => Promise<Response>>();
});

test("any decision model is a classifier; an upstream is an address or a function", () => {
  expectTypeOf({ upstream: "http://h", classifier }).toExtend<SafeguardsOptions>();
  expectTypeOf({ upstream: new URL("http://h"), classifier }).toExtend<SafeguardsOptions>();
  expectTypeOf({ upstream: (request: Request) => fetch(request), classifier }).toExtend<SafeguardsOptions>();
  // @ts-expect-error: no classifier
  createSafeguardsHandler({ upstream: "http://h" });
  // @ts-expect-error: unknown option
  createSafeguardsHandler({ upstream: "http://h", classifier, treshold: 1 });
});

test("a chat model can replace an upstream, or a function that makes one for a request", () => {
  expectTypeOf({ model: chatModel, classifier }).toExtend<SafeguardsOptions>();
  const make = async (settings: CallSettings) => (settings.maxTokens > 100 ? chatModel : small);
  expectTypeOf({ model: make, classifier }).toExtend<SafeguardsOptions>();
  expectTypeOf(loadChatModel).returns.resolves.toExtend<UpstreamModel>();
  expectTypeOf(createModelUpstream).returns.toEqualTypeOf<(request: Request) => Promise<Response>>();
  // @ts-expect-error: a name is no model
  createSafeguardsHandler({ model: "openai:gpt-5-mini", classifier });
});

test("allow answers with one of three words", () => {
  expectTypeOf<AllowAnswer>().toEqualTypeOf<"allow" | "skip" | "unsupported">();
  // @ts-expect-error: no such answer
  createSafeguardsHandler({ upstream: "http://h", classifier, allow: () => "deny" });
});

test("a record holds an outcome for each id", () => {
  expectTypeOf<SafeguardRecord["outcomes"]>().toExtend<Readonly<Record<string, string>>>();
  expectTypeOf<SafeguardRecord["status"]>().toEqualTypeOf<"available" | "unsupported">();
});

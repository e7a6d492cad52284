import type { BaseDecisionModel } from "@langchain/core/decisions";
import {
  type AllowAnswer,
  createSafeguardsHandler,
  type SafeguardRecord,
  type SafeguardsHandler,
  type SafeguardsOptions,
} from "langchain-auto-mode/safeguards";
import { expectTypeOf, test } from "vitest";

declare const classifier: BaseDecisionModel;

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

test("allow answers with one of three words", () => {
  expectTypeOf<AllowAnswer>().toEqualTypeOf<"allow" | "skip" | "unsupported">();
  // @ts-expect-error: no such answer
  createSafeguardsHandler({ upstream: "http://h", classifier, allow: () => "deny" });
});

test("a record tells an outcome for each id", () => {
  expectTypeOf<SafeguardRecord["outcomes"]>().toExtend<Readonly<Record<string, string>>>();
  expectTypeOf<SafeguardRecord["status"]>().toEqualTypeOf<"available" | "unsupported">();
});

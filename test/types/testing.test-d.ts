import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { assertType, test } from "vitest";

test("a scripted kind of risk is one that the guard knows", () => {
  assertType(fakeDecisionModel().respondWith(() => ({ risk: 0.9, kind: "destructive" })));
  // @ts-expect-error there is no such kind
  assertType(fakeDecisionModel().respondWith(() => ({ risk: 0.9, kind: "destrutive" })));
});

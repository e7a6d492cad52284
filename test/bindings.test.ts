import { RunnableLambda } from "@langchain/core/runnables";
import { ProvenanceDecisionModel } from "langchain-auto-mode/classifiers";
import { fakeModel } from "@langchain/core/testing";
import { expect, test } from "vitest";
import { bindings, hasBoundTools } from "../src/bindings.js";
import { classifierName, classifierView } from "../src/guard/classify.js";

const model = new ProvenanceDecisionModel();

test.each([
  ["the model itself", model],
  ["withRetry", model.withRetry()],
  ["withConfig around withRetry", model.withRetry().withConfig({ tags: ["judge"] })],
  ["withFallbacks", model.withFallbacks([new ProvenanceDecisionModel()])],
])("the name and the view of a model are found through %s", (_how, classifier) => {
  expect(classifierName(classifier)).toBe("provenance-2");
  expect(classifierView(classifier)).toBe(model.view);
});

test("what has neither name nor view gives none", () => {
  const own = RunnableLambda.from(() => 0);
  expect(classifierName(own)).toBe("unknown");
  expect(classifierView(own)).toBeUndefined();
});

test("tools are found on a bound model at any depth", () => {
  expect(hasBoundTools(fakeModel())).toBe(false);
  expect(hasBoundTools(fakeModel().withConfig({ tags: ["a"] }))).toBe(false);
  const bound = fakeModel().withConfig({ tools: [{ name: "look" }] } as object);
  expect(hasBoundTools(bound)).toBe(true);
  expect(hasBoundTools(bound.withConfig({ tags: ["a"] }).withRetry())).toBe(true);
});

test("a chain that runs in a circle ends", () => {
  const circle: { bound?: object } = {};
  circle.bound = circle;
  expect([...bindings(circle)].length).toBeLessThan(100);
});

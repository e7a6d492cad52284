import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from "vitest";
import { resolvePolicy } from "../src/resolve-options.js";
import { createToolNameCheck } from "../src/tool-names.js";

const checkFor = (tools: string[], onUnknownTool: "warn" | "ignore" | "throw" = "warn") =>
  createToolNameCheck(
    resolvePolicy({ tools, classifier: fakeDecisionModel(), onUnknownTool, label: "mine" }),
  );

describe("configured names that are no tool of the agent", () => {
  let warn: MockInstance<typeof console.warn>;
  beforeEach(() => {
    warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  });
  afterEach(() => warn.mockRestore());

  test("are reported once each, with the label", () => {
    const check = checkFor(["a", "b", "c"]);
    check([{ name: "a" }]);
    check([{ name: "b" }]);
    expect(warn.mock.calls.map(([text]: unknown[]) => text)).toEqual([
      expect.stringMatching(/^mine: "b" is configured but is no tool of the agent/),
      expect.stringMatching(/^mine: "c"/),
      expect.stringMatching(/^mine: "a"/),
    ]);
  });

  test("a tool without a name is none of them", () => {
    checkFor(["a"])([{ type: "web_search" }, "a", null, { name: 3 }]);
    expect(warn).toHaveBeenCalledOnce();
  });

  test("a model call without any list of tools tells nothing, and is no crash", () => {
    const check = checkFor(["a"], "throw");
    expect(() => check(undefined)).not.toThrow();
    expect(() => check([])).toThrow(/"tools" names "a"/);
  });

  test("throw as long as they are wrong, where that is wanted", () => {
    const check = checkFor(["a"], "throw");
    const tools = [{ name: "b" }];
    for (const list of [tools, tools, []])
      expect(() => check(list)).toThrow(/"tools" names "a", which is no tool/);
    expect(() => check([{ name: "a" }])).not.toThrow();
  });

  test("are not looked for where nobody wants to know", () => {
    checkFor(["a"], "ignore")([]);
    expect(warn).not.toHaveBeenCalled();
  });
});

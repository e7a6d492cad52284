import { fakeDecisionModel } from "langchain-auto-mode/testing";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from "vitest";
import type { ToolRule, ToolSelector } from "../../src/options.js";
import { resolvePolicy } from "../../src/resolve-options.js";
import { ToolSelection, createUnknownToolCheck } from "../../src/guard/select-tools.js";

const checkFor = (tools: string[], onUnknownTool: "warn" | "ignore" | "throw" = "warn") =>
  createUnknownToolCheck(
    resolvePolicy({ tools, classifier: fakeDecisionModel() }).selection,
    onUnknownTool,
    "mine",
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
      expect.stringMatching(/^mine: "b" is configured but selects no tool/),
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
    expect(() => check([])).toThrow(/"tools" has "a"/);
  });

  test("throw as long as they are wrong, where that is wanted", () => {
    const check = checkFor(["a"], "throw");
    const tools = [{ name: "b" }];
    for (const list of [tools, tools, []])
      expect(() => check(list)).toThrow(/"tools" has "a", which selects no tool/);
    expect(() => check([{ name: "a" }])).not.toThrow();
  });

  test("are not looked for where nobody wants to know", () => {
    checkFor(["a"], "ignore")([]);
    expect(warn).not.toHaveBeenCalled();
  });
});

const RULE = { criteria: null, instructions: "Is it?", threshold: 0.5 };
const other = { ...RULE, threshold: 0.9 };
const select = (...entries: [ToolSelector, ToolRule?][]) =>
  new ToolSelection(
    entries.map(([selector, rule]) => ({ selector, rule: rule ?? RULE, isTuned: Boolean(rule) })),
  );
const named = (...names: string[]) => ({ names, tool: undefined });

describe("what an entry selects", () => {
  test("a pattern fits as a regular expression with .* for each star would", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "_"), maxLength: 8 });
    const patterns = fc
      .string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 6 })
      .filter((text) => text.includes("*"));
    fc.assert(
      fc.property(patterns, letters, (pattern, name) => {
        const reference = new RegExp(`^${pattern.split("*").join(".*")}$`, "s");
        expect(select([pattern]).ruleFor(named(name)) !== undefined).toBe(reference.test(name));
      }),
      { numRuns: 2_000 },
    );
  });

  test("the name of the call or of the tool object: either one guards", () => {
    expect(select(["delete_file"]).ruleFor(named("renamed", "delete_file"))).toBe(RULE);
    expect(select(["delete_*"]).ruleFor(named("renamed", "delete_file"))).toBe(RULE);
  });

  test("the first entry that matches wins", () => {
    const selection = select(["mcp__crm__write", other], ["mcp__*"]);
    expect(selection.ruleFor(named("mcp__crm__write"))).toBe(other);
    expect(selection.ruleFor(named("mcp__crm__read"))).toBe(RULE);
    expect(select(["mcp__*"], ["mcp__crm__write", other]).ruleFor(named("mcp__crm__write"))).toBe(RULE);
  });

  test.each<[string, () => unknown, boolean]>([
    ["true", () => true, true],
    ["false", () => false, false],
    ["nothing", () => undefined, true],
    ["a promise", async () => false, true],
    [
      "an error",
      () => {
        throw new Error("x");
      },
      true,
    ],
  ])("a predicate that gives %s", (_what, predicate, isSelected) => {
    const call = { names: ["a"], tool: { name: "a" } as never };
    expect(select([predicate as never]).ruleFor(call) !== undefined).toBe(isSelected);
  });

  test("a call whose tool is not known is guarded by any predicate", () => {
    expect(select([() => false]).ruleFor(named("dynamic"))).toBe(RULE);
  });

  test("two entries for one name, one with settings, are an error that names the second", () => {
    expect(() => select(["a"], ["a", other])).toThrow(
      /"tools\[1\]" names a tool that has settings elsewhere/,
    );
    expect(() => select(["a"], ["a"])).not.toThrow();
  });
});

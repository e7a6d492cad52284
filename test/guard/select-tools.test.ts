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

  test("a model call without any list of tools says nothing, and is no crash", () => {
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

  test("a pattern or a predicate that selects none of them is reported as what it is, once", () => {
    const check = createUnknownToolCheck(
      select(["mcp__*"], [({ name }) => name === "b"], ["a"]),
      "warn",
      "mine",
    );
    check([{ name: "a" }]);
    check([{ name: "a" }, { name: "c" }]);
    expect(warn.mock.calls.map(([text]: unknown[]) => text)).toEqual([
      expect.stringMatching(/^mine: "mcp__\*" is configured but selects no tool/),
      expect.stringMatching(/^mine: the predicate tools\[1\] is configured but selects no tool/),
    ]);
  });

  test("a pattern or a predicate that selects one of them is not", () => {
    const selection = select(["mcp__*"], [({ name }) => name === "b"], [fails]);
    createUnknownToolCheck(selection, "throw", "mine")([{ name: "mcp__crm__read" }, { name: "b" }]);
    expect(warn).not.toHaveBeenCalled();
  });

  test("what is thrown names a predicate by its place, and no code of it", () => {
    const check = createUnknownToolCheck(select(["a"], [() => false]), "throw", "mine");
    expect(() => check([{ name: "a" }])).toThrow(
      /^Option "tools" has the predicate tools\[1\], which selects no tool of the agent; expected /,
    );
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
const no = (): boolean => false;
const fails = (): never => {
  throw new Error("x");
};
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

  test("an exact name fits itself alone, whatever characters it has", () => {
    const names = fc.string({ unit: fc.constantFrom("a", "b", ".", "+", "?", "["), maxLength: 4 });
    fc.assert(
      fc.property(names, names, (name, called) => {
        expect(select([name]).ruleFor(named(called)) !== undefined).toBe(name === called);
        // Beside a pattern exact names are looked up in another way.
        expect(select([name], ["z*"]).ruleFor(named(called)) !== undefined).toBe(name === called);
      }),
    );
  });

  test("a tool object is meant by its name, even if that has a star in it", () => {
    const selection = select([{ name: "a*" } as never]);
    expect(selection.ruleFor(named("a*"))).toBe(RULE);
    expect(selection.ruleFor(named("ab"))).toBeUndefined();
  });

  test("a lone star selects every tool, also one that is not known", () => {
    for (const name of ["a", "", "mcp__crm__write"]) expect(select(["*"]).ruleFor(named(name))).toBe(RULE);
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
    ["an error", fails, true],
  ])("a predicate that gives %s", (_what, predicate, isSelected) => {
    const call = { names: ["a"], tool: { name: "a" } as never };
    expect(select([predicate as never]).ruleFor(call) !== undefined).toBe(isSelected);
  });

  test("a call whose tool is not known is guarded by any predicate", () => {
    expect(select([() => false]).ruleFor(named("dynamic"))).toBe(RULE);
  });

  test("of predicates that could not be asked the strictest settings count", () => {
    const asking = { ...RULE, askAt: 0.2 };
    const askingEarlier = { ...RULE, askAt: 0.1 };
    const unknown = named("dynamic");
    expect(select([no, other], [no, RULE], [no, asking]).ruleFor(unknown)).toBe(asking);
    expect(select([no, asking], [no, askingEarlier], [no, RULE]).ruleFor(unknown)).toBe(askingEarlier);
    expect(select([no, RULE], [no, other]).ruleFor(unknown)).toBe(RULE);
    expect(select([no, other], ["dynamic", RULE]).ruleFor(unknown)).toBe(RULE);
  });

  test("a predicate is asked about the tool object, and only if no entry before it matches", () => {
    const predicate = vi.fn<(tool: unknown) => boolean>(() => true);
    const selection = select(["a", other], [predicate]);
    const toolB = { name: "b" } as never;
    expect(selection.ruleFor({ names: ["a"], tool: { name: "a" } as never })).toBe(other);
    expect(predicate).not.toHaveBeenCalled();
    expect(selection.ruleFor({ names: ["b"], tool: toolB })).toBe(RULE);
    expect(predicate).toHaveBeenCalledExactlyOnceWith(toolB);
  });

  test("two entries for one name, one with settings, are an error that names the second", () => {
    expect(() => select(["a"], ["a", other])).toThrow(
      /"tools\[1\]" names a tool that has settings elsewhere/,
    );
    expect(() => select(["a"], ["a"])).not.toThrow();
  });
});

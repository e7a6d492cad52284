import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutJson } from "../../src/transcript/cut-json.js";

const lengthOf = (value: unknown) => JSON.stringify(value).length;

describe("arguments that are too long", () => {
  test("what fits stays as it is", () => {
    const args = { path: "/a", lines: [1, 2], deep: { x: null } };
    expect(cutJson(args, lengthOf(args))).toEqual(args);
  });

  test("the longest strings give way first and say so", () => {
    const cut = cutJson({ path: "/srv/a.txt", content: "x".repeat(9000), mode: "w" }, 300) as Record<
      string,
      string
    >;
    expect(cut).toMatchObject({ path: "/srv/a.txt", mode: "w" });
    expect(cut["content"]).toMatch(/^x+…\[\d+ characters left out\]$/);
    expect(lengthOf(cut)).toBeLessThanOrEqual(300);
    expect(lengthOf(cut)).toBeGreaterThan(280);
  });

  test("two long strings share what there is", () => {
    const cut = cutJson({ a: "x".repeat(5000), b: "y".repeat(900), c: "short" }, 1000) as Record<
      string,
      string
    >;
    expect(cut["c"]).toBe("short");
    expect(Math.abs((cut["a"] as string).length - (cut["b"] as string).length)).toBeLessThan(5);
  });

  test("a long key is cut too, and keys that begin alike stay apart", () => {
    const cut = cutJson({ [`${"k".repeat(500)}1`]: "one", [`${"k".repeat(500)}2`]: "two" }, 250);
    expect(Object.values(cut as object)).toEqual(["one", "two"]);
    expect(lengthOf(cut)).toBeLessThanOrEqual(250);
  });

  test("a list of many items is shortened, with a count, and what is next to it stays", () => {
    const cut = cutJson(
      { items: Array.from({ length: 1000 }, (_, index) => index), command: "rm -rf /" },
      200,
    );
    expect((cut as { command: unknown }).command).toBe("rm -rf /");
    const items = (cut as { items: unknown[] }).items;
    expect(items.slice(0, 3)).toEqual([0, 1, 2]);
    expect(items.at(-1)).toBe(`…[${1000 - (items.length - 1)} left out]`);
  });

  test("an object of many keys is shortened, with a count", () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`key-${index}`, true]));
    const cut = cutJson(many, 200) as Record<string, unknown>;
    expect(cut["key-0"]).toBe(true);
    expect(cut["…"]).toBe(`[${1000 - (Object.keys(cut).length - 1)} left out]`);
  });

  test("a key that looks like the marker's cannot take its place", () => {
    const many = {
      "…": "mine",
      ...Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, true])),
    };
    const cut = cutJson(many, 200) as Record<string, unknown>;
    expect(cut["…"]).toBe(`[${101 - (Object.keys(cut).length - 1)} left out]`);
  });

  test("without room for any item there is only the count", () => {
    expect(cutJson([1, 2, 3, "x".repeat(100)], 30)).toBe("[4 items left out]");
    expect(cutJson({ a: 1, b: "x".repeat(100) }, 30)).toBe("[2 keys left out]");
  });

  test("a number without room becomes the shortest marker", () => {
    expect(cutJson(123_456_789, 5)).toBe("…");
    expect(cutJson(12, 2)).toBe(12);
  });

  test("cycles, deep nesting and 50,000 parts are no trouble", () => {
    const cyclic: Record<string, unknown> = { a: "x".repeat(500) };
    cyclic["self"] = cyclic;
    let deep: unknown = "core";
    for (let level = 0; level < 100_000; level += 1) deep = { d: [deep, 1] };
    const wide = Array.from({ length: 50_000 }, (_, index) => ({ [`k${index}`]: `v${index}` }));
    for (const value of [cyclic, deep, wide]) expect(lengthOf(cutJson(value, 300))).toBeLessThanOrEqual(300);
  });

  test("__proto__ stays a key", () => {
    const cut = cutJson(JSON.parse(`{"__proto__":"${"x".repeat(500)}"}`), 100);
    expect(JSON.stringify(cut)).toMatch(/^\{"__proto__":"x+…/);
  });

  test("any value comes out within the limit and well-formed", () => {
    const string = fc.oneof(
      fc.string({ unit: "binary", maxLength: 300 }),
      fc.constantFrom("…", '"'.repeat(200), "😀".repeat(100), "\n".repeat(150), "__proto__"),
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: "medium" },
        string,
        fc.double(),
        fc.constant(null),
        fc.array(tie("tree"), { maxLength: 30 }),
        fc.dictionary(string, tie("tree"), { maxKeys: 30 }),
      ),
    }));
    fc.assert(
      fc.property(tree, fc.integer({ min: 3, max: 2000 }), (value, max) => {
        const json = JSON.stringify(cutJson(value, max));
        expect(json.length).toBeLessThanOrEqual(max);
      }),
      { numRuns: 300 },
    );
  });
});

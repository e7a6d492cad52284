import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { capDescription, cutEnd, cutJson, cutShown, cutStart, fitJson } from "../../src/transcript/cut.js";
import { escapeInvisible } from "../../src/transcript/escape-text.js";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 400 }),
  fc.string({ unit: "grapheme", maxLength: 400 }),
  fc
    .array(fc.constantFrom("😀", "\u202e", '"', "\n", "a", "о"), { maxLength: 300 })
    .map((parts) => parts.join("")),
);
const limits = fc.integer({ min: 0, max: 450 });
const isWellFormed = (value: string) => !/\p{Cs}/u.test(value);

describe("cutting a text", () => {
  test("a text that fits stays as it is", () => {
    for (const cut of [cutEnd, cutStart]) expect(cut("short", 5)).toBe("short");
  });

  test("the marker stands where something is missing and says how much", () => {
    const letters = "abcdefghij".repeat(10);
    expect(cutEnd(letters, 40)).toBe("abcdefghijabcd…[86 characters left out]");
    expect(cutStart(letters, 40)).toBe("[86 characters left out]…ghijabcdefghij");
    expect(cutShown(letters, 41, "middle")).toBe("abcdefg…[86 characters left out]…defghij");
  });

  test("the count and what was kept add up to the whole", () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 40, max: 450 }), (whole, limit) => {
        for (const cut of [cutEnd, cutStart]) {
          const result = cut(whole, limit);
          if (result === whole) continue;
          const marker = /…?\[(\d+) characters left out\]…?/.exec(result.slice(-2000)) as RegExpExecArray;
          expect(result.length - marker[0].length + Number(marker[1])).toBe(whole.length);
        }
      }),
    );
  });

  test("the result is never longer than asked and never splits a pair", () => {
    fc.assert(
      fc.property(text, limits, (whole, limit) => {
        for (const cut of [cutEnd, cutStart]) {
          const result = cut(whole, limit);
          expect(result.length).toBeLessThanOrEqual(limit);
          expect(isWellFormed(result) || !isWellFormed(whole)).toBe(true);
        }
      }),
    );
  });

  test("without room for the marker there is as much of it as fits", () => {
    expect(cutEnd("x".repeat(50), 1)).toBe("…");
    expect(cutEnd("x".repeat(50), 0)).toBe("");
    expect(cutStart("x".repeat(50), -3)).toBe("");
  });
});

describe("showing and cutting at once", () => {
  test("of a long text only the ends are looked at, and the result is the same as of a short one", () => {
    const middle = "m".repeat(1_000_000);
    expect(cutShown(`start${middle}`, 100, "end")).toBe(
      `start${"m".repeat(65)}…[999935 characters left out]`,
    );
    expect(cutShown(`${middle}end`, 100, "start")).toMatch(/^\[\d+ characters left out\]…m+end$/);
    expect(cutShown(`start${middle}end`, 100, "middle")).toMatch(
      /^startm+…\[\d+ characters left out\]…m+end$/,
    );
  });

  test("the result is shown, well-formed and within the limit", () => {
    fc.assert(
      fc.property(text, limits, fc.constantFrom("end", "start", "middle"), (part, limit, side) => {
        const whole = part.repeat(3);
        const result = cutShown(whole, limit, side);
        expect(result.length).toBeLessThanOrEqual(limit);
        expect(isWellFormed(result)).toBe(true);
        expect(result === escapeInvisible(whole) || escapeInvisible(whole).length > limit).toBe(true);
      }),
    );
  });

  test("a limit on the JSON holds for text full of quotes", () => {
    const quotes = '"'.repeat(5000);
    const result = fitJson((size) => cutEnd(quotes, size), 5000, 1000);
    expect(JSON.stringify(result).length).toBeLessThanOrEqual(1000);
    expect(JSON.stringify(result).length).toBeGreaterThan(900);
    expect(fitJson((size) => cutEnd(quotes, size), 5000, 1)).toBe("");
  });
});

describe("a tool's description", () => {
  test("is cut at 2,000 characters with a marker", () => {
    expect(capDescription("Reads a file.")).toBe("Reads a file.");
    const capped = capDescription("d".repeat(50_000));
    expect(capped).toHaveLength(2000);
    expect(capped).toMatch(/^d+…\[\d+ characters left out\]$/);
  });
});

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

  test("a list of many items is shortened, with a count, and what stands beside it stays", () => {
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

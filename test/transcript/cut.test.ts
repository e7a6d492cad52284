import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { capDescription, cutEnd, cutShown, cutStart, fitJson } from "../../src/transcript/cut.js";
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

  test("the marker is where something is missing and says how much", () => {
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

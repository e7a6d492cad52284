import { ConfigurationError } from "langchain-auto-mode";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { check, mismatch, optionPath } from "../src/option-problem.js";

describe("what is said of a wrong value", () => {
  test.each([
    [undefined, "is missing"],
    [null, "is null"],
    [NaN, "is NaN"],
    [[], "is an empty array"],
    [["SECRET"], "is an array"],
    [" ", "is an empty string"],
    ["SECRET", "is a string"],
    [{ SECRET: 1 }, "is an object"],
    [true, "is a boolean"],
    [1n, "is a bigint"],
    [() => "SECRET", "is a function"],
    [Symbol("SECRET"), "is a symbol"],
  ])("%o", (value, said) => {
    expect(mismatch(value, "a number from 0 to 1")).toBe(`${said}; expected a number from 0 to 1`);
  });

  test.each(["a number from 0 to 1", "a whole number >= 1", "milliseconds, more than 0"])(
    "a number where %s is wanted does not fit",
    (expected) => {
      expect(mismatch(7, expected)).toBe(`is a number that does not fit; expected ${expected}`);
    },
  );

  test("a number where something else is wanted is of the wrong type", () => {
    expect(mismatch(7, "two numbers from 0 to 1")).toBe("is a number; expected two numbers from 0 to 1");
  });
});

test("a path is written as in code: fields after dots, places in brackets", () => {
  expect(optionPath("", ["tools", 0, "threshold"])).toBe("tools[0].threshold");
  expect(optionPath("view", ["channels", 2])).toBe("view.channels[2]");
  expect(optionPath("view", [])).toBe("view");
});

describe("the check", () => {
  const type = z.strictObject({ list: z.array(z.strictObject({ a: z.int("a whole number") })) }, "an object");
  const failure = (value: unknown, root = "", unknown?: string) => {
    try {
      check(type, value, root, unknown);
    } catch (error) {
      return ConfigurationError.find(error)?.message;
    }
    return undefined;
  };

  test("gives back what fits", () => {
    expect(check(type, { list: [{ a: 1 }] }, "")).toEqual({ list: [{ a: 1 }] });
  });

  test.each<[unknown, string]>([
    [3, 'Option "options" is a number; expected an object'],
    [{ list: [{ a: 1 }, { a: "SECRET" }] }, 'Option "list[1].a" is a string; expected a whole number'],
    [{ list: [{ a: 1, b: 2 }] }, 'Option "list[0].b" is not an option; check its spelling'],
  ])("%j: %s", (value, message) => {
    expect(failure(value)).toBe(message);
  });

  test("names what is checked as it is called where it is given", () => {
    expect(failure(3, "rules")).toBe('Option "rules" is a number; expected an object');
    expect(failure({ list: [], more: 1 }, "rules", "is unknown")).toBe('Option "rules.more" is unknown');
  });
});

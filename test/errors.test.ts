import { ClassificationError, ConfigurationError } from "langchain-auto-mode";
import { describe, expect, test } from "vitest";

describe("errors", () => {
  test("an error is recognized inside the host's wrapping and found again", () => {
    const own = new ClassificationError("timeout", { cause: new Error("socket"), status: 503 });
    const wrapped = new Error("outer", { cause: new Error("inner", { cause: own }) });
    expect(ClassificationError.isInstance(wrapped)).toBe(true);
    expect(ClassificationError.find(wrapped)).toBe(own);
    expect(ConfigurationError.isInstance(wrapped)).toBe(false);
    expect([own.code, own.reason, own.status]).toEqual(["AUTO_MODE_CLASSIFICATION", "timeout", 503]);
  });

  test("a chain of causes that bites its tail ends", () => {
    const first = new Error("a");
    first.cause = new Error("b", { cause: first });
    expect(ClassificationError.isInstance(first)).toBe(false);
    expect(ConfigurationError.isInstance("no error at all")).toBe(false);
  });

  test("answers are not enumerable, so that a logger does not print what was judged", () => {
    const own = new ClassificationError("error", { answers: { call_1: { type: "noul", noul: 0.1 } } });
    expect(own.answers).toEqual({ call_1: { type: "noul", noul: 0.1 } });
    expect(JSON.stringify(own)).not.toContain("noul");
    expect(new ClassificationError("error").answers).toEqual({});
  });

  test("a configuration error names the option", () => {
    const error = new ConfigurationError("limits.totalBlocks", "is a string; expected a whole number");
    expect(error.message).toBe('Option "limits.totalBlocks" is a string; expected a whole number');
    expect(error.option).toBe("limits.totalBlocks");
    expect(ConfigurationError.find(new Error("x", { cause: error }))).toBe(error);
  });
});

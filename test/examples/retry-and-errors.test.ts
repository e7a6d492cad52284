import { createMiddleware } from "langchain";
import { ClassificationError } from "langchain-auto-mode";
import { describe, expect, test } from "vitest";
import { answerBusy, BusyError, main, observe, tryAgain } from "../../examples/retry-and-errors.js";

describe("the recipe for retries and errors", () => {
  test("plays all its scenarios", async () => {
    const lines: string[] = [];
    await main((line) => lines.push(line));
    expect(lines).toContain("    the run ended with BusyError");
    expect(lines.filter((line) => line === "    sent")).toHaveLength(2);
  });

  test("any middleware around tools makes a tool's error fatal, auto mode or not", async () => {
    const passing = createMiddleware({
      name: "passing",
      wrapToolCall: (request, handler) => handler(request),
    });
    const { error } = await observe({ failures: 1, middleware: () => [passing] });
    expect(error).toBeInstanceOf(BusyError);
  });

  test.each([
    ["outside", true],
    ["inside", false],
  ])("a retry %s the guard starts an allowed call again on one verdict", async (_, outside) => {
    const seen = await observe({
      failures: 2,
      middleware: (autoMode) => (outside ? [tryAgain(), autoMode] : [autoMode, tryAgain()]),
    });
    expect(seen).toMatchObject({ toolRan: 3, classifierAsked: 1, answers: ["sent"] });
    expect(seen.decisions.map(({ outcome, executed }) => [outcome, executed])).toEqual([
      ["allowed", "as judged"],
    ]);
  });

  test.each([
    ["outside", true],
    ["inside", false],
  ])(
    "neither retry nor error middleware %s the guard touches a call without a verdict",
    async (_, outside) => {
      const seen = await observe({
        risks: [],
        middleware: (autoMode) =>
          outside ? [answerBusy(), tryAgain(), autoMode] : [autoMode, answerBusy(), tryAgain()],
      });
      expect(seen).toMatchObject({ toolRan: 0, classifierAsked: 1 });
      expect(ClassificationError.find(seen.error)?.reason).toBe("timeout");
    },
  );
});

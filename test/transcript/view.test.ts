import { ConfigurationError } from "langchain-auto-mode";
import { describe, expect, test } from "vitest";
import { CHANNELS, channelOf } from "../../src/transcript/entries.js";
import { DEFAULT_VIEW, resolveView } from "../../src/transcript/view.js";

function failure(build: () => unknown): ConfigurationError {
  try {
    build();
  } catch (error) {
    return ConfigurationError.find(error) as ConfigurationError;
  }
  throw new Error("accepted");
}

describe("a view's fields", () => {
  test("without a view there are the defaults", () => {
    expect(resolveView(undefined)).toEqual({
      channels: ["user", "toolCalls", "subagentReports"],
      mostRecent: 30,
      maxChars: 24_000,
      maxCharsPerEntry: 2_000,
      maxCharsPerToolResult: 500,
      delegationTools: ["task"],
    });
  });

  test("the user's own field goes before the classifier's, and that before the default", () => {
    const base = { mostRecent: 5, channels: ["user"] as const };
    expect(resolveView({ mostRecent: 7, maxChars: undefined }, base)).toEqual({
      ...DEFAULT_VIEW,
      mostRecent: 7,
      channels: ["user"],
    });
  });

  test("the result is frozen and shares nothing with what was given", () => {
    const channels = ["user" as const];
    const view = resolveView({ channels });
    channels.length = 0;
    expect(view.channels).toEqual(["user"]);
    for (const part of [view, view.channels, view.delegationTools, DEFAULT_VIEW, DEFAULT_VIEW.channels])
      expect(Object.isFrozen(part)).toBe(true);
  });

  test("the smallest allowed values are allowed", () => {
    const smallest = {
      channels: [],
      mostRecent: 0,
      maxChars: 1,
      maxCharsPerEntry: 1,
      maxCharsPerToolResult: 1,
    };
    expect(resolveView({ ...smallest, delegationTools: [] })).toEqual({ ...smallest, delegationTools: [] });
  });

  test("as many entries as there are: Infinity, where entries are counted", () => {
    expect(resolveView({ mostRecent: Infinity }).mostRecent).toBe(Infinity);
  });

  test.each([
    [3, 'Option "view" is a number; expected an object such as { channels: ["user", "toolCalls"] }'],
    [null, 'Option "view" is null; expected an object such as { channels: ["user", "toolCalls"] }'],
    [["user"], 'Option "view" is an array; expected an object such as { channels: ["user", "toolCalls"] }'],
    [{ maxChars: "24000" }, 'Option "view.maxChars" is a string; expected a whole number >= 1'],
    [{ maxChars: 0 }, 'Option "view.maxChars" is a number that does not fit; expected a whole number >= 1'],
    [
      { maxChars: Infinity },
      'Option "view.maxChars" is a number that does not fit; expected a whole number >= 1',
    ],
    [
      { mostRecent: 1.5 },
      'Option "view.mostRecent" is a number that does not fit; expected a whole number >= 0, or Infinity',
    ],
    [{ maxCharsPerEntry: null }, 'Option "view.maxCharsPerEntry" is null; expected a whole number >= 1'],
    [
      { maxCharsPerToolResult: {} },
      'Option "view.maxCharsPerToolResult" is an object; expected a whole number >= 1',
    ],
    [
      { channels: "user" },
      `Option "view.channels" is a string; expected a list of channels: ${CHANNELS.join(", ")}`,
    ],
    [
      { channels: ["user", "all"] },
      `Option "view.channels[1]" is a string; expected a list of channels: ${CHANNELS.join(", ")}`,
    ],
    [
      { delegationTools: [""] },
      'Option "view.delegationTools[0]" is an empty string; expected a list of tool names',
    ],
    [
      { maxchars: 5 },
      'Option "view.maxchars" is not an option; expected one of channels, mostRecent, maxChars, maxCharsPerEntry, maxCharsPerToolResult, delegationTools',
    ],
  ])("refused: %j", (view, message) => {
    expect(failure(() => resolveView(view)).message).toBe(message);
  });

  test("the error names the option as it is called where it is given", () => {
    expect(failure(() => resolveView({ maxChars: -1 }, {}, "judge.view")).option).toBe("judge.view.maxChars");
    expect(failure(() => resolveView({}, { maxChars: -1 })).option).toBe("classifier.view.maxChars");
  });

  test("a wrong value is not repeated", () => {
    expect(failure(() => resolveView({ channels: ["SECRET"] })).message).not.toContain("SECRET");
  });
});

test("every kind of entry belongs to a channel", () => {
  expect(new Set(Object.values(channelOf))).toEqual(new Set(CHANNELS));
});

import { createAgent } from "langchain";
import { autoModeMiddleware, ClassificationError, ConfigurationError } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { rejection } from "../kit/agent.js";
import { del, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const any = (value: unknown) => value as never;

describe("a slip in a fake's script is an error where it is written", () => {
  test.each<[string, string, () => unknown]>([
    ["a risk above one", "respond", () => fakeDecisionModel().respond(2)],
    ["a risk that is no number", "respond", () => fakeDecisionModel().respond(any("SECRET"))],
    ["NaN", "respond", () => fakeDecisionModel().respond(NaN)],
    ["a number for a function", "respondWith", () => fakeDecisionModel().respondWith(any(0.5))],
    ["a misspelt reason", "fail", () => fakeDecisionModel().fail(any("SECRET timeot"))],
    ["no reason", "alwaysFail", () => fakeDecisionModel().alwaysFail(any(undefined))],
    ["a negative risk", "always", () => fakeDecisionModel().always(-1)],
    ["a tool without a name", "forTool.name", () => fakeDecisionModel().forTool("", 0)],
    ["no risk of a tool", "forTool.risk", () => fakeDecisionModel().forTool("a", any(undefined))],
    ["an unknown option", "delay", () => fakeDecisionModel(any({ delay: "SECRET" }))],
    ["an empty name", "model", () => fakeDecisionModel({ model: "" })],
    ["a negative delay", "delayMs", () => fakeDecisionModel({ delayMs: -1 })],
    ["options that are a name", "options", () => fakeDecisionModel(any("SECRET"))],
  ])("%s", (_, option, build) => {
    let caught: unknown;
    try {
      build();
    } catch (error) {
      caught = error;
    }
    expect(ConfigurationError.find(caught)?.option).toBe(option);
    expect((caught as Error).message).not.toContain("SECRET");
  });

  test("the message says what is expected", () => {
    expect(() => fakeDecisionModel().respond(2)).toThrow(
      'Option "respond" is a number that does not fit; expected a number from 0 to 1',
    );
    expect(() => fakeDecisionModel().fail(any("timeot"))).toThrow(/expected an error, or one of "timeout", /);
  });

  test("bounds, and whatever a function gives, are taken", () => {
    expect(() =>
      fakeDecisionModel({ delayMs: 0, model: "judge" })
        .respond(0)
        .respond(1)
        .respondWith(() => 2)
        .fail(new Error("down")),
    ).not.toThrow();
  });
});

test("in an agent, a request beyond the script says so as the cause of what is thrown", async () => {
  const agent = createAgent({
    model: scripted(del("/a"), "end"),
    tools: toolBox().all,
    middleware: [autoModeMiddleware({ tools: ["delete_file"], classifier: fakeDecisionModel() })],
  });
  const error = await rejection(agent.invoke({ messages: [{ role: "user", content: "go" }] }));
  expect(ClassificationError.find(error)?.cause).toMatchObject({
    message: expect.stringContaining("no answer is scripted"),
  });
});

import { tool } from "langchain";
import {
  type AutoModeOptions,
  ConfigurationError,
  DEFAULT_VIEW,
  askHuman,
  haltRun,
} from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { resolvePolicy } from "../src/resolve-options.js";
import { ToolSelection } from "../src/guard/select-tools.js";
import { DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "../src/guard/question.js";

const classifier = fakeDecisionModel();
const resolve = (more: Partial<AutoModeOptions> = {}) =>
  resolvePolicy({ tools: ["delete_file"], classifier, ...more });
const ruleOf = (more: Partial<AutoModeOptions>, name = "delete_file") =>
  resolve(more).selection.ruleFor({ names: [name], tool: undefined });
const deleteFile = tool(() => "ok", { name: "delete_file", description: "d", schema: z.object({}) });

const environment = () => ({});
const OPTIONAL =
  "criteria instructions threshold askAt view environment precheck feedback limits whenLimitReached onUnavailable " +
  "siblings author mode timeoutMs explain onUnknownTool onDecision label";
const ALL_UNDEFINED = Object.fromEntries(OPTIONAL.split(" ").map((name) => [name, undefined]));

describe("the defaults", () => {
  test("are those that the options' own documentation says", () => {
    expect(resolve()).toEqual({
      selection: expect.any(ToolSelection) as unknown,
      general: { criteria: DEFAULT_CRITERIA, instructions: DEFAULT_INSTRUCTIONS, threshold: 0.5 },
      classifier,
      classifierName: "fake",
      view: DEFAULT_VIEW,
      environment: undefined,
      precheck: undefined,
      feedback: expect.any(Function) as unknown,
      limits: { consecutiveBlocks: 3, totalBlocks: 20, consecutiveUnavailable: 10 },
      fallback: haltRun(),
      onUnavailable: "throw",
      siblings: "independent",
      author: "user",
      mode: "enforce",
      timeoutMs: 30_000,
      explain: false,
      onUnknownTool: "warn",
      onDecision: undefined,
      label: "autoMode",
      asksHuman: false,
    });
  });

  test("hold for options that are given as undefined", () => {
    const required = { tools: ["delete_file"], classifier };
    const given = resolve({ ...ALL_UNDEFINED, ...required });
    expect({ ...given, feedback: "" }).toEqual({ ...resolve(), feedback: "" });
    const fields = { reason: "R.", toolName: "T" };
    expect(given.feedback(fields)).toBe(resolve().feedback(fields));
  });
});

describe("the guarded tools", () => {
  test.each<[string, AutoModeOptions["tools"]]>([
    ["names", ["delete_file"]],
    ["tool objects", [deleteFile]],
    ["patterns", ["delete_*"]],
    ["predicates", [({ name }) => name === "delete_file"]],
    ["names with settings", [{ tool: "delete_file" }]],
    ["tool objects with settings", [{ tool: deleteFile, threshold: 0.5 }]],
    ["the same twice, without settings", ["delete_file", deleteFile]],
  ])("may be given as %s", (_how, tools) => {
    const { selection } = resolve({ tools });
    expect(selection.ruleFor({ names: ["delete_file"], tool: deleteFile })).toMatchObject({ threshold: 0.5 });
    expect(selection.ruleFor({ names: ["read_file"], tool: { name: "read_file" } as never })).toBe(undefined);
  });

  test("what one tool has of its own goes before what is general, field by field", () => {
    const tools = ["read_file", { tool: "delete_file", threshold: 0.2, criteria: undefined }];
    const general = { criteria: { true: "general" }, instructions: "General?", threshold: 0.8 };
    expect(ruleOf({ tools, ...general })).toEqual({ ...general, threshold: 0.2 });
    expect(ruleOf({ tools, ...general }, "read_file")).toEqual(general);
    expect(ruleOf({ tools: [{ tool: "delete_file", criteria: null }], ...general })).toEqual({
      ...general,
      criteria: null,
    });
    expect(ruleOf({ tools: [{ tool: "delete_file", instructions: ["Own?"] }] })?.instructions).toEqual([
      "Own?",
    ]);
  });

  test.each<[string, AutoModeOptions["tools"]]>([
    [
      "two entries with settings",
      [
        { tool: "delete_file", threshold: 0.2 },
        { tool: deleteFile, threshold: 0.4 },
      ],
    ],
    ["settings after the name", ["delete_file", { tool: "delete_file", threshold: 0.4 }]],
    ["settings before the name", [{ tool: "delete_file", threshold: 0.4 }, "delete_file"]],
  ])("one tool has one entry of settings: %s are refused", (_what, tools) => {
    expect(() => resolve({ tools })).toThrow(ConfigurationError);
    expect(() => resolve({ tools })).toThrow(/"tools\[1\]" names a tool that has settings elsewhere/);
  });
});

describe("the band in which a person decides", () => {
  test("is none, or the general one, or the tool's own", () => {
    const tools = ["read_file", { tool: "delete_file", askAt: 0.1 }];
    expect(ruleOf({ tools })).toMatchObject({ threshold: 0.5, askAt: 0.1 });
    expect(ruleOf({ tools }, "read_file")?.askAt).toBeUndefined();
    expect(ruleOf({ tools, askAt: 0.3 })?.askAt).toBe(0.1);
    expect(ruleOf({ tools, askAt: 0.3 }, "read_file")?.askAt).toBe(0.3);
  });

  test("may end where it begins, and begin at 0", () => {
    expect(ruleOf({ askAt: 0.5 })?.askAt).toBe(0.5);
    expect(ruleOf({ askAt: 0, threshold: 0 })).toMatchObject({ askAt: 0, threshold: 0 });
  });

  test.each<[string, Partial<AutoModeOptions>, string]>([
    ["the general threshold", { askAt: 0.6 }, "askAt"],
    ["its tool's own threshold", { tools: [{ tool: "a", askAt: 0.3, threshold: 0.2 }] }, "tools[0].askAt"],
    ["the threshold that its tool follows", { tools: [{ tool: "a", askAt: 0.6 }] }, "tools[0].askAt"],
  ])("never begins above %s", (_what, options, option) => {
    expect(() => resolve(options)).toThrow(ConfigurationError);
    expect(() => resolve(options)).toThrow(`"${option}" is above the threshold`);
  });
});

describe("a person can be asked", () => {
  test.each<[string, Partial<AutoModeOptions>, boolean]>([
    ["about nothing by default", {}, false],
    ["at a limit", { whenLimitReached: askHuman() }, true],
    ["about calls without a verdict", { onUnavailable: "ask" }, true],
    ["by a rule", { precheck: () => "classify" }, true],
    ["in a general band", { askAt: 0.3 }, true],
    ["in the band of one tool", { tools: ["a", { tool: "b", askAt: 0.3 }] }, true],
    ["about nothing by other settings", { whenLimitReached: haltRun(), onUnavailable: "continue" }, false],
  ])("%s", (_what, options, asks) => {
    expect(resolve(options).asksHuman).toBe(asks);
  });
});

describe("the policy is settled once", () => {
  test("changing what was given changes nothing", () => {
    const tuned = { tool: "send_mail", threshold: 0.2, criteria: { true: "own" } };
    const options = {
      tools: ["delete_file", tuned],
      classifier,
      criteria: { true: "general" },
      instructions: { ask: ["Is it?"] },
      environment: { deny: ["rm"] },
      limits: { totalBlocks: 5 },
      view: { mostRecent: 7 },
    };
    const policy = resolvePolicy(options);
    tuned.threshold = 1;
    tuned.criteria.true = "changed";
    options.tools.length = 0;
    options.criteria.true = "changed";
    options.instructions.ask.push("changed");
    options.environment.deny.length = 0;
    options.limits.totalBlocks = 1_000;
    options.view.mostRecent = 1;
    expect(policy.selection.ruleFor({ names: ["send_mail"], tool: undefined })).toEqual({
      criteria: { true: "own" },
      instructions: { ask: ["Is it?"] },
      threshold: 0.2,
    });
    expect(policy.general.criteria).toEqual({ true: "general" });
    expect(policy.environment).toEqual({ deny: ["rm"] });
    expect(policy.limits.totalBlocks).toBe(5);
    expect(policy.view.mostRecent).toBe(7);
  });

  test("and it cannot be changed itself", () => {
    expect(() => Object.assign(resolve(), { mode: "observe" })).toThrow(TypeError);
    expect(() => Object.assign(resolve().limits, { totalBlocks: 9 })).toThrow(TypeError);
  });

  test("the built-in criteria keep their identity, by which feedback knows them", () => {
    expect(ruleOf({})?.criteria).toBe(DEFAULT_CRITERIA);
  });
});

test("limits are merged over their defaults; a limit may be infinite, or undefined for its default", () => {
  expect(resolve({ limits: { totalBlocks: Infinity } }).limits).toEqual({
    consecutiveBlocks: 3,
    totalBlocks: Infinity,
    consecutiveUnavailable: 10,
  });
  expect(resolve({ limits: {} }).limits.totalBlocks).toBe(20);
});

test("a view is merged per field: the user's over the classifier's own over the default", () => {
  const wanting = Object.assign(fakeDecisionModel(), { view: { mostRecent: 5, maxChars: 9_000 } });
  expect(resolve({ classifier: wanting, view: { mostRecent: 7 } }).view).toEqual({
    ...DEFAULT_VIEW,
    mostRecent: 7,
    maxChars: 9_000,
  });
});

test("a function for the environment is kept as it is", () => {
  expect(resolve({ environment }).environment).toBe(environment);
});

import { tool } from "langchain";
import { type AutoModeOptions, ConfigurationError } from "langchain-auto-mode";
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from "vitest";
import { z } from "zod";
import { VERSIONS, play, rejection, stage } from "../kit/agent.js";
import { onToolCall } from "../kit/middlewares.js";
import { call } from "../kit/model.js";

const crm = (name: string, readOnly: boolean) =>
  Object.assign(
    tool(() => `${name} done`, { name, description: name, schema: z.object({}) }),
    { metadata: { annotations: { readOnlyHint: readOnly, destructiveHint: !readOnly } } },
  );
const tools = [crm("mcp__crm__read", true), crm("mcp__crm__write", false), crm("mcp__mail__send", false)];
const turns = [tools.map(({ name }) => call(name, {})), "end"];

describe.each(VERSIONS)("which tools are guarded, %s", (version) => {
  const guardedBy = async (selected: AutoModeOptions["tools"]) => {
    const { records } = await play({ version, turns, tools, options: { tools: selected } });
    return records.map(({ toolName }) => toolName);
  };

  test("a pattern guards every name that fits it", async () => {
    expect(await guardedBy(["mcp__crm__*"])).toEqual(["mcp__crm__read", "mcp__crm__write"]);
  });

  test("a predicate sees the tool object, with the annotations of its server", async () => {
    const writes: AutoModeOptions["tools"] = [
      (one) => (one as ReturnType<typeof crm>).metadata.annotations.destructiveHint,
    ];
    expect(await guardedBy(writes)).toEqual(["mcp__crm__write", "mcp__mail__send"]);
  });

  test("a predicate that throws guards the tool", async () => {
    const broken = [
      () => {
        throw new Error("no annotations");
      },
    ];
    expect(await guardedBy(broken)).toHaveLength(3);
  });

  test("a predicate that could not be asked goes after an entry that matches by name", async () => {
    // A tool that only a middleware behind the guard knows: no tool object comes to the guard.
    const hidden = crm("mcp__crm__write", false);
    const { records, messages } = await play({
      version,
      turns: [[call("mcp__crm__write", {}, "a"), call("mcp__other", {}, "b")], "end"],
      tools: tools.slice(0, 1),
      classifier: 0.6,
      inside: [onToolCall((request, handler) => handler({ ...request, tool: hidden }))],
      options: {
        tools: [
          { tool: ({ name }) => name === "draft", threshold: 1 },
          { tool: ({ name }) => name === "other", threshold: 0.7 },
          { tool: "mcp__crm__write", threshold: 0.3 },
        ],
        onUnknownTool: "ignore",
      },
    });
    expect(records.map(({ toolName, outcome, threshold }) => [toolName, outcome, threshold])).toEqual([
      ["mcp__crm__write", "blocked", 0.3],
      // Nothing matches for certain: the strictest of the settings that may be meant.
      ["mcp__other", "allowed", 0.7],
    ]);
    expect(messages.at(-1)?.text).toBe("end");
  });

  test("the first entry that matches gives the settings", async () => {
    const { records } = await play({
      version,
      turns,
      tools,
      classifier: 0.4,
      options: {
        tools: [
          { tool: "mcp__crm__write", threshold: 0.3 },
          { tool: "mcp__*", threshold: 0.9 },
        ],
      },
    });
    expect(records.map(({ toolName, outcome }) => [toolName, outcome])).toEqual([
      ["mcp__crm__read", "allowed"],
      ["mcp__crm__write", "blocked"],
      ["mcp__mail__send", "allowed"],
    ]);
  });

  test("a dot or another case is no fit", async () => {
    expect(await guardedBy(["mcp.crm.*", "MCP__*", "mcp__mail__send"])).toEqual(["mcp__mail__send"]);
  });
});

describe("an entry that selects no tool", () => {
  let warn: MockInstance<typeof console.warn>;
  beforeEach(() => {
    warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  });
  afterEach(() => warn.mockRestore());

  test("is reported once, whether it is a name, a pattern or a predicate", async () => {
    await play({ turns, tools, options: { tools: ["crm_read", "crm__*", () => false, "mcp__*"] } });
    expect(warn.mock.calls.map(([text]) => String(text))).toEqual([
      expect.stringContaining('"crm_read" is configured but selects no tool'),
      expect.stringContaining('"crm__*" is configured but selects no tool'),
      expect.stringContaining("the predicate tools[2] is configured but selects no tool"),
    ]);
  });

  test("ends the run at its first model call, where that is wanted", async () => {
    const scene = stage({ turns, tools, options: { tools: ["crm__*"], onUnknownTool: "throw" } });
    expect(ConfigurationError.find(await rejection(scene.invoke()))?.option).toBe("tools");
  });
});

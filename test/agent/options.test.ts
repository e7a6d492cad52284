import { fakeModel } from "@langchain/core/testing";
import { createAgent } from "langchain";
import { type AutoModeOptions, ConfigurationError, autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { type MockInstance, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { VERSIONS, answerTo, play, rejection, stage } from "../kit/agent.js";
import { call, del, scripted } from "../kit/model.js";
import { toolBox } from "../kit/tools.js";

const SECRET = "sk-SECRET";
const good = () => ({ tools: ["delete_file"], classifier: fakeDecisionModel() });

/**
 * What is not as it should be with the refusal of some options: the message has to name the option, the
 * type of the value and what is expected, and must not repeat the value.
 */
function flaws(options: unknown, option: string, message: RegExp): string[] {
  let error: unknown;
  try {
    autoModeMiddleware(options as AutoModeOptions);
    return ["it is accepted"];
  } catch (thrown) {
    error = thrown;
  }
  if (!(error instanceof ConfigurationError)) return [`it is ${String(error)}`];
  return [
    ...(error.option === option && error.message.includes(`"${option}"`) ? [] : [`it names ${error.option}`]),
    ...(message.test(error.message) ? [] : [`it says: ${error.message}`]),
    ...(`${error.message} ${JSON.stringify(error)} ${String(error.cause)}`.includes(SECRET)
      ? ["it repeats the value"]
      : []),
  ];
}
const wrong = (option: string, values: readonly unknown[], at: string, message: RegExp): string[] =>
  values.flatMap((value) => flaws({ ...good(), [option]: value }, at, message));

describe("a wrong option is refused at construction", () => {
  test("options that are no object", () => {
    const message = /expected an object with at least tools and classifier/;
    const given = [undefined, null, SECRET, 3, []];
    expect(given.flatMap((options) => flaws(options, "options", message))).toEqual([]);
  });

  test("a name that is no option", () => {
    expect(wrong("treshold", [SECRET], "treshold", /is not an option; check its spelling/)).toEqual([]);
  });

  test("tools", () => {
    const expected = /expected a list, not empty, of a tool's name, a tool object, a predicate, or \{ tool/;
    expect(flaws({ classifier: fakeDecisionModel() }, "tools", /is missing; expected a list/)).toEqual([]);
    expect(wrong("tools", [[], SECRET, {}, null], "tools", expected)).toEqual([]);
    const items = [42, "", null, undefined, {}, { name: SECRET }, { name: "", invoke: () => {} }, [SECRET]];
    const lists = items.map((item) => ["read_file", item]);
    expect(
      wrong("tools", lists, "tools[1]", /expected a tool's name, a tool object, a predicate, or/),
    ).toEqual([]);
  });

  test.each([
    ["threshold", SECRET, /is a string; expected a number from 0 to 1/],
    ["criteria", SECRET, /is a string; expected null, or an object/],
    ["instructions", 3, /is a number; expected a text/],
    ["thresold", 0.5, /is not an option/],
    ["tool", 3, /is a number; expected a tool's name/],
  ])("%s of one tool", (name, value, message) => {
    const tools = [{ tool: "delete_file", [name]: value }];
    expect(wrong("tools", [tools], `tools[0].${name}`, message)).toEqual([]);
  });

  test("classifier", () => {
    const expected = /expected a decision model, or a Runnable/;
    expect(flaws({ tools: ["a"] }, "classifier", /is missing; expected a decision model/)).toEqual([]);
    expect(
      wrong("classifier", [{}, SECRET, null, () => 0, { invoke: SECRET }], "classifier", expected),
    ).toEqual([]);
  });

  test("classifier, where a chat model is given: the message says how it judges", () => {
    const models = [fakeModel(), fakeModel().withConfig({ tags: ["t"] })];
    expect(wrong("classifier", models, "classifier", /new ChatDecisionModel\(\{ model \}\)/)).toEqual([]);
  });

  test("criteria", () => {
    const values = [SECRET, 3, [SECRET], { yes: SECRET }, { true: () => SECRET }, { false: NaN }];
    const expected = /expected null, or an object with JSON under the keys true and false/;
    expect(wrong("criteria", values, "criteria", expected)).toEqual([]);
  });

  test("instructions", () => {
    const values = [3, null, "", " \n", { ask: () => SECRET }, true];
    const expected = /expected a text that is not empty, a JSON object/;
    expect(wrong("instructions", values, "instructions", expected)).toEqual([]);
  });

  test("threshold", () => {
    const values = [SECRET, -0.1, 1.1, NaN, Infinity, null, [0.5]];
    expect(wrong("threshold", values, "threshold", /expected a number from 0 to 1/)).toEqual([]);
  });

  test("view", () => {
    const noView = [SECRET, 3, null];
    expect(
      wrong("view", noView, "view", /expected an object such as \{ channels: \["user", "toolCalls"\] \}/),
    ).toEqual([]);
    expect(
      wrong("view", [{ nope: SECRET }], "view.nope", /is not an option; expected one of channels/),
    ).toEqual([]);
  });

  test.each([
    ["channels", [SECRET], "[0]", /expected a list of channels: user/],
    ["channels", SECRET, "", /expected a list of channels: user/],
    ["mostRecent", 1.5, "", /expected a whole number >= 0, or Infinity/],
    ["maxChars", 0, "", /expected a whole number >= 1/],
    ["maxCharsPerEntry", SECRET, "", /expected a whole number >= 1/],
    ["maxCharsPerToolResult", -1, "", /expected a whole number >= 1/],
    ["delegationTools", [""], "[0]", /expected a list of tool names/],
  ])("%s of the view", (field, value, at, message) => {
    expect(wrong("view", [{ [field]: value }], `view.${field}${at}`, message)).toEqual([]);
  });

  test("the view that a classifier names", () => {
    const classifier = Object.assign(fakeDecisionModel(), { view: { mostRecent: SECRET } });
    const message = /is a string; expected a whole number/;
    expect(wrong("classifier", [classifier], "classifier.view.mostRecent", message)).toEqual([]);
  });

  test("environment", () => {
    const values = [NaN, { deny: new Map([[SECRET, 1]]) }, Symbol("x"), 1n];
    expect(wrong("environment", values, "environment", /expected JSON, or a function that gives it/)).toEqual(
      [],
    );
  });

  test("precheck", () => {
    const expected = /expected a function that gives "allow", "block", "ask" or "classify"/;
    expect(wrong("precheck", ["allow", null, {}], "precheck", expected)).toEqual([]);
  });

  test.each([
    [3, /is a number; expected a text with the field/],
    ["", /is an empty string; expected a text with the field/],
    ["  \n", /is an empty string; expected a text with the field/],
    [null, /is null; expected a text with the field/],
    [SECRET, /has no field \{reason\}; expected a text with the field/],
    [`{reason} {${SECRET}}`, /has an unknown field; expected a text with the field/],
    [`{reason} {${SECRET}`, /has a lone brace; expected a text with the field/],
  ])("feedback: %o", (feedback, message) => {
    expect(wrong("feedback", [feedback], "feedback", message)).toEqual([]);
  });

  test("limits", () => {
    expect(
      wrong("limits", [3, null, SECRET], "limits", /expected an object whose fields are each a whole/),
    ).toEqual([]);
    expect(wrong("limits", [{ blocks: 3 }], "limits.blocks", /is not an option/)).toEqual([]);
  });

  test.each(["consecutiveBlocks", "totalBlocks", "consecutiveUnavailable"])("the limit %s", (name) => {
    const values = [0, 1.5, -1, NaN, SECRET, null, -Infinity, 2 ** 60].map((value) => ({ [name]: value }));
    const expected = /expected a whole number of at least 1, or Infinity/;
    expect(wrong("limits", values, `limits.${name}`, expected)).toEqual([]);
  });

  test("whenLimitReached", () => {
    const values = [SECRET, null, () => {}, {}, { kind: SECRET }];
    const expected = /expected what is made by haltRun\(\), askHuman\(\)/;
    expect(wrong("whenLimitReached", values, "whenLimitReached", expected)).toEqual([]);
  });

  test.each([
    ["onUnavailable", /expected one of "throw", "continue", "ask"/],
    ["siblings", /expected one of "independent", "all-or-none"/],
    ["author", /expected one of "user", "agent"/],
    ["mode", /expected one of "enforce", "observe"/],
    ["onUnknownTool", /expected one of "warn", "ignore", "throw"/],
  ])("%s", (option, expected) => {
    expect(wrong(option, [SECRET, true, null, 0, ["throw"]], option, expected)).toEqual([]);
  });

  test("timeoutMs", () => {
    const values = [0, -1, SECRET, NaN, Infinity, 2 ** 31, null];
    const expected = /expected milliseconds, more than 0 and at most 2147483647/;
    expect(wrong("timeoutMs", values, "timeoutMs", expected)).toEqual([]);
  });

  test("explain", () => {
    expect(wrong("explain", [SECRET, 1, null], "explain", /expected true or false/)).toEqual([]);
  });

  test("onDecision", () => {
    const expected = /expected a function that takes a decision record/;
    expect(wrong("onDecision", [SECRET, null, {}], "onDecision", expected)).toEqual([]);
  });

  test("label", () => {
    const expected = /expected a text that is not empty/;
    expect(wrong("label", ["", " ", 3, null], "label", expected)).toEqual([]);
    // The host's own names and keys, and the second key of an instance named "mail".
    const taken = ["a:b", "a|b", "_proto__", "_start__", "_pregel_tasks", "mail_input"];
    expect(wrong("label", taken, "label", expected)).toEqual([]);
  });
});

describe("options at their bounds are taken", () => {
  test.each<Partial<AutoModeOptions>>([
    { threshold: 0 },
    { threshold: 1 },
    { limits: { consecutiveBlocks: 1, totalBlocks: Infinity } },
    { limits: {} },
    { timeoutMs: 2 ** 31 - 1 },
    { timeoutMs: 0.5 },
    { criteria: {} },
    { criteria: null },
    { environment: null },
    { environment: [] },
    { instructions: [] },
    { view: {} },
    { view: { channels: [], mostRecent: 0, maxChars: 1 } },
  ])("%o", (options) => {
    expect(() => autoModeMiddleware({ ...good(), ...options })).not.toThrow();
  });

  test("a binding of a decision model judges as the model itself", async () => {
    const classifier = fakeDecisionModel().fail(new Error("flaky")).respond(0);
    const { box, records } = await play({
      turns: [del("/a")],
      classifier: classifier.withRetry({ stopAfterAttempt: 2 }),
    });
    expect(box.ran).toHaveLength(1);
    expect(records[0]?.classifier).toBe("fake");
  });
});

test("the label is the middleware's name", () => {
  expect(autoModeMiddleware(good()).name).toBe("autoMode");
  expect(autoModeMiddleware({ ...good(), label: "mail" }).name).toBe("mail");
});

const answering = (label: string, risk: number) =>
  autoModeMiddleware({ tools: ["delete_file"], label, classifier: fakeDecisionModel().always(risk) });

describe.each(VERSIONS)("names of tools match exactly, %s", (version) => {
  let warn: MockInstance<typeof console.warn>;
  beforeEach(() => {
    warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  });
  afterEach(() => warn.mockRestore());

  test.each([
    ["delete_flie", "delete_file"],
    ["Delete_File", "delete_file"],
    ["delete_file ", "delete_file"],
    ["delete", "delete_file"],
    ["delete_files", "delete_file"],
  ])("%o does not guard %s, and is reported once", async (configured) => {
    const scene = stage({
      version,
      turns: [del("/a"), "end", del("/b")],
      classifier: 1,
      options: { tools: [configured] },
    });
    await scene.invoke();
    await scene.invoke();
    expect(scene.box.ran).toHaveLength(2);
    expect(scene.records).toEqual([]);
    expect(warn.mock.calls).toEqual([[expect.stringContaining(`"${configured}"`)]]);
  });

  test("nothing is printed where all names match, or where that is wanted", async () => {
    await play({ version, turns: [del("/a")] });
    await play({ version, turns: [del("/a")], options: { tools: ["nobody"], onUnknownTool: "ignore" } });
    expect(warn).not.toHaveBeenCalled();
  });

  test("the first model call throws, where that is wanted, and nothing runs", async () => {
    const scene = stage({
      version,
      turns: [del("/a")],
      options: { tools: ["delete_file", "nobody"], onUnknownTool: "throw" },
    });
    const error = await rejection(scene.invoke());
    expect(ConfigurationError.find(error)?.message).toMatch(
      /"tools" has "nobody", which selects no tool of the agent/,
    );
    expect(scene.model.callCount).toBe(0);
    expect(scene.box.ran).toEqual([]);
    expect(warn).not.toHaveBeenCalled();
  });

  test("two instances with labels of their own guard, count and record apart", async () => {
    const box = toolBox();
    const labels: string[] = [];
    const guardOf = (label: string, tools: string[]) =>
      autoModeMiddleware({
        tools,
        label,
        classifier: fakeDecisionModel().always(0.9),
        onDecision: (record) => void labels.push(record.label),
      });
    const mail = { to: "a", body: "b" };
    const agent = createAgent({
      model: scripted(
        [del("/a", "1"), call("send_mail", mail, "2")],
        [del("/b", "3"), call("send_mail", mail, "4")],
        "end",
      ),
      tools: box.all,
      middleware: [guardOf("files", ["delete_file"]), guardOf("mail", ["send_mail"])],
      version,
    });
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "go" }] });
    // Two blocks in each do not add up to the limit of three.
    expect(messages.at(-1)?.text).toBe("end");
    expect(labels.filter((label) => label === "mail")).toHaveLength(2);
    expect(labels).toHaveLength(4);
    for (const id of ["1", "2", "3", "4"]) expect(answerTo(messages, id).status).toBe("error");
  });

  test.each([
    [0, 0, 1],
    [0, 1, 0],
    [1, 0, 0],
    [1, 1, 0],
  ])("two instances guard one tool and judge %d and %d: it runs %d times", async (one, two, times) => {
    const box = toolBox();
    const agent = createAgent({
      model: scripted(del("/a", "a"), "end"),
      tools: box.all,
      middleware: [answering("one", one), answering("two", two)],
      version,
    });
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "go" }] });
    expect(answerTo(messages, "a").status).toBe(times === 1 ? "success" : "error");
    expect(box.ran).toHaveLength(times);
  });
});

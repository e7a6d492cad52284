import Module from "node:module";
import { ConfigurationError } from "langchain-auto-mode";
import {
  createSafeguardsHandler,
  type SafeguardRecord,
  type SafeguardRule,
  type SafeguardsOptions,
} from "langchain-auto-mode/safeguards";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  available,
  flagged,
  type Json,
  message,
  notFlagged,
  request,
  toolUse,
  unavailable,
} from "./messages.js";
import { ScriptedClassifier } from "./scripted-classifier.js";

interface Judged {
  readonly calls: readonly Json[];
  readonly rules: readonly SafeguardRule[];
  readonly options?: Partial<SafeguardsOptions>;
  readonly reply?: Json;
}

/** Sends calls through a gateway with rules. Its classifier flags whatever it is asked about. */
async function judge({ calls, rules, options = {}, reply = {} }: Judged) {
  const classifier = new ScriptedClassifier(() => 1);
  const records: SafeguardRecord[] = [];
  const handler = createSafeguardsHandler({
    upstream: async () => Response.json(message(calls, reply)),
    classifier,
    rules,
    onJudged: (record) => void records.push(record),
    ...options,
  });
  const body = JSON.stringify(request({ stream: false }));
  const response = await handler(new Request("http://h/v1/messages", { method: "POST", body }));
  const { safeguard_results: results } = (await response.json()) as Json;
  return { results, records, asked: classifier.states.map(({ tool_calls }) => Object.values(tool_calls)) };
}

const bash = (command: unknown) => toolUse("toolu_a", "Bash", { command });
const allowList: SafeguardRule[] = [
  { tool: "Bash", match: { command: "^git (status|diff)$" }, decide: "allow" },
];
const byClassifier = flagged(expect.any(String));

describe("rules", () => {
  test("the first that fits decides, and the classifier is not asked", async () => {
    const rules: SafeguardRule[] = [
      { tool: "Bash", match: { command: "\\bsudo\\b" }, decide: "deny", reason: "No\nsudo here." },
      { tool: "Bash", decide: "allow" },
      { tool: "*", decide: "deny" },
    ];
    const calls = [
      toolUse("toolu_a", "Bash", { command: "sudo rm x" }),
      toolUse("toolu_b", "Bash", { command: "rm x" }),
      toolUse("toolu_c", "Write", {}),
    ];
    const { results, asked, records } = await judge({ calls, rules });
    expect(results).toEqual(
      available({
        toolu_a: flagged("No sudo here"),
        toolu_b: notFlagged,
        toolu_c: flagged("A rule of the gateway's operator forbids this call"),
      }),
    );
    expect(asked).toEqual([]);
    expect(records).toEqual([
      {
        at: expect.any(String),
        messageId: "msg_1",
        model: "model-a",
        streamed: false,
        status: "available",
        outcomes: { toolu_a: "flagged", toolu_b: "not_flagged", toolu_c: "flagged" },
        rules: { toolu_a: 0, toolu_b: 1, toolu_c: 2 },
      },
    ]);
    expect(JSON.stringify(records)).not.toMatch(/sudo|Bash/);
  });

  test("only the calls that no rule decides are sent to the classifier", async () => {
    const rules: SafeguardRule[] = [
      { tool: "mcp__crm__delete", decide: "classify" },
      { tool: "mcp__crm__*", decide: "allow" },
    ];
    const calls = ["mcp__crm__read", "mcp__crm__delete", "Bash"].map((name) => toolUse(name, name, {}));
    const { results, asked, records } = await judge({ calls, rules });
    expect(results).toEqual(
      available({ mcp__crm__read: notFlagged, mcp__crm__delete: byClassifier, Bash: byClassifier }),
    );
    expect(asked.map((shown) => shown.map(({ name }) => name))).toEqual([["mcp__crm__delete", "Bash"]]);
    expect(records[0]).toMatchObject({ rules: { mcp__crm__read: 1 }, classifier: "scripted-1" });
  });

  test("what they decide stays when the classifier fails or may not be asked", async () => {
    const calls = [toolUse("toolu_a", "Read", {}), toolUse("toolu_b", "Bash", {})];
    const rules: SafeguardRule[] = [{ tool: "Read", decide: "allow" }];
    const expected = available({ toolu_a: notFlagged, toolu_b: unavailable("error") });
    const failing = new ScriptedClassifier(() => Promise.reject(new Error("down")));
    expect((await judge({ calls, rules, options: { classifier: failing } })).results).toEqual(expected);
    const { results, asked } = await judge({ calls, rules, options: { allow: () => "skip" } });
    expect(results).toEqual(expected);
    expect(asked).toEqual([]);
  });

  test("a call that was cut off, or shares its id, is allowed by none", async () => {
    const rules: SafeguardRule[] = [{ tool: "*", decide: "allow" }];
    const cut = await judge({ calls: [bash("ls")], rules, reply: { stop_reason: "max_tokens" } });
    expect(cut.results).toEqual(available({ toolu_a: unavailable("truncated") }));
    const { results } = await judge({ calls: [bash("ls"), bash("rm")], rules });
    expect(results).toEqual(available({ toolu_a: unavailable("error") }));
  });

  test("an anchored pattern fits the whole argument", async () => {
    const { results } = await judge({ calls: [bash("git status")], rules: allowList });
    expect(results).toEqual(available({ toolu_a: notFlagged }));
  });

  test.each<[string, Json]>([
    ["more after it", { command: "git status && rm -rf /" }],
    ["a second line", { command: "git status\nrm -rf /" }],
    ["a line end after it", { command: "git status\n" }],
    ["another case", { command: "GIT STATUS" }],
    ["a value that is no text", { command: ["git status"] }],
    ["the argument under another name", { cmd: "git status" }],
    ["no arguments", {}],
  ])("an anchored pattern does not fit %s", async (_, input) => {
    const { results } = await judge({ calls: [toolUse("toolu_a", "Bash", input)], rules: allowList });
    expect(results).toEqual(available({ toolu_a: byClassifier }));
  });

  test("a member that every object has is no argument", async () => {
    const rules: SafeguardRule[] = [{ tool: "Bash", match: { toString: "." }, decide: "allow" }];
    expect((await judge({ calls: [bash("ls")], rules })).results).toEqual(
      available({ toolu_a: byClassifier }),
    );
  });

  test("values that are no text are matched as JSON text, and all patterns must be found", async () => {
    const rules: SafeguardRule[] = [
      { tool: "Pay", match: { amount: "^[0-9]{1,2}$", to: '"name":"shop"' }, decide: "allow" },
    ];
    const pay = async (amount: unknown, to: unknown) => {
      const { results } = await judge({ calls: [toolUse("toolu_a", "Pay", { amount, to })], rules });
      return results;
    };
    expect(await pay(42, { name: "shop" })).toEqual(available({ toolu_a: notFlagged }));
    expect(await pay(420, { name: "shop" })).toEqual(available({ toolu_a: byClassifier }));
    expect(await pay(42, { name: "other" })).toEqual(available({ toolu_a: byClassifier }));
  });

  test("no pattern hangs the gateway, however long the argument", async () => {
    const rules: SafeguardRule[] = [{ tool: "Bash", match: { command: "(a+)+$" }, decide: "allow" }];
    const { results } = await judge({ calls: [bash(`${"a".repeat(1_000_000)}b`)], rules });
    expect(results).toEqual(available({ toolu_a: byClassifier }));
  });
});

function problem(rules: unknown): ConfigurationError | undefined {
  try {
    const options = { upstream: "http://h", classifier: new ScriptedClassifier(), rules };
    createSafeguardsHandler(options as SafeguardsOptions);
  } catch (error) {
    return ConfigurationError.find(error);
  }
  return undefined;
}

describe("wrong rules", () => {
  test.each<[string, unknown, string]>([
    ["no list", { tool: "sk-1" }, "rules"],
    ["a rule without a tool", [{ decide: "allow" }], "rules[0].tool"],
    ["a rule without a decision", [{ tool: "sk-1" }], "rules[0].decide"],
    ["an unknown decision", [{ tool: "x", decide: "sk-1" }], "rules[0].decide"],
    ["an unknown field", [{ tool: "x", decide: "allow", matches: "sk-1" }], "rules[0].matches"],
    ["a pattern that is none", [{ tool: "x", decide: "allow", match: { a: 1 } }], "rules[0].match.a"],
    ["an empty pattern", [{ tool: "x", decide: "allow", match: { a: "" } }], "rules[0].match.a"],
    ["a broken pattern", [{ tool: "x", decide: "deny", match: { a: "(sk-1" } }], "rules[0].match.a"],
    ["a backreference", [{ tool: "x", decide: "deny", match: { a: "(sk-1)\\1" } }], "rules[0].match.a"],
    ["a lookahead", [{ tool: "x", decide: "deny", match: { a: "(?=sk-1)" } }], "rules[0].match.a"],
  ])("%s: an error at construction that names the option and not the value", (_, rules, option) => {
    const error = problem(rules);
    expect(error?.option).toBe(option);
    expect(error?.message).not.toContain("sk-1");
  });

  test("patterns without their engine: the error names the command that installs it", () => {
    const loader = Module as unknown as { _load(name: string, ...rest: unknown[]): unknown };
    const load = loader._load.bind(Module);
    const spy = vi.spyOn(loader, "_load").mockImplementation((name, ...rest) => {
      if (name === "re2js") throw Object.assign(new Error("Cannot find it"), { code: "MODULE_NOT_FOUND" });
      return load(name, ...rest);
    });
    onTestFinished(() => spy.mockRestore());
    expect(problem([{ tool: "x", match: { a: "b" }, decide: "allow" }])?.message).toMatch(
      /rules\[0\]\.match\.a.*npm install re2js/,
    );
    expect(problem([{ tool: "x", decide: "allow" }])).toBeUndefined();
  });
});

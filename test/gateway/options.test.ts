import { ConfigurationError } from "langchain-auto-mode";
import {
  createSafeguardsHandler,
  type SafeguardRecord,
  type SafeguardsOptions,
} from "langchain-auto-mode/safeguards";
import { describe, expect, test, vi } from "vitest";
import { message, request, toolUse } from "./messages.js";
import { ScriptedChatModel } from "./model/scripted-chat-model.js";
import { ScriptedClassifier } from "./scripted-classifier.js";

const fine: SafeguardsOptions = { upstream: "http://h", classifier: new ScriptedClassifier() };

describe("the options", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["no upstream and no model", { upstream: undefined }, "upstream"],
    ["a model beside an upstream", { model: new ScriptedChatModel([]) }, "model"],
    ["a model that is a name", { upstream: undefined, model: "sk-1" }, "model"],
    ["an upstream that is no URL", { upstream: "sk-1" }, "upstream"],
    ["an upstream of another protocol", { upstream: "file:///sk-1" }, "upstream"],
    ["an upstream with credentials", { upstream: "http://sk-1@h" }, "upstream"],
    ["an upstream with a query", { upstream: "http://h/?sk-1" }, "upstream"],
    ["no classifier", { classifier: undefined }, "classifier"],
    ["a classifier that cannot be asked", { classifier: { model: "sk-1" } }, "classifier"],
    ["a fallback that cannot be asked", { fallback: { model: "sk-1" } }, "fallback"],
    ["retries without an end", { retries: Infinity }, "retries"],
    ["a threshold above one", { threshold: 1.5 }, "threshold"],
    ["a timeout of nothing", { timeoutMs: 0 }, "timeoutMs"],
    ["a ping interval of nothing", { pingIntervalMs: 0 }, "pingIntervalMs"],
    ["a limit of no bytes", { maxBodyBytes: 0 }, "maxBodyBytes"],
    ["criteria of other keys", { criteria: { yes: "sk-1" } }, "criteria"],
    ["empty instructions", { instructions: " " }, "instructions"],
    ["a view of unknown channels", { view: { channels: ["sk-1"] } }, "view.channels[0]"],
    ["an unknown field of the view", { view: { maxCharacters: 1 } }, "view.maxCharacters"],
    ["an allow that is no function", { allow: "sk-1" }, "allow"],
    ["models that are no texts", { mapModel: { a: 1 } }, "mapModel.a"],
    ["a record listener that is no function", { onJudged: {} }, "onJudged"],
    ["an unknown option", { treshold: "sk-1" }, "treshold"],
  ])("%s: an error at construction that names the option and not the value", (_, wrong, option) => {
    let caught: unknown;
    try {
      createSafeguardsHandler({ ...fine, ...wrong });
    } catch (error) {
      caught = error;
    }
    expect(ConfigurationError.find(caught)?.option).toBe(option);
    expect((caught as Error).message).not.toContain("sk-1");
  });

  test.each(["http://h", "https://h:8443/anthropic/", new URL("http://[::1]:1/x")])(
    "%s is an upstream",
    (upstream) => {
      expect(createSafeguardsHandler({ ...fine, upstream })).toBeTypeOf("function");
    },
  );
});

describe("the record of a judged reply", () => {
  const calls = [
    toolUse("toolu_a", "Bash", { command: "SECRET" }),
    toolUse("toolu_a", "Bash", {}),
    toolUse("toolu_b", "Bash", {}),
  ];
  const ask = (options: Partial<SafeguardsOptions>, fields = {}) =>
    createSafeguardsHandler({ ...fine, upstream: async () => Response.json(message(calls)), ...options })(
      new Request("http://h/v1/messages", {
        method: "POST",
        body: JSON.stringify(request({ stream: false, ...fields })),
      }),
    );

  test("says ids, outcomes, latency and usage, and no content", async () => {
    const records: SafeguardRecord[] = [];
    const classifier = new ScriptedClassifier(() => ({ risk: 1, explanation: "SECRET" }));
    await ask({ classifier, onJudged: (record) => void records.push(record) });
    expect(records).toEqual([
      {
        at: expect.stringMatching(/^\d{4}-.*Z$/),
        messageId: "msg_1",
        model: "model-a",
        streamed: false,
        status: "available",
        outcomes: { toolu_a: "error", toolu_b: "flagged" },
        classifier: "scripted-1",
        latencyMs: expect.any(Number),
        usage: expect.objectContaining({ input_tokens: 10, output_tokens: 2, total_tokens: 12 }),
        requestId: "req_1",
      },
    ]);
    expect(JSON.stringify(records)).not.toMatch(/SECRET|Bash/);
  });

  test("is written for unsupported too, and not for a reply that nobody asked to judge", async () => {
    const records: SafeguardRecord[] = [];
    const onJudged = (record: SafeguardRecord) => void records.push(record);
    await ask({ onJudged, allow: () => "unsupported" });
    await ask({ onJudged }, { safeguards: undefined });
    expect(records).toEqual([expect.objectContaining({ status: "unsupported", outcomes: {} })]);
  });

  test.each<[string, SafeguardsOptions["onJudged"]]>([
    [
      "throws",
      () => {
        throw new Error("SECRET");
      },
    ],
    ["rejects", () => Promise.reject(new Error("SECRET"))],
  ])("whose listener %s is one warning without content, and the reply goes out", async (_, onJudged) => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    expect((await ask({ onJudged: onJudged! })).status).toBe(200);
    await vi.waitFor(() => expect(warn).toHaveBeenCalledTimes(1));
    expect(JSON.stringify(warn.mock.calls)).not.toContain("SECRET");
    warn.mockRestore();
  });
});

import {
  BaseDecisionModel,
  type ClassifierResponse,
  parseClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import { RunnableLambda } from "@langchain/core/runnables";
import { ClassificationError, ConfigurationError, type MonitorView } from "langchain-auto-mode";
import {
  CascadeDecisionModel,
  type CascadeStage,
  ProvenanceDecisionModel,
} from "langchain-auto-mode/classifiers";
import { describe, expect, test } from "vitest";
import { failureOf } from "./failures.js";
import { requestFor } from "./provenance/requests.js";
import { kind, oneCall, risky } from "./questions.js";

type Answers = Record<string, number | { label: string }>;

/** Gives these answers, or fails with this error. Records what it was asked. */
class Scripted extends BaseDecisionModel {
  lc_namespace = ["test"];
  readonly asked: { state: State; ids: string[] }[] = [];
  readonly view: Partial<MonitorView> | undefined;
  readonly #reply: Answers | (() => unknown);

  constructor(model: string, reply: Answers | (() => unknown), view?: Partial<MonitorView>) {
    super({ model });
    this.#reply = reply;
    this.view = view;
  }
  get _provider() {
    return "test";
  }
  async _classify(state: State, questions: Record<string, Question>): Promise<ClassifierResponse> {
    const ids = Object.keys(questions);
    this.asked.push({ state, ids });
    if (typeof this.#reply === "function") throw this.#reply();
    return parseClassifierResponse({
      model: this.model,
      answers: Object.fromEntries(
        Object.entries(this.#reply)
          .filter(([id]) => ids.includes(id))
          .map(([id, value]) => [id, answer(value)]),
      ),
      usage_metadata: { input_tokens: 10, output_tokens: 1, input_token_details: { cache_read: 4 } },
      requestId: `request of ${this.model}`,
    });
  }
}

function answer(value: number | { label: string }) {
  if (typeof value === "number") return { type: "noul", noul: value };
  return { type: "choice", choice: value.label, confidence: 1, probabilities: { [value.label]: 1 } };
}

const calls = { call_1: risky, call_2: risky, call_3: risky };
const request = { state: oneCall, questions: calls };
const cascade = (first: CascadeStage, second: CascadeStage, escalate?: [number, number]) =>
  new CascadeDecisionModel({ first, second, ...(escalate === undefined ? {} : { escalate }) });

describe("what goes on to the second model", () => {
  test("only the questions in the range, both ends included, whose answer then counts", async () => {
    const first = new Scripted("fast", { call_1: 0.0999, call_2: 0.1, call_3: 1 });
    const second = new Scripted("good", { call_1: 1, call_2: 0.02, call_3: 0.97 });
    const response = await cascade(first, second).invoke(request);
    expect(first.asked).toEqual([{ state: oneCall, ids: ["call_1", "call_2", "call_3"] }]);
    expect(second.asked).toEqual([{ state: oneCall, ids: ["call_2", "call_3"] }]);
    expect(response.answers).toEqual({
      call_1: { type: "noul", noul: 0.0999, decidedBy: "fast" },
      call_2: { type: "noul", noul: 0.02, decidedBy: "good" },
      call_3: { type: "noul", noul: 0.97, decidedBy: "good" },
    });
  });

  test("nothing, if the first is sure: then it decides alone", async () => {
    const second = new Scripted("good", {});
    const response = await cascade(
      new Scripted("fast", { call_1: 0, call_2: 0.05, call_3: 0 }),
      second,
    ).invoke(request);
    expect(second.asked).toEqual([]);
    expect(response).toMatchObject({
      model: "fast",
      requestId: "request of fast",
      usage_metadata: { input_tokens: 10 },
    });
  });

  test("another range, if one is given", async () => {
    const second = new Scripted("good", { call_2: 0.5 });
    const first = new Scripted("fast", { call_1: 0.29, call_2: 0.3, call_3: 0.71 });
    const response = await cascade(first, second, [0.3, 0.7]).invoke(request);
    expect(second.asked[0]!.ids).toEqual(["call_2"]);
    expect(response.nouls.call_3.noul).toBe(0.71);
  });

  test("choices together with a yes/no question that is open, and otherwise not", async () => {
    const second = new Scripted("good", { call_1: 0.9, kind: { label: "secrets" } });
    const sure = new Scripted("fast", { call_1: 0, kind: { label: "none" } });
    const unsure = new Scripted("fast", { call_1: 0.5, kind: { label: "none" } });
    const asked = { state: oneCall, questions: { call_1: risky, kind } };
    expect((await cascade(sure, second).invoke(asked)).choices.kind.choice).toBe("none");
    expect(second.asked).toEqual([]);
    expect((await cascade(unsure, second).invoke(asked)).choices.kind.choice).toBe("secrets");
  });

  test("a choice alone is the first model's", async () => {
    const second = new Scripted("good", { kind: { label: "secrets" } });
    const first = new Scripted("fast", { kind: { label: "none" } });
    const response = await cascade(first, second).invoke({ state: oneCall, questions: { kind } });
    expect([response.choices.kind.choice, second.asked]).toEqual(["none", []]);
  });
});

describe("who decided, and what it cost", () => {
  test("usage adds up, and the response names both where both decided", async () => {
    const first = new Scripted("fast", { call_1: 0, call_2: 0.5, call_3: 0.5 });
    const second = new Scripted("good", { call_2: 0, call_3: 0 });
    const model = cascade(first, second);
    const response = await model.invoke(request);
    expect(model.model).toBe("fast > good");
    expect(response).toMatchObject({
      model: "fast > good",
      usage_metadata: {
        input_tokens: 20,
        output_tokens: 2,
        total_tokens: 22,
        input_token_details: { cache_read: 8 },
      },
      requestId: "request of good",
    });
  });

  test("the response names the second where it decided everything", async () => {
    const first = new Scripted("fast", { call_1: 0.5 });
    const response = await cascade(first, new Scripted("good", { call_1: 0 })).invoke({
      state: oneCall,
      questions: { call_1: risky },
    });
    expect(response.model).toBe("good");
  });

  test("usage stays open where no model reports it", async () => {
    const silent = RunnableLambda.from(async () =>
      parseClassifierResponse({ model: "silent", answers: { call_1: answer(0) } }),
    ) as unknown as CascadeStage;
    const response = await cascade(silent, silent).invoke({ state: "x", questions: { call_1: risky } });
    expect(response.usage_metadata).toBeUndefined();
  });

  test("an explanation stays with its answer", async () => {
    const explained = RunnableLambda.from(async () => {
      const response = parseClassifierResponse({ model: "good", answers: { call_1: answer(0.9) } });
      Object.assign(response.answers["call_1"]!, { explanation: "It deletes." });
      return response;
    }) as unknown as CascadeStage;
    const first = new Scripted("fast", { call_1: 0.5 });
    const response = await cascade(first, explained).invoke({ state: "x", questions: { call_1: risky } });
    expect(response.answers.call_1).toMatchObject({
      noul: 0.9,
      explanation: "It deletes.",
      decidedBy: "good",
    });
  });
});

describe("with a question for the kind of risk", () => {
  const explained = { state: oneCall, questions: { call_1: risky, kind_1: kind } };

  test("a call that the first clears and names the kind of is asked of nobody else", async () => {
    const second = new Scripted("good", {});
    await cascade(new Scripted("fast", { call_1: 0, kind_1: { label: "none" } }), second).invoke(explained);
    expect(second.asked).toEqual([]);
  });

  test("a first that leaves the kind unanswered fails, and everything goes to the second", async () => {
    const second = new Scripted("good", { call_1: 1, kind_1: { label: "none" } });
    const response = await cascade(new Scripted("fast", { call_1: 0 }), second).invoke(explained);
    expect(second.asked.map(({ ids }) => ids)).toEqual([["call_1", "kind_1"]]);
    expect(response.answers.call_1).toMatchObject({ noul: 1, decidedBy: "good" });
  });

  test("a first whose failure holds the risk keeps it, and the second is asked for the kind alone", async () => {
    const second = new Scripted("good", { call_1: 1, kind_1: { label: "none" } });
    const partial = new ClassificationError("error", { answers: { call_1: answer(0) } });
    const response = await cascade(new Scripted("fast", () => partial), second).invoke(explained);
    expect(second.asked.map(({ ids }) => ids)).toEqual([["kind_1"]]);
    expect(response.answers).toMatchObject({
      call_1: { noul: 0, decidedBy: "fast" },
      kind_1: { choice: "none", decidedBy: "good" },
    });
  });
});

describe("the offline model, which does not know what is dangerous", () => {
  const wipe = { name: "shell", args: { command: "rm -rf /srv/data" }, description: "Runs a command." };
  const unasked = requestFor([{ from: "user", text: "What is new?" }], [wipe], { explain: true });

  test("first with the default range: it clears what nobody asked for, and nobody else is asked", async () => {
    const second = new Scripted("good", { call_1: 1 });
    const { answers } = await cascade(new ProvenanceDecisionModel(), second).invoke(unasked);
    expect(answers["call_1"]).toMatchObject({ decidedBy: "provenance-2" });
    expect(second.asked).toEqual([]);
  });

  test("first with a range that sends everything on: the second decides", async () => {
    const second = new Scripted("good", { call_1: 1, kind_1: { label: "destructive" } });
    const { answers } = await cascade(new ProvenanceDecisionModel(), second, [0, 1]).invoke(unasked);
    expect(answers).toMatchObject({
      call_1: { noul: 1, decidedBy: "good" },
      kind_1: { choice: "destructive", decidedBy: "good" },
    });
  });
});

describe("failures", () => {
  test.each([
    ["an error", () => new Error("down")],
    ["a timeout", () => new ClassificationError("timeout")],
    ["a refusal", () => new ClassificationError("refused")],
    ["a text", () => "down"],
  ])("of the first (%s) goes to the second", async (_, fail) => {
    const second = new Scripted("good", { call_1: 0, call_2: 0.4, call_3: 1 });
    const response = await cascade(new Scripted("fast", fail), second).invoke(request);
    expect(second.asked[0]!.ids).toEqual(["call_1", "call_2", "call_3"]);
    expect([response.model, response.usage_metadata?.input_tokens]).toEqual(["good", 10]);
  });

  test("of one question of the first: only that one goes to the second", async () => {
    const first = new Scripted(
      "fast",
      () =>
        new ClassificationError("refused", {
          answers: { call_1: answer(0.01), call_2: answer(0.02), call_9: answer(0) },
        }),
    );
    const second = new Scripted("good", { call_3: 0.9 });
    const response = await cascade(first, second).invoke(request);
    expect(second.asked[0]!.ids).toEqual(["call_3"]);
    expect(response.nouls).toMatchObject({ call_1: { noul: 0.01 }, call_3: { noul: 0.9 } });
  });

  test.each<[string, unknown]>([
    ["no number", { type: "noul", noul: Number.NaN }],
    ["a number above 1", { type: "noul", noul: 1.1 }],
    ["a text", { type: "noul", noul: "0" }],
    ["another type", { type: "choice", choice: "none" }],
    ["null", null],
    ["nothing", undefined],
  ])("of the first to answer properly (%s) goes to the second", async (_, bad) => {
    const first = RunnableLambda.from(async () => ({
      model: "",
      answers: { call_1: bad },
    })) as unknown as CascadeStage;
    const second = new Scripted("good", { call_1: 0.9 });
    const response = await cascade(first, second).invoke({ state: "x", questions: { call_1: risky } });
    expect(response.nouls.call_1.noul).toBe(0.9);
  });

  test("a label that is none goes to the second too", async () => {
    const first = RunnableLambda.from(async () => ({
      answers: { kind: answer({ label: "toString" }) },
    })) as unknown as CascadeStage;
    const second = new Scripted("good", { kind: { label: "none" } });
    const response = await cascade(first, second).invoke({ state: "x", questions: { kind } });
    expect(response.choices.kind.choice).toBe("none");
  });

  test("of the second is one of what it was asked; the rest counts", async () => {
    const failure = new ClassificationError("timeout", { answers: { call_2: answer(0.8) }, status: 504 });
    const first = new Scripted("fast", { call_1: 0.01, call_2: 0.5, call_3: 0.5 });
    const error = await failureOf(cascade(first, new Scripted("good", () => failure)).invoke(request));
    expect([error.reason, error.status, error.cause]).toEqual(["timeout", 504, failure]);
    expect(error.answers).toEqual({
      call_1: { type: "noul", noul: 0.01, decidedBy: "fast" },
      call_2: { type: "noul", noul: 0.8, decidedBy: "good" },
    });
  });

  test("of the second to answer at all is an error", async () => {
    const first = new Scripted("fast", { call_1: 0.5 });
    const second = RunnableLambda.from(async () => ({ answers: {} })) as unknown as CascadeStage;
    const asked = cascade(first, second).invoke({ state: "x", questions: { call_1: risky } });
    expect(await failureOf(asked)).toMatchObject({ reason: "error", answers: {} });
  });

  test("of the second by an error of any kind is an error", async () => {
    const boom = new Error("boom");
    const first = new Scripted("fast", { call_1: 0.5, call_2: 0.5, call_3: 0.5 });
    const error = await failureOf(cascade(first, new Scripted("good", () => boom)).invoke(request));
    expect(error).toMatchObject({ reason: "error", answers: {}, cause: { reason: "error", cause: boom } });
  });

  test("of the second never lets the first's doubt through as an answer", async () => {
    const first = new Scripted("fast", { call_1: 0.1, call_2: 0.2, call_3: 0.05 });
    const second = new Scripted("good", () => new Error("down"));
    const error = await failureOf(cascade(first, second).invoke(request));
    expect(Object.keys(error.answers)).toEqual(["call_3"]);
  });

  test("of both has the second's reason", async () => {
    const first = new Scripted("fast", () => new ClassificationError("refused"));
    const second = new Scripted("good", () => new ClassificationError("input_too_long"));
    expect((await failureOf(cascade(first, second).invoke(request))).reason).toBe("input_too_long");
  });

  test("an abort is the caller's, and nobody else is asked", async () => {
    const abort = new AbortController();
    const stop = new Error("The user pressed stop.");
    const first = new Scripted("fast", () => {
      abort.abort(stop);
      return new Error("whatever the client makes of it");
    });
    const second = new Scripted("good", { call_1: 0, call_2: 0, call_3: 0 });
    await expect(cascade(first, second).invoke(request, { signal: abort.signal })).rejects.toBe(stop);
    expect(second.asked).toEqual([]);
  });

  test("a wrong configuration of the first is not hidden by the second", async () => {
    const first = new Scripted("fast", () => new ConfigurationError("classifier", "needs a package"));
    await expect(cascade(first, new Scripted("good", {})).invoke(request)).rejects.toThrow(
      ConfigurationError,
    );
  });
});

/** The view of a cascade of two models with these. */
function viewOf(first?: Partial<MonitorView>, second?: Partial<MonitorView>) {
  return cascade(new Scripted("a", {}, first), new Scripted("b", {}, second)).view;
}

describe("the view", () => {
  test("is left open where neither model names one", () => {
    expect(viewOf()).toBeUndefined();
  });

  test("is the union of both: all channels, tools and the larger budgets", () => {
    expect(
      viewOf(
        {
          channels: ["toolResults", "user"],
          maxCharsPerToolResult: 4000,
          mostRecent: 5,
          delegationTools: ["agent"],
        },
        { channels: ["agentText"], maxChars: 50_000, mostRecent: 10, delegationTools: ["task", "agent"] },
      ),
    ).toEqual({
      channels: ["user", "agentText", "toolResults"],
      mostRecent: 10,
      maxChars: 50_000,
      maxCharsPerEntry: 2000,
      maxCharsPerToolResult: 4000,
      delegationTools: ["agent", "task"],
    });
  });

  test("a model that names none reads the default next to the other's", () => {
    expect(viewOf({ channels: ["toolResults"], mostRecent: 1 })).toMatchObject({
      channels: ["user", "toolCalls", "subagentReports", "toolResults"],
      mostRecent: 30,
    });
  });

  test("is found in a model with retries", () => {
    const model = new Scripted("a", {}, { channels: ["reasoning"] }).withRetry();
    const union = cascade(model, new Scripted("b", {}, { channels: ["user"] }));
    expect(union.view?.channels).toEqual(["user", "reasoning"]);
    expect(union.model).toBe("a > b");
  });
});

describe("wrong options are refused at construction", () => {
  const model = new Scripted("a", {});
  test.each<[string, unknown]>([
    ['Option "first" is missing; expected a decision model', { second: model }],
    ['Option "second" is an object; expected a decision model', { first: model, second: {} }],
    [
      'Option "escalate" is a number; expected two numbers from 0 to 1',
      { first: model, second: model, escalate: 0.5 },
    ],
    [
      'Option "escalate" is an array; expected two numbers from 0 to 1',
      { first: model, second: model, escalate: [0.5] },
    ],
    [
      'Option "escalate[1]" is a number that does not fit; expected a number from 0 to 1',
      { first: model, second: model, escalate: [0, 1.5] },
    ],
    [
      'Option "escalate[0]" is NaN; expected a number from 0 to 1',
      { first: model, second: model, escalate: [Number.NaN, 1] },
    ],
    [
      'Option "escalate" is an array; expected two numbers from 0 to 1, the lower first',
      { first: model, second: model, escalate: [0.5, 0.4] },
    ],
    ['Option "third" is not an option; check its spelling', { first: model, second: model, third: model }],
    ['Option "options" is null; expected an object of options', null],
  ])("%s", (message, options) => {
    expect(() => new CascadeDecisionModel(options as never)).toThrow(
      expect.objectContaining({ name: "ConfigurationError", message }),
    );
  });
});

import {
  type Answer,
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
  parseClassifierResponse,
} from "@langchain/core/decisions";
import type { UsageMetadata } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { ClassificationError, type UnavailableReason, UNAVAILABLE_REASONS } from "../errors.js";
import type { RiskKind } from "../guard/question.js";
import type { JsonObject } from "../json.js";
import type { Entry } from "../transcript/entries.js";
import { z } from "zod";
import { check } from "../option-problem.js";

/** What a script answers for one call: a risk (0..1), a risk with words, or `undefined` for no answer. */
export type ScriptedRisk =
  | number
  | {
      /** 0..1. */
      risk: number;
      /** Why, in one sentence: the feedback is made of it. */
      explanation?: string;
      /** The kind of risk, for `explain`. */
      kind?: RiskKind;
    }
  | undefined;

/** Answers for each call of a request. */
export type ScriptedAnswer = (
  call: JudgedCall,
  request: RecordedRequest,
) => ScriptedRisk | Promise<ScriptedRisk>;

type Step = { respond: ScriptedAnswer } | { fail: unknown };

/** Options of {@link fakeDecisionModel}. */
export interface FakeDecisionModelOptions {
  /**
   * Name that records give it.
   *
   * @default "fake"
   * @example model: "judge-1"
   */
  model?: string;
  /**
   * Milliseconds before each answer, from 0.
   *
   * @default 0
   * @example delayMs: 50
   */
  delayMs?: number;
  /**
   * Tokens that each answer reports.
   *
   * @default none
   * @example usage: { input_tokens: 900, output_tokens: 40, total_tokens: 940 }
   */
  usage?: UsageMetadata;
}

/**
 * A decision model that answers by script, for unit tests of agents and policies. Made by
 * {@link fakeDecisionModel}.
 *
 * @example
 * ```ts
 * const classifier = fakeDecisionModel().always(0.9);
 * await agent.invoke(input);
 * expect(classifier.judged.map(({ name }) => name)).toEqual(["delete_file"]);
 * ```
 */
export class FakeDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "testing"];
  /** All requests so far, as JSON copies. */
  readonly requests: RecordedRequest[] = [];
  readonly #script: Step[] = [];
  readonly #byTool = new Map<string, ScriptedAnswer>();
  #always: Step | undefined;
  #taken = 0;
  readonly #options: FakeDecisionModelOptions;

  static override lc_name(): string {
    return "FakeDecisionModel";
  }

  get _provider(): string {
    return "fake";
  }

  constructor(options: FakeDecisionModelOptions = {}) {
    checkModelOptions(options);
    super({ model: options.model ?? "fake" });
    this.#options = { ...options };
  }

  /** How many requests there were. */
  get callCount(): number {
    return this.requests.length;
  }

  /** All judged calls of all requests, in order. */
  get judged(): JudgedCall[] {
    return this.requests.flatMap(({ calls }) => calls);
  }

  /** The next request is answered with this risk (0..1) for each of its calls. */
  respond(risk: number): this {
    checkRisk(risk, "respond");
    return this.respondWith(() => risk);
  }

  /** The next request is answered by a function of each call: a risk, a risk with words, or nothing for no answer. */
  respondWith(respond: ScriptedAnswer): this {
    checkRespond(respond, "respondWith");
    this.#script.push({ respond });
    return this;
  }

  /** The next request fails with this reason, or with this error. */
  fail(reason: UnavailableReason | Error): this {
    this.#script.push({ fail: failureOf(reason, "fail") });
    return this;
  }

  /** Calls of this tool get this risk in every request, whatever the script says. */
  forTool(name: string, risk: number | ScriptedAnswer): this {
    checkToolName(name, "forTool.name");
    checkRiskOrRespond(risk, "forTool.risk");
    this.#byTool.set(name, typeof risk === "number" ? () => risk : risk);
    return this;
  }

  /** What requests get once the script is used up. Without it they fail, so that a test sees an unplanned request. */
  always(risk: number | ScriptedAnswer): this {
    checkRiskOrRespond(risk, "always");
    this.#always = { respond: typeof risk === "number" ? () => risk : risk };
    return this;
  }

  /** Every request fails once the script is used up. */
  alwaysFail(reason: UnavailableReason | Error): this {
    this.#always = { fail: failureOf(reason, "alwaysFail") };
    return this;
  }

  async _classify(
    state: State,
    questions: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    const request = readRequest(state, questions, config?.signal);
    this.requests.push(request);
    const step = this.#script[this.#taken] ?? this.#always;
    this.#taken += 1;
    if (this.#options.delayMs) await delay(this.#options.delayMs, config?.signal);
    if (step && "fail" in step) throw step.fail;
    const answers: Record<string, Answer> = {};
    const missing: string[] = [];
    const explanations = new Map<string, string>();
    for (const [id, question] of Object.entries(questions)) {
      const call = request.calls.find(({ key }) => key === id.replace(/^kind_/, "call_"));
      const respond = (call && this.#byTool.get(call.name)) ?? step?.respond;
      if (!respond) throw new Error("fakeDecisionModel: no answer is scripted for this request");
      const given = await respond(call ?? { key: id, name: "", args: {} }, request);
      const answer = typeof given === "number" ? { risk: given } : given;
      if (!answer) missing.push(id);
      else if (question.type === "choice") answers[id] = choose(Object.keys(question.criteria), answer.kind);
      else {
        answers[id] = { type: "noul", noul: answer.risk };
        if ("explanation" in answer && answer.explanation) explanations.set(id, answer.explanation);
      }
    }
    const response = parseClassifierResponse({
      model: this.model,
      answers,
      ...(this.#options.usage ? { usage_metadata: this.#options.usage } : {}),
    });
    for (const [id, explanation] of explanations)
      Object.assign(response.answers[id] as object, { explanation });
    if (missing.length > 0) throw new ClassificationError("error", { answers: response.answers });
    return response;
  }
}

function choose(labels: readonly string[], wanted: string | undefined): Answer {
  const choice = wanted ?? labels.at(-1) ?? "";
  const probabilities = Object.fromEntries(labels.map((label) => [label, label === choice ? 1 : 0]));
  return { type: "choice", choice, probabilities, confidence: 1 };
}

/**
 * Makes a scripted decision model, in the manner of `fakeModel` of `@langchain/core/testing`: each
 * `respond…` and `fail` scripts one request, in order. A request that nothing is scripted for fails with
 * "no answer is scripted": {@link judgeCall} gives that as its `error`, in an agent it is the `cause` of the
 * `ClassificationError`.
 *
 * @throws {ConfigurationError} for a wrong option; each method throws it for a wrong risk or reason.
 * @example
 * ```ts
 * const classifier = fakeDecisionModel().respond(0.1).respond(0.9).fail("timeout");
 * const byTool = fakeDecisionModel().forTool("delete_file", 0.9).always(0);
 * ```
 */
export function fakeDecisionModel(options: FakeDecisionModelOptions = {}): FakeDecisionModel {
  return new FakeDecisionModel(options);
}

/** A proposed call as the classifier was shown it. */
export interface JudgedCall {
  /** Its key in the request: `call_1`, `call_2`, … */
  key: string;
  /** The tool's name. */
  name: string;
  /** The arguments, as JSON. */
  args: JsonObject;
  /** The tool's description, where there is one. */
  description?: string;
}

/** One recorded request. */
export interface RecordedRequest {
  /** The calls it was about, in order. */
  calls: JudgedCall[];
  /** What of the conversation it showed. */
  transcript: Entry[];
  /** What the option `environment` gave, if it is configured. */
  environment?: unknown;
  /** The whole request, as JSON. */
  state: JsonObject;
  /** The questions by id: `call_1`, and with `explain` also `kind_1`. */
  questions: Record<string, Question>;
  /** Aborts when the time is over or the run is aborted. */
  signal: AbortSignal | undefined;
}

/** Reads a request of the guard. */
function readRequest(
  state: State,
  questions: Record<string, Question>,
  signal?: AbortSignal,
): RecordedRequest {
  // As JSON, so that nobody can change afterwards what was recorded.
  const copy = JSON.parse(JSON.stringify({ state, questions })) as {
    state: JsonObject;
    questions: Record<string, Question>;
  };
  const toolCalls = (copy.state.tool_calls ?? {}) as Record<string, Omit<JudgedCall, "key">>;
  return {
    calls: Object.entries(toolCalls).map(([key, call]) => ({ key, ...call })),
    transcript: (copy.state.transcript ?? []) as unknown as Entry[],
    ...("environment" in copy.state ? { environment: copy.state.environment } : {}),
    state: copy.state,
    questions: copy.questions,
    signal,
  };
}

// A wrong script is an error: else a test would pass, or fail, for another reason than it says.

const text = "a text that is not empty";
const delayText = "milliseconds, from 0 to 2147483647";
const modelOptions = z.strictObject(
  {
    model: z.string(text).min(1, text).optional(),
    delayMs: z.number(delayText).min(0, delayText).max(2_147_483_647, delayText).optional(),
    usage: z.looseObject({}, "an object with counts of tokens").optional(),
  },
  "an object of options",
);

const isRisk = (value: unknown): boolean => typeof value === "number" && value >= 0 && value <= 1;
const risk = z.custom<number>(isRisk, "a number from 0 to 1");
const respond = z.custom<never>((value) => typeof value === "function", "a function");
const riskOrRespond = z.custom<never>(
  (value) => isRisk(value) || typeof value === "function",
  "a number from 0 to 1, or a function that gives it",
);
const failure = z.custom<UnavailableReason | Error>(
  // Any object: how a guard copes with an odd error may be what is tested.
  (value) =>
    (typeof value === "object" && value !== null) ||
    (UNAVAILABLE_REASONS as readonly unknown[]).includes(value),
  `an error, or one of ${UNAVAILABLE_REASONS.map((reason) => `"${reason}"`).join(", ")}`,
);

/** Checks the options of a fake. */
const checkModelOptions = (options: unknown): unknown => check(modelOptions, options, "");
/** Checks a scripted risk. */
const checkRisk = (given: unknown, option: string): unknown => check(risk, given, option);
/** Checks a function that gives answers. What it gives is not checked: that may be what is tested. */
const checkRespond = (given: unknown, option: string): unknown => check(respond, given, option);
/** Checks a scripted risk, or a function that gives answers. */
const checkRiskOrRespond = (given: unknown, option: string): unknown => check(riskOrRespond, given, option);
/** Checks a tool's name. */
const checkToolName = (given: unknown, option: string): unknown =>
  check(z.string(text).min(1, text), given, option);

/** A scripted failure as the error that is thrown. */
function failureOf(given: UnavailableReason | Error, option: string): Error {
  check(failure, given, option);
  return typeof given === "string" ? new ClassificationError(given) : given;
}

/** Waits, but no longer than the caller does. */
async function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }
    function aborted(): void {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    }
    signal?.addEventListener("abort", aborted, { once: true });
  });
}

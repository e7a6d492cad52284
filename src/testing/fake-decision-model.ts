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
import { ClassificationError, type UnavailableReason } from "../errors.js";
import type { RiskKind } from "../guard/question.js";
import { delay } from "./delay.js";
import { type JudgedCall, type RecordedRequest, readRequest } from "./recorded-request.js";
import {
  checkModelOptions,
  checkRespond,
  checkRisk,
  checkRiskOrRespond,
  checkToolName,
  failureOf,
} from "./script-checks.js";

type Risk = number | { risk: number; explanation?: string; kind?: RiskKind } | undefined;
type Respond = (call: JudgedCall, request: RecordedRequest) => Risk | Promise<Risk>;
type Step = { respond: Respond } | { fail: unknown };

/** Options of {@link fakeDecisionModel}. */
export interface FakeDecisionModelOptions {
  /** Name that records give it. Default `"fake"`. */
  model?: string;
  /** Milliseconds before each answer. Default 0. */
  delayMs?: number;
  /** Tokens that each answer reports. */
  usage?: UsageMetadata;
}

/**
 * A decision model that answers by script, for unit tests of agents and policies. Made by
 * {@link fakeDecisionModel}.
 */
export class FakeDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "testing"];
  /** All requests so far, as JSON copies. */
  readonly requests: RecordedRequest[] = [];
  readonly #script: Step[] = [];
  readonly #byTool = new Map<string, Respond>();
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
  respondWith(respond: Respond): this {
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
  forTool(name: string, risk: number | Respond): this {
    checkToolName(name, "forTool.name");
    checkRiskOrRespond(risk, "forTool.risk");
    this.#byTool.set(name, typeof risk === "number" ? () => risk : risk);
    return this;
  }

  /** What requests get once the script is used up. Without it they fail, so that a test sees an unplanned request. */
  always(risk: number | Respond): this {
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
 * @throws ConfigurationError for a wrong option; each method throws it for a wrong risk or reason.
 * @example
 * ```ts
 * const classifier = fakeDecisionModel().respond(0.1).respond(0.9).fail("timeout");
 * const byTool = fakeDecisionModel().forTool("delete_file", 0.9).always(0);
 * ```
 */
export function fakeDecisionModel(options: FakeDecisionModelOptions = {}): FakeDecisionModel {
  return new FakeDecisionModel(options);
}

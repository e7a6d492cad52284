import {
  type Answer,
  BaseDecisionModel,
  type ClassifierRequest,
  type ClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import { mergeUsageMetadata, type UsageMetadata } from "@langchain/core/messages";
import type { Runnable, RunnableConfig } from "@langchain/core/runnables";
import { z } from "zod";
import { ClassificationError } from "../errors.js";
import { classifierName, classifierView } from "../guard/classify.js";
import { check } from "../option-problem.js";
import { CHANNELS } from "../transcript/entries.js";
import { DEFAULT_VIEW, type MonitorView } from "../transcript/view.js";
import { isProbability, type NoAnswer, type Outcome, settle, type SettledAnswer } from "./answers.js";
import { classificationFailure } from "./failure.js";

/** A decision model, or a Runnable with its request and response, as `model.withRetry()`. */
export type CascadeStage = BaseDecisionModel | Runnable<ClassifierRequest, ClassifierResponse>;

/** Options of {@link CascadeDecisionModel}. */
export interface CascadeDecisionModelOptions {
  /**
   * Asked first, about every question: the cheap and fast one. Required.
   *
   * @example first: new SystemOneDecisionModel()
   */
  first: CascadeStage;
  /**
   * Asked about what the first leaves open. Its answer is the one that counts. Required.
   *
   * @example second: new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" })
   */
  second: CascadeStage;
  /**
   * The probabilities, both ends included, with which a yes/no question goes on to the second model.
   * Two numbers from 0 to 1, the lower first. Default `[0.1, 1]`: the first may clear, never condemn.
   *
   * @example escalate: [0.05, 0.95]
   */
  escalate?: readonly [number, number];
}

const decisionModel = z.custom<CascadeStage>(
  (value) => typeof (value as { invoke?: unknown } | undefined)?.invoke === "function",
  "a decision model",
);
const probability = z
  .number("a number from 0 to 1")
  .min(0, "a number from 0 to 1")
  .max(1, "a number from 0 to 1");
const schema = z.strictObject(
  {
    first: decisionModel,
    second: decisionModel,
    escalate: z
      .tuple([probability, probability], "two numbers from 0 to 1")
      .refine(([low, high]) => low <= high, "two numbers from 0 to 1, the lower first")
      .optional(),
  },
  "an object of options",
);

/**
 * Two decision models, one after the other: a cheap one clears what is plainly harmless, a better one decides
 * the rest.
 *
 * The second is asked about the yes/no questions whose probability lies in `escalate`, together with
 * all choices and scores then, and about whatever the first left unanswered; its answer counts. A
 * failure of the first therefore costs a request and no safety; a failure of the second is a failure
 * of what it was asked. Usage adds up. Each answer names its model in `decidedBy`, and the response's
 * `model` names both if both decided. The cascade's `view` is the union of what both need.
 *
 * **Each model must know what is dangerous:** with the default `escalate` nobody else is asked about what the
 * first clears, and where the first fails the second decides alone. `ProvenanceDecisionModel` does not know: it
 * compares where values come from, so `rm -rf` that nobody asked for gets a low risk from it as long as no tool
 * output is involved. Never put it first with the default `escalate`; a range that sends everything on
 * (`[0, 1]`) is safe, but leaves the verdict to the second alone. For a second, independent check give it an
 * `autoModeMiddleware` of its own, with a `label`, next to that of a better judge: a call runs if both allow it.
 *
 * The guard's `explain` asks for kinds of risk, which are choices. A call that the first clears is settled
 * without the second only if the first names its kind too, as `ProvenanceDecisionModel` does. One that cannot
 * fails, and every call goes to the second; if its `ClassificationError` holds the risks, these count and the
 * second is asked for the kinds alone.
 *
 * @throws {ConfigurationError} at construction for a wrong option.
 * @throws {ClassificationError} from `invoke` if the second fails, with the answers that count all the same.
 *
 * @example
 * ```ts
 * const classifier = new CascadeDecisionModel({
 *   first: new SystemOneDecisionModel(),
 *   second: new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" }),
 * });
 * ```
 * @example One model in two stages: numbers alone first, and reasons only where they are needed. Both send
 * the same text up to the form of the reply, so that the second stage costs little where prefixes are cached.
 * ```ts
 * const model = "anthropic:claude-haiku-4-5";
 * const classifier = new CascadeDecisionModel({
 *   first: new ChatDecisionModel({ model, explanation: false }),
 *   second: new ChatDecisionModel({ model }),
 * });
 * ```
 */
export class CascadeDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "classifiers"];
  /** What both models need to read of the conversation. Undefined if neither says. */
  readonly view: Partial<MonitorView> | undefined;
  readonly #first: CascadeStage;
  readonly #second: CascadeStage;
  readonly #escalate: readonly [number, number];

  constructor(options: CascadeDecisionModelOptions) {
    const { first, second, escalate = [0.1, 1] } = check(schema, options, "");
    super({ model: `${classifierName(first)} > ${classifierName(second)}` });
    this.view = unionOfViews(classifierView(first), classifierView(second));
    this.#first = first;
    this.#second = second;
    this.#escalate = escalate;
  }

  get _provider(): string {
    return "langchain-auto-mode";
  }

  async _classify(
    state: State,
    questions: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    const first = await askStage(this.#first, { state, questions }, config);
    const open = this.#openQuestions(questions, first);
    const second =
      Object.keys(open).length === 0
        ? undefined
        : await askStage(this.#second, { state, questions: open }, config);
    const outcomes = new Map<string, Outcome>();
    for (const id of Object.keys(questions)) {
      const stage = second !== undefined && Object.hasOwn(open, id) ? second : first;
      const answer = stage.answers.get(id);
      if (answer !== undefined) outcomes.set(id, { answer: { ...answer, decidedBy: stage.model } });
      else if (second?.failure !== undefined) outcomes.set(id, failed(second.failure));
    }
    const stages = second === undefined ? [first] : [first, second];
    return settle(questions, {
      model: deciders(stages, outcomes),
      outcomes,
      usage: sumOfUsage(stages),
      requestId: stages.at(-1)!.requestId,
      failure: second?.failure,
    });
  }

  /** The questions that the first model does not settle. */
  #openQuestions(questions: Record<string, Question>, { answers }: Stage): Record<string, Question> {
    const [low, high] = this.#escalate;
    const isOpen = (id: string) => {
      const answer = answers.get(id);
      if (answer === undefined) return true;
      return answer.type === "noul" && answer.noul >= low && answer.noul <= high;
    };
    const doubt = Object.entries(questions).some(([id, { type }]) => type === "noul" && isOpen(id));
    return Object.fromEntries(
      Object.entries(questions).filter(([id, { type }]) => isOpen(id) || (doubt && type !== "noul")),
    );
  }
}

function failed({ reason }: ClassificationError): NoAnswer {
  return { reason, problem: "the second model failed" };
}

/** The models whose answers count. */
function deciders(stages: readonly Stage[], outcomes: ReadonlyMap<string, Outcome>): string {
  const named = new Set(
    [...outcomes.values()].map((outcome) => ("answer" in outcome ? outcome.answer.decidedBy : undefined)),
  );
  return stages
    .map(({ model }) => model)
    .filter((model, index, all) => named.has(model) && all.indexOf(model) === index)
    .join(" > ");
}

function sumOfUsage(stages: readonly Stage[]): UsageMetadata | undefined {
  const reported = stages.flatMap(({ usage }) => usage ?? []);
  return reported.length === 0 ? undefined : reported.reduce((sum, usage) => mergeUsageMetadata(sum, usage));
}

/** What a model made of the questions that it was asked. */
export interface Stage {
  /** Only usable ones. */
  answers: ReadonlyMap<string, SettledAnswer>;
  model: string;
  usage?: UsageMetadata | undefined;
  requestId?: string | undefined;
  /** Why questions were left open. */
  failure?: ClassificationError | undefined;
}

/**
 * Asks one model. Its failure is part of what it made of the questions; the caller's abort and a wrong
 * configuration are not, and are thrown.
 */
export async function askStage(
  model: CascadeStage,
  request: ClassifierRequest,
  config: Partial<RunnableConfig> | undefined,
): Promise<Stage> {
  const name = classifierName(model);
  try {
    const response = await model.invoke(request, config);
    return {
      answers: usable(response.answers, request.questions),
      model: response.model || name,
      usage: response.usage_metadata,
      requestId: response.requestId,
    };
  } catch (error) {
    const failure = classificationFailure(error, { signal: config?.signal, secrets: [] });
    if (!(failure instanceof ClassificationError)) throw failure;
    return { answers: usable(failure.answers, request.questions), model: name, failure };
  }
}

/** Only a decision model checks its own answers: those of a Runnable, or of an error, may be anything. */
function usable(
  answers: Readonly<Record<string, unknown>>,
  questions: Readonly<Record<string, Question>>,
): Map<string, SettledAnswer> {
  const found = new Map<string, SettledAnswer>();
  for (const [id, question] of Object.entries(questions)) {
    const answer = Object.hasOwn(answers, id) ? (answers[id] as Answer | null | undefined) : undefined;
    if (fits(answer, question)) found.set(id, answer);
  }
  return found;
}

function fits(answer: Answer | null | undefined, question: Question): answer is Answer {
  if (answer?.type !== question.type) return false;
  switch (answer.type) {
    case "noul":
      return isProbability(answer.noul);
    case "choice":
      return question.type === "choice" && Object.hasOwn(question.criteria, answer.choice);
    default:
      return true;
  }
}

type PartialView = Partial<MonitorView> | undefined;

/**
 * The smallest view that shows each of two models what it needs. A model that names none reads the
 * default. Undefined if neither names one.
 */
function unionOfViews(first: PartialView, second: PartialView): Partial<MonitorView> | undefined {
  if (first === undefined && second === undefined) return undefined;
  const [one, other] = [first, second].map((view) => ({ ...DEFAULT_VIEW, ...view })) as [
    MonitorView,
    MonitorView,
  ];
  return {
    channels: CHANNELS.filter(
      (channel) => one.channels.includes(channel) || other.channels.includes(channel),
    ),
    mostRecent: Math.max(one.mostRecent, other.mostRecent),
    maxChars: Math.max(one.maxChars, other.maxChars),
    maxCharsPerEntry: Math.max(one.maxCharsPerEntry, other.maxCharsPerEntry),
    maxCharsPerToolResult: Math.max(one.maxCharsPerToolResult, other.maxCharsPerToolResult),
    delegationTools: [...new Set([...one.delegationTools, ...other.delegationTools])],
  };
}

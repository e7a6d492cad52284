import {
  type Answer,
  type Choice,
  type ChoiceAnswer,
  type ClassifierResponse,
  type NoulAnswer,
  parseClassifierResponse,
  type Question,
  type Score,
  type ScoreAnswer,
} from "@langchain/core/decisions";
import type { UsageMetadata } from "@langchain/core/messages";
import { ClassificationError, type UnavailableReason } from "../errors.js";

/** An answer, with what our models add to core's. */
export type SettledAnswer = Answer & {
  /** A short sentence on why: the feedback to the agent is made of it. */
  explanation?: string;
  /** The model that gave the answer, where several take part. */
  decidedBy?: string;
};

/** Why a question has no answer. */
export interface NoAnswer {
  reason: UnavailableReason;
  /** For programmers. It repeats no content. */
  problem: string;
  /** The problem in one word, for records and log lines: `not_json`. */
  code?: string;
}

/** A question's answer, or why there is none. */
export type Outcome = { answer: SettledAnswer } | NoAnswer;

/** The questions that text-based models answer: all but boxes. */
export type TextQuestion = Exclude<Question, { type: "box" }>;

/** Questions by id. */
export type TextQuestions = Readonly<Record<string, TextQuestion>>;

/** A model's whole reply. */
export interface Reply {
  model: string;
  /** By question. A question without an outcome counts as left out. */
  outcomes: ReadonlyMap<string, Outcome>;
  usage?: Partial<UsageMetadata> | undefined;
  requestId?: string | undefined;
  /** What made questions fail, if one thing did: the error's cause, and its status. */
  failure?: ClassificationError | undefined;
}

/**
 * Makes the response of a reply that answers every question.
 *
 * @throws {ClassificationError} with the reason of the first question without an answer, and the
 * answers of the others.
 */
export function settle(questions: Readonly<Record<string, Question>>, reply: Reply): ClassifierResponse {
  const answers: [string, SettledAnswer][] = [];
  const failed: (NoAnswer & { id: string })[] = [];
  for (const id of Object.keys(questions)) {
    const outcome = reply.outcomes.get(id) ?? failure("there is no answer", "unanswered");
    if ("answer" in outcome) answers.push([id, outcome.answer]);
    else failed.push({ id, ...outcome });
  }
  const given = Object.fromEntries(answers);
  const [problem] = failed;
  if (problem !== undefined) {
    throw new ClassificationError(problem.reason, {
      answers: given,
      cause: reply.failure ?? problemsOf(failed),
      ...(reply.failure?.status === undefined ? {} : { status: reply.failure.status }),
    });
  }
  const response = parseClassifierResponse({
    model: reply.model,
    answers: given,
    usage_metadata: reply.usage ?? null,
    requestId: reply.requestId ?? null,
  });
  // Core keeps only the fields that it knows.
  for (const [id, answer] of answers) {
    const added = Object.entries(answer).filter(([, value]) => value !== undefined);
    Object.assign(response.answers[id]!, Object.fromEntries(added), { ...response.answers[id] });
  }
  return response;
}

/** The cause of a failure that no client threw. Its code has the place that clients' errors use. */
function problemsOf(failed: readonly (NoAnswer & { id: string })[]): Error {
  const error = new Error(failed.map(({ id, problem }) => `${id}: ${problem}`).join("; "));
  const code = failed.find((outcome) => outcome.code !== undefined)?.code;
  return code === undefined ? error : Object.assign(error, { code });
}

/** Every question fails for one reason. */
export function allFail(
  questions: Readonly<Record<string, Question>>,
  reason: UnavailableReason,
  problem: string,
  code?: string,
): Map<string, Outcome> {
  const outcome = { reason, problem, ...(code === undefined ? {} : { code }) };
  return new Map(Object.keys(questions).map((id) => [id, outcome]));
}

/**
 * Refuses questions about a place in an image.
 *
 * @throws {Error} that names the model, the question and the types that the model answers.
 */
export function requireTextQuestions(
  model: string,
  questions: Readonly<Record<string, Question>>,
): TextQuestions {
  return Object.fromEntries(
    Object.entries(questions).map(([id, question]) => {
      if (question.type !== "box") return [id, question];
      throw new Error(`${model} cannot answer the box question "${id}": it answers noul, choice and score.`);
    }),
  );
}

/** What the probabilities of a choice or a score are keyed by: its labels, or its levels from "0". */
export function answerKeys(question: Choice | Score): string[] {
  return question.type === "choice"
    ? Object.keys(question.criteria)
    : question.criteria.map((_, level) => String(level));
}

/** A question that got something that is no answer to it. */
export function failure(problem: string, code?: string): NoAnswer {
  return { reason: "error", problem, ...(code === undefined ? {} : { code }) };
}

const wrongValue = (problem: string): NoAnswer => failure(problem, "wrong_value");

/** Whether a value is a number from 0 to 1. */
export function isProbability(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1;
}

/** The answer to a yes/no question. */
export function noulOutcome(probability: unknown): { answer: NoulAnswer } | NoAnswer {
  if (!isProbability(probability)) return wrongValue("the probability is no number from 0 to 1");
  return { answer: { type: "noul", noul: probability } };
}

/** What a service says of a choice or a score: a value, and a probability for each possible one. */
export interface Distribution {
  picked: unknown;
  /** Keyed by label or level. A pair for each, in any order. */
  probabilities: readonly (readonly [unknown, unknown])[];
  confidence?: unknown;
}

/** The answer to a choice. Every label must have its probability. */
export function choiceOutcome(
  question: Choice,
  { picked, probabilities, confidence }: Distribution,
): { answer: ChoiceAnswer } | NoAnswer {
  const labels = answerKeys(question);
  const shares = readShares(labels, probabilities);
  if (shares === undefined)
    return wrongValue("the probabilities are not one number from 0 to 1 for each label");
  if (typeof picked !== "string" || !labels.includes(picked))
    return wrongValue("the choice is none of the labels");
  const certainty = confidence ?? shares.get(picked);
  if (!isProbability(certainty)) return wrongValue("the confidence is no number from 0 to 1");
  return {
    answer: {
      type: "choice",
      choice: picked,
      probabilities: Object.fromEntries(shares),
      confidence: certainty,
    },
  };
}

/** The answer to a score. Every level must have its probability. */
export function scoreOutcome(
  question: Score,
  { picked, probabilities, confidence }: Distribution,
): { answer: ScoreAnswer } | NoAnswer {
  const levels = answerKeys(question);
  const shares = readShares(levels, probabilities);
  if (shares === undefined)
    return wrongValue("the probabilities are not one number from 0 to 1 for each level");
  if (typeof picked !== "number" || !(picked >= 0 && picked <= levels.length - 1)) {
    return wrongValue("the score is no number within the levels");
  }
  const certainty = confidence ?? Math.max(...shares.values());
  if (!isProbability(certainty)) return wrongValue("the confidence is no number from 0 to 1");
  return {
    answer: {
      type: "score",
      score: picked,
      legend: Object.fromEntries(question.criteria.map((level, index) => [String(index), level])),
      probabilities: Object.fromEntries(shares),
      confidence: certainty,
    },
  };
}

/** One probability for each key, in the order of the keys; undefined if one is missing, twice there or none. */
function readShares(
  keys: readonly string[],
  pairs: readonly (readonly [unknown, unknown])[],
): Map<string, number> | undefined {
  const given = new Map(pairs);
  if (given.size !== pairs.length || given.size !== keys.length) return undefined;
  const shares = new Map<string, number>();
  for (const key of keys) {
    const share = given.get(key);
    if (!isProbability(share)) return undefined;
    shares.set(key, share);
  }
  return shares;
}

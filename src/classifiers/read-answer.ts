import type { Choice, Question, Score } from "@langchain/core/decisions";
import type { Outcome } from "./settle-answers.js";

/** The questions that text-based models answer: all but boxes. */
export type TextQuestion = Exclude<Question, { type: "box" }>;

/** Questions by id. */
export type TextQuestions = Readonly<Record<string, TextQuestion>>;

/**
 * Refuses questions about a place in an image.
 *
 * @throws {Error} that names the model, the question and the types that the model answers.
 */
export function requireTextQuestions(
  model: string,
  questions: Readonly<Record<string, Question>>,
): TextQuestions {
  for (const [id, { type }] of Object.entries(questions)) {
    if (type !== "box") continue;
    throw new Error(`${model} cannot answer the box question "${id}": it answers noul, choice and score.`);
  }
  return questions as TextQuestions;
}

/** What the probabilities of a choice or a score are keyed by: its labels, or its levels from "0". */
export function answerKeys(question: Choice | Score): string[] {
  return question.type === "choice"
    ? Object.keys(question.criteria)
    : question.criteria.map((_, level) => String(level));
}

const failed = (problem: string): Outcome => ({ reason: "error", problem });

/** Whether a value is a number from 0 to 1. */
export function isProbability(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1;
}

/** The answer to a yes/no question. */
export function noulOutcome(probability: unknown): Outcome {
  if (!isProbability(probability)) return failed("the probability is no number from 0 to 1");
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
): Outcome {
  const labels = answerKeys(question);
  const shares = readShares(labels, probabilities);
  if (shares === undefined) return failed("the probabilities are not one number from 0 to 1 for each label");
  if (typeof picked !== "string" || !labels.includes(picked))
    return failed("the choice is none of the labels");
  const certainty = confidence ?? shares.get(picked);
  if (!isProbability(certainty)) return failed("the confidence is no number from 0 to 1");
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
export function scoreOutcome(question: Score, { picked, probabilities, confidence }: Distribution): Outcome {
  const levels = answerKeys(question);
  const shares = readShares(levels, probabilities);
  if (shares === undefined) return failed("the probabilities are not one number from 0 to 1 for each level");
  if (typeof picked !== "number" || !(picked >= 0 && picked <= levels.length - 1)) {
    return failed("the score is no number within the levels");
  }
  const certainty = confidence ?? Math.max(...shares.values());
  if (!isProbability(certainty)) return failed("the confidence is no number from 0 to 1");
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

import { z } from "zod";
import {
  choiceOutcome,
  noulOutcome,
  scoreOutcome,
  type TextQuestion,
  type TextQuestions,
} from "./read-answer.js";
import { allFail, type Outcome } from "./settle-answers.js";

const record = z.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);
const body = z.object({ answers: record });
const distribution = z.object({
  type: z.string(),
  noul: z.unknown().optional(),
  choice: z.unknown().optional(),
  score: z.unknown().optional(),
  confidence: z.unknown().optional(),
  probabilities: record.nullish(),
});

/** Reads the answers of a `systemone` response, each on its own. Fields that are not known are ignored. */
export function systemOneOutcomes(response: unknown, questions: TextQuestions): Map<string, Outcome> {
  const parsed = body.safeParse(response);
  if (!parsed.success) return allFail(questions, "error", "the response has no answers by name");
  const { answers } = parsed.data;
  return new Map(
    Object.entries(questions)
      .filter(([id]) => Object.hasOwn(answers, id))
      .map(([id, question]) => [id, outcome(answers[id], question)]),
  );
}

function outcome(answer: unknown, question: TextQuestion): Outcome {
  const parsed = distribution.safeParse(answer);
  if (!parsed.success) return { reason: "error", problem: "the answer has no type" };
  const { type, noul, choice, score } = parsed.data;
  if (type !== question.type) return { reason: "error", problem: "the answer is of another type" };
  const probabilities = Object.entries(parsed.data.probabilities ?? {});
  const confidence = parsed.data.confidence ?? undefined;
  if (question.type === "choice") {
    return choiceOutcome(question, { picked: choice, probabilities, confidence });
  }
  if (question.type === "score") return scoreOutcome(question, { picked: score, probabilities, confidence });
  return noulOutcome(noul);
}

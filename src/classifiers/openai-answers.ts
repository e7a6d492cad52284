import { z } from "zod";
import {
  choiceOutcome,
  noulOutcome,
  scoreOutcome,
  type TextQuestion,
  type TextQuestions,
} from "./read-answer.js";
import { allFail, type Outcome } from "./settle-answers.js";

const body = z.object({ answers: z.array(z.unknown()) });
const named = z.object({ type: z.string(), name: z.string() });
const share = z.object({ value: z.unknown().optional(), probability: z.unknown() });
const distribution = z.object({
  choice: z.unknown().optional(),
  score: z.unknown().optional(),
  confidence: z.unknown().optional(),
  probabilities: z.array(share),
});
const WIRE_TYPES: Readonly<Record<string, string>> = { noul: "predicate", choice: "choice", score: "score" };

/** Reads the answers of a `/v1/decisions` response, each on its own. Fields that are not known are ignored. */
export function decisionsOutcomes(response: unknown, questions: TextQuestions): Map<string, Outcome> {
  const parsed = body.safeParse(response);
  if (!parsed.success) return allFail(questions, "error", "the response has no list of answers");
  const outcomes = new Map<string, Outcome>();
  for (const answer of parsed.data.answers) {
    const head = named.safeParse(answer);
    if (!head.success || !Object.hasOwn(questions, head.data.name)) continue;
    const { name, type } = head.data;
    outcomes.set(
      name,
      outcomes.has(name)
        ? { reason: "error", problem: "it is answered twice" }
        : outcome(answer, type, questions[name]!),
    );
  }
  return outcomes;
}

function outcome(answer: unknown, type: string, question: TextQuestion): Outcome {
  if (type === "refusal") return { reason: "refused", problem: "the service refused to answer it" };
  if (type !== WIRE_TYPES[question.type])
    return { reason: "error", problem: "the answer is of another type" };
  if (question.type === "noul") return noulOutcome((answer as { probability?: unknown }).probability);
  const parsed = distribution.safeParse(answer);
  if (!parsed.success) return { reason: "error", problem: "the answer has no list of probabilities" };
  const { choice, score, probabilities } = parsed.data;
  const confidence = parsed.data.confidence ?? undefined;
  const pairs = probabilities.map(({ value, probability }) => [value, probability] as const);
  if (question.type === "choice") {
    return choiceOutcome(question, { picked: choice, probabilities: pairs, confidence });
  }
  const levels = pairs.map(([level, probability]) => [String(level), probability] as const);
  return scoreOutcome(question, {
    picked: score,
    probabilities: levels,
    confidence,
  });
}

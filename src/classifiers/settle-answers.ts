import {
  type Answer,
  type ClassifierResponse,
  parseClassifierResponse,
  type Question,
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

/** A question's answer, or why there is none. The problem is for programmers and repeats no content. */
export type Outcome = { answer: SettledAnswer } | { reason: UnavailableReason; problem: string };

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
  const failed: { id: string; reason: UnavailableReason; problem: string }[] = [];
  for (const id of Object.keys(questions)) {
    const outcome = reply.outcomes.get(id) ?? { reason: "error", problem: "there is no answer" };
    if ("answer" in outcome) answers.push([id, outcome.answer]);
    else failed.push({ id, ...outcome });
  }
  const given = Object.fromEntries(answers);
  if (failed.length > 0) {
    const problems = failed.map(({ id, problem }) => `${id}: ${problem}`).join("; ");
    throw new ClassificationError(failed[0]!.reason, {
      answers: given,
      cause: reply.failure ?? new Error(problems),
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
  for (const [id, { explanation, decidedBy }] of answers) {
    if (explanation !== undefined) Object.assign(response.answers[id]!, { explanation });
    if (decidedBy !== undefined) Object.assign(response.answers[id]!, { decidedBy });
  }
  return response;
}

/** Every question fails for one reason. */
export function allFail(
  questions: Readonly<Record<string, Question>>,
  reason: UnavailableReason,
  problem: string,
): Map<string, Outcome> {
  return new Map(Object.keys(questions).map((id) => [id, { reason, problem }]));
}

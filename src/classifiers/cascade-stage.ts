import type {
  Answer,
  BaseDecisionModel,
  ClassifierRequest,
  ClassifierResponse,
  Question,
} from "@langchain/core/decisions";
import type { UsageMetadata } from "@langchain/core/messages";
import type { Runnable, RunnableConfig } from "@langchain/core/runnables";
import { ClassificationError } from "../errors.js";
import { classifierName } from "../guard/classify.js";
import { classificationFailure } from "./failure-reason.js";
import { isProbability } from "./read-answer.js";
import type { SettledAnswer } from "./settle-answers.js";

/** A decision model, or a Runnable with its request and response, as `model.withRetry()`. */
export type CascadeStage = BaseDecisionModel | Runnable<ClassifierRequest, ClassifierResponse>;

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
  if (answer.type === "noul") return isProbability(answer.noul);
  return (
    question.type !== "choice" || Object.hasOwn(question.criteria, (answer as { choice: string }).choice)
  );
}

import type { State } from "@langchain/core/decisions";
import type { Questions } from "@typesafe-ai/sdk";
import { z } from "zod";
import {
  allFail,
  choiceOutcome,
  failure,
  noulOutcome,
  type Outcome,
  scoreOutcome,
  type TextQuestion,
  type TextQuestions,
} from "./answers.js";
import {
  bufferedFetch,
  HttpDecisionModel,
  type HttpModel,
  type HttpModelOptions,
  loadOptional,
  type Send,
  stateForService,
} from "./http.js";

/** Options of {@link SystemOneDecisionModel}. */
export interface SystemOneDecisionModelOptions extends HttpModelOptions {
  /**
   * The model. Default: `TYPESAFE_DEFAULT_MODEL` of the environment, else `"jev-latest"`.
   *
   * @example model: "jev-latest"
   */
  model?: string;
  /**
   * The key. Default: `TYPESAFE_API_KEY` of the environment.
   *
   * @example apiKey: process.env.JUDGE_KEY
   */
  apiKey?: string;
  /**
   * The service's root, without `/v1`. Default: `TYPESAFE_BASE_URL`, else `https://api.typesafe.ai`.
   *
   * @example baseURL: "http://localhost:8080"
   */
  baseURL?: string;
}

/**
 * A decision model on a `systemone` endpoint: TypeSafe's Jev, or a service that shares its shape.
 * Needs the package `@typesafe-ai/sdk`, which is loaded at the first request.
 *
 * State goes as text or JSON; messages become `{ role, content }`, and images or files in them are
 * an error. It answers questions of the types `noul`, `choice` and `score`. Nothing is retried
 * unless `maxRetries` asks for it.
 *
 * @throws {ConfigurationError} at construction for a wrong option or a missing key; at the first
 * request if `@typesafe-ai/sdk` is not installed.
 * @throws {ClassificationError} from `invoke` with the reason of the failure; `status` holds the
 * HTTP status, `answers` the answers that were given all the same.
 *
 * @example
 * ```ts
 * const classifier = new SystemOneDecisionModel({ baseURL: "http://localhost:8080" });
 * autoModeMiddleware({ tools: [deleteFile], classifier });
 * ```
 */
export class SystemOneDecisionModel extends HttpDecisionModel {
  constructor(options: SystemOneDecisionModelOptions = {}) {
    super(options, {
      provider: "typesafe",
      keyVariable: "TYPESAFE_API_KEY",
      modelVariable: "TYPESAFE_DEFAULT_MODEL",
      baseURLVariable: "TYPESAFE_BASE_URL",
      defaultModel: "jev-latest",
      defaultBaseURL: "https://api.typesafe.ai",
    });
  }

  protected override async prepare(http: HttpModel, state: State, questions: TextQuestions): Promise<Send> {
    const request = {
      model: http.model,
      // The SDK's types know fewer states and questions than the service reads.
      state: stateForService(state) as string,
      questions: questions as unknown as Questions,
    };
    const { TypeSafeClient } = await loadOptional("@typesafe-ai/sdk", () => import("@typesafe-ai/sdk"));
    const client = new TypeSafeClient({
      apiKey: http.apiKey,
      baseURL: http.baseURL,
      retry: { maxRetries: http.maxRetries },
      timeout: http.timeoutMs,
      defaultHeaders: { ...http.headers },
      dangerouslyAllowBrowser: true,
      fetch: bufferedFetch(http.fetch),
    });
    return async (signal) => {
      const { data, requestId } = await client.systemOne(request, { signal }).withResponse();
      return { body: data, requestId };
    };
  }

  protected override read(body: unknown, questions: TextQuestions): ReadonlyMap<string, Outcome> {
    return systemOneOutcomes(body, questions);
  }
}

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
function systemOneOutcomes(response: unknown, questions: TextQuestions): Map<string, Outcome> {
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
  if (!parsed.success) return failure("the answer has no type");
  const { type, noul, choice, score, confidence } = parsed.data;
  if (type !== question.type) return failure("the answer is of another type");
  const shares = {
    probabilities: Object.entries(parsed.data.probabilities ?? {}),
    confidence: confidence ?? undefined,
  };
  switch (question.type) {
    case "noul":
      return noulOutcome(noul);
    case "choice":
      return choiceOutcome(question, { picked: choice, ...shares });
    case "score":
      return scoreOutcome(question, { picked: score, ...shares });
  }
}

import {
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { Questions } from "@typesafe-ai/sdk";
import { withDeadline } from "../deadline.js";
import { ClassificationError } from "../errors.js";
import { check } from "../option-problem.js";
import { bufferedFetch } from "./buffered-fetch.js";
import { classificationFailure } from "./failure-reason.js";
import {
  type HttpModel,
  type HttpModelOptions,
  httpModelOptions,
  readUsage,
  resolveHttpModel,
} from "./http-options.js";
import { loadOptional } from "./optional-package.js";
import { requireTextQuestions } from "./read-answer.js";
import { settle } from "./settle-answers.js";
import { stateAsJson } from "./state-json.js";
import { systemOneOutcomes } from "./system-one-answers.js";

/** Options of {@link SystemOneDecisionModel}. */
export interface SystemOneDecisionModelOptions extends HttpModelOptions {
  /** The model. Default: `TYPESAFE_DEFAULT_MODEL` of the environment, else `"jev-latest"`. */
  model?: string;
  /** The key. Default: `TYPESAFE_API_KEY` of the environment. */
  apiKey?: string;
  /** The service's root, without `/v1`. Default: `TYPESAFE_BASE_URL`, else `https://api.typesafe.ai`. */
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
export class SystemOneDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "classifiers"];
  // Private to the engine and not only to the compiler, so that no print shows the key.
  readonly #http: HttpModel;

  constructor(options: SystemOneDecisionModelOptions = {}) {
    const http = resolveHttpModel(check<HttpModelOptions>(httpModelOptions, options, ""), {
      keyVariable: "TYPESAFE_API_KEY",
      modelVariable: "TYPESAFE_DEFAULT_MODEL",
      baseURLVariable: "TYPESAFE_BASE_URL",
      defaultModel: "jev-latest",
      defaultBaseURL: "https://api.typesafe.ai",
    });
    super({ model: http.model });
    this.#http = http;
  }

  get _provider(): string {
    return "typesafe";
  }

  async _classify(
    state: State,
    asked: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    const questions = requireTextQuestions("SystemOneDecisionModel", asked);
    const { apiKey, baseURL, maxRetries, timeoutMs, headers, fetch, secrets } = this.#http;
    const request = {
      model: this.model,
      state: stateAsJson(state) as string,
      questions: questions as unknown as Questions,
    };
    const { TypeSafeClient } = await loadOptional("@typesafe-ai/sdk", () => import("@typesafe-ai/sdk"));
    const signal = config?.signal;
    try {
      const client = new TypeSafeClient({
        apiKey,
        baseURL,
        retry: { maxRetries },
        timeout: timeoutMs,
        defaultHeaders: { ...headers },
        dangerouslyAllowBrowser: true,
        fetch: bufferedFetch(fetch),
      });
      const { data, requestId } = await withDeadline(
        { signal, timeoutMs, timeoutError: () => new ClassificationError("timeout") },
        async (ends) => client.systemOne(request, { signal: ends }).withResponse(),
      );
      // The SDK types the body and does not check it.
      const body = (data ?? {}) as { model?: unknown; usage?: unknown };
      return settle(questions, {
        model: typeof body.model === "string" ? body.model : this.model,
        outcomes: systemOneOutcomes(data, questions),
        usage: readUsage(body.usage),
        requestId,
      });
    } catch (error) {
      throw classificationFailure(error, { signal, secrets });
    }
  }
}

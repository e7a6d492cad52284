import {
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import type { RunnableConfig } from "@langchain/core/runnables";
import { withDeadline } from "../deadline.js";
import { ClassificationError } from "../errors.js";
import { check } from "../option-problem.js";
import { classificationFailure } from "./failure-reason.js";
import {
  type HttpModel,
  type HttpModelOptions,
  httpModelOptions,
  readUsage,
  resolveHttpModel,
} from "./http-options.js";
import { decisionsOutcomes } from "./openai-answers.js";
import { decisionsRequest } from "./openai-request.js";
import { loadOptional } from "./optional-package.js";
import { requireTextQuestions } from "./read-answer.js";
import { settle } from "./settle-answers.js";

/** Options of {@link OpenAIDecisionModel}. */
export interface OpenAIDecisionModelOptions extends HttpModelOptions {
  /** The model. Default `"gpt-6-luna"`. */
  model?: string;
  /** The key. Default: `OPENAI_API_KEY` of the environment. */
  apiKey?: string;
  /** The service's root, with its version. Default: `OPENAI_BASE_URL`, else `https://api.openai.com/v1`. */
  baseURL?: string;
}

/**
 * A decision model on `POST /v1/decisions`: OpenAI's, or a service that shares its shape. Needs the
 * package `openai`, which is loaded at the first request.
 *
 * State that is text, or human messages with text and images, is sent as it is; any other state goes
 * as JSON text. It answers questions of the types `noul`, `choice` and `score`. What yes and no mean
 * (`criteria`) is added to a `noul`'s instructions. A refusal concerns its own question only: the
 * others keep their answers. Nothing is retried unless `maxRetries` asks for it.
 *
 * @throws {ConfigurationError} at construction for a wrong option or a missing key; at the first
 * request if `openai` is not installed.
 * @throws {ClassificationError} from `invoke` with the reason of the failure; `status` holds the
 * HTTP status, `answers` the answers that were given all the same.
 *
 * @example
 * ```ts
 * const classifier = new OpenAIDecisionModel({ model: "gpt-6-luna" });
 * autoModeMiddleware({ tools: [deleteFile], classifier });
 * ```
 */
export class OpenAIDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "classifiers"];
  // Private to the engine and not only to the compiler, so that no print shows the key.
  readonly #http: HttpModel;

  constructor(options: OpenAIDecisionModelOptions = {}) {
    const http = resolveHttpModel(check<HttpModelOptions>(httpModelOptions, options, ""), {
      keyVariable: "OPENAI_API_KEY",
      baseURLVariable: "OPENAI_BASE_URL",
      defaultModel: "gpt-6-luna",
      defaultBaseURL: "https://api.openai.com/v1",
    });
    super({ model: http.model });
    this.#http = http;
  }

  get _provider(): string {
    return "openai";
  }

  async _classify(
    state: State,
    asked: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    const questions = requireTextQuestions("OpenAIDecisionModel", asked);
    const { apiKey, baseURL, maxRetries, timeoutMs, headers, fetch, secrets } = this.#http;
    const body = decisionsRequest(this.model, state, questions);
    const { OpenAI } = await loadOptional("openai", () => import("openai"));
    const signal = config?.signal;
    try {
      const client = new OpenAI({
        apiKey,
        baseURL,
        maxRetries,
        timeout: timeoutMs,
        defaultHeaders: headers,
        dangerouslyAllowBrowser: true,
        ...(fetch === undefined ? {} : { fetch }),
      });
      const response = await withDeadline(
        { signal, timeoutMs, timeoutError: () => new ClassificationError("timeout") },
        (ends) => client.post<unknown>("/decisions", { body, signal: ends }),
      );
      const { model, usage, _request_id: requestId } = fieldsOf(response);
      return settle(questions, {
        model: typeof model === "string" ? model : this.model,
        outcomes: decisionsOutcomes(response, questions),
        usage: readUsage(usage),
        requestId: typeof requestId === "string" ? requestId : undefined,
      });
    } catch (error) {
      throw classificationFailure(error, { signal, secrets });
    }
  }
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

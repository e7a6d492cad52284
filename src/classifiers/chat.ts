import {
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import { type AIMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { z } from "zod";
import { ConfigurationError } from "../errors.js";
import { check } from "../option-problem.js";
import { readChatAnswers } from "./chat-answer.js";
import {
  type AskableModel,
  type ChatModel,
  chatModelName,
  givenModel,
  keysOf,
  namedModel,
} from "./chat-model.js";
import { chatPrompt } from "./chat-prompt.js";
import { type ChatReply, providerId, replyText, stopOf, unwrapReply, writerOf } from "./chat-reply.js";
import { replySchema } from "./chat-schema.js";
import { classificationFailure } from "./failure.js";
import { readUsage } from "./http.js";
import { requireTextQuestions, type TextQuestions } from "./answers.js";
import { allFail, type Outcome, settle } from "./answers.js";

/** Options of {@link ChatDecisionModel}. */
export interface ChatDecisionModelOptions {
  /**
   * The chat model: an object, as the agent's own, or a name as `"anthropic:claude-haiku-4-5"`, whose
   * package must be installed. It must have no tools bound to it.
   */
  model: string | ChatModel;
  /**
   * The most tokens of a reply, reasoning included; whole number from 1. Default 1024 for a model
   * given by name. A model given as an object keeps its own limit unless this is set; the object
   * itself is never changed.
   */
  maxTokens?: number;
  /**
   * How often LangChain repeats a failed request, from 0. Default 0, whatever the model's own setting
   * is. Passed with each call: a provider package too old to know it keeps the model's own.
   */
  maxRetries?: number;
  /**
   * Whether to use the model's own structured output (`withStructuredOutput`). Default false: not
   * every model has it, and with some it forbids reasoning. The reply is checked as strictly either way.
   */
  structuredOutput?: boolean;
}

const schema = z.strictObject(
  {
    model: z.custom<string | ChatModel>(
      (value) =>
        (typeof value === "string" && value !== "") ||
        typeof (value as { invoke?: unknown } | undefined)?.invoke === "function",
      'a chat model or a name as "provider:model"',
    ),
    maxTokens: z.int("a whole number from 1").min(1, "a whole number from 1").optional(),
    maxRetries: z.int("a whole number from 0").min(0, "a whole number from 0").optional(),
    structuredOutput: z.boolean("true or false").optional(),
  },
  "an object of options",
);

const DEFAULT_MAX_TOKENS = 1024;
// LangGraph keeps the tokens of runs with this tag out of the message stream. It exports no name for it.
const NO_STREAM = "langsmith:nostream";

/**
 * Any LangChain chat model as a decision model. It asks one request for all questions; rules and
 * questions stand in the system message, the state as escaped data in the user message.
 *
 * It answers questions of the types `noul`, `choice` and `score` about text: images and files in
 * messages of the state are an error. The reply must be one JSON object, alone or in one code fence,
 * after at most one closed thinking block; reasoning is never searched for an answer. What is missing
 * or wrong fails its own question, and the others keep their answers. Each `noul` answer carries the
 * model's `explanation`. Its tokens stay out of the agent's message stream, and its run nests in the
 * trace.
 *
 * @throws {ConfigurationError} at construction for a wrong option; at the first request if a model
 * given by name cannot be made.
 * @throws {ClassificationError} from `invoke`: `refused` for a refusal, `truncated` if the reply
 * stopped at the token limit, `input_too_long` if the model says that the request is too large, else
 * `error`; `status` holds the HTTP status, `answers` the answers that were given all the same.
 *
 * @example
 * ```ts
 * const classifier = new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" });
 * autoModeMiddleware({ tools: [deleteFile], classifier });
 * ```
 */
export class ChatDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "classifiers"];
  // Private to the engine and not only to the compiler: a chat model prints its key.
  readonly #make: () => Promise<AskableModel>;
  readonly #maxRetries: number;
  readonly #structuredOutput: boolean;
  #made: Promise<AskableModel> | undefined;

  constructor(options: ChatDecisionModelOptions) {
    const { model, maxTokens, maxRetries = 0, structuredOutput = false } = check(schema, options, "");
    super({ model: typeof model === "string" ? model : chatModelName(model) });
    this.#make =
      typeof model === "string"
        ? () => namedModel(model, maxTokens ?? DEFAULT_MAX_TOKENS)
        : givenModel(model as AskableModel, maxTokens);
    this.#maxRetries = maxRetries;
    this.#structuredOutput = structuredOutput;
  }

  get _provider(): string {
    return "langchain";
  }

  async _classify(
    state: State,
    asked: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    const questions = requireTextQuestions("ChatDecisionModel", asked);
    const { system, user } = chatPrompt(state, questions);
    const model = await this.#chatModel();
    try {
      const asker = this.#structuredOutput ? withStructure(model, questions) : model;
      const reply = unwrapReply(
        await asker.invoke([new SystemMessage(system), new HumanMessage(user)], {
          ...config,
          tags: [...(config?.tags ?? []), NO_STREAM],
          maxRetries: this.#maxRetries,
        }),
      );
      const { message } = reply;
      return settle(questions, {
        model: writerOf(message) ?? this.model,
        outcomes: outcomesOf(reply, questions),
        usage: readUsage((message as AIMessage | undefined)?.usage_metadata),
        requestId: providerId(message),
      });
    } catch (error) {
      throw classificationFailure(error, { signal: config?.signal, secrets: keysOf(model) });
    }
  }

  /** Made once. A failure is not kept: what was missing may be there at the next request. */
  async #chatModel(): Promise<AskableModel> {
    this.#made ??= this.#make();
    try {
      return await this.#made;
    } catch (error) {
      this.#made = undefined;
      throw error;
    }
  }
}

function withStructure(model: AskableModel, questions: TextQuestions): AskableModel {
  if (model.withStructuredOutput === undefined) {
    throw new ConfigurationError("structuredOutput", "needs a model that has withStructuredOutput");
  }
  return model.withStructuredOutput(replySchema(questions), { name: "answers", includeRaw: true });
}

function outcomesOf({ message, parsed }: ChatReply, questions: TextQuestions): Map<string, Outcome> {
  const stop = message === undefined ? undefined : stopOf(message);
  if (stop !== undefined) return allFail(questions, stop.reason, stop.problem);
  if (parsed !== undefined) return readChatAnswers(JSON.stringify(parsed), questions);
  if (message === undefined) return allFail(questions, "error", "there is no reply");
  const reply = replyText(message);
  return "text" in reply
    ? readChatAnswers(reply.text, questions)
    : allFail(questions, reply.reason, reply.problem);
}

import {
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import { AIMessage, type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { z } from "zod";
import { ConfigurationError } from "../../errors.js";
import { check } from "../../option-problem.js";
import { requireTextQuestions, settle, type TextQuestions } from "../answers.js";
import { classificationFailure } from "../failure.js";
import { readUsage } from "../http.js";
import {
  type AskableModel,
  type ChatModel,
  chatModelName,
  givenModel,
  isAnthropic,
  keysOf,
  namedModel,
} from "./model.js";
import { type ChatPrompt, chatPrompt, userText } from "./prompt.js";
import { providerId, readReply, replySchema, unwrapReply, writerOf } from "./reply.js";

/** Options of {@link ChatDecisionModel}. */
export interface ChatDecisionModelOptions {
  /**
   * The chat model: an object, as the agent's own, or a name as `"anthropic:claude-haiku-4-5"`, whose
   * package must be installed. It must have no tools bound to it. Required.
   *
   * @example model: "anthropic:claude-haiku-4-5"
   */
  model: string | ChatModel;
  /**
   * The most tokens of a reply, reasoning included; whole number from 1. Default for a model given by
   * name: 1024, or 512 with `explanation: false`. A model given as an object keeps its own limit unless
   * this is set; the object itself is never changed.
   *
   * @example maxTokens: 2048
   */
  maxTokens?: number;
  /**
   * How often LangChain repeats a failed request, from 0. Default 0, whatever the model's own setting
   * is. Passed with each call: a provider package too old to know it keeps the model's own.
   *
   * @example maxRetries: 1
   */
  maxRetries?: number;
  /**
   * Whether to use the model's own structured output (`withStructuredOutput`). Default false: not
   * every model has it, and with some it forbids reasoning. The reply is checked as strictly either way.
   *
   * @example structuredOutput: true
   */
  structuredOutput?: boolean;
  /**
   * Whether the model also writes why, in one or two sentences. Default true: the feedback to the agent
   * is made of them. False asks for the numbers alone, about ten tokens for each call: as the first stage
   * of a cascade, whose second stage may be the same model with an explanation. Both stages then send the
   * same text up to the form of the reply, which a cache of prefixes computes once.
   *
   * @example explanation: false
   */
  explanation?: boolean;
  /**
   * Whether the parts of a prompt that the next request repeats are marked for Anthropic's cache
   * (`cache_control`, at most four marks). Default true. It acts with `ChatAnthropic` alone: other
   * providers cache prefixes by themselves, and are never sent a mark. Anthropic charges more for what it
   * writes into the cache and a tenth for what it reads, and ignores prompts that are too short.
   *
   * @example promptCaching: false
   */
  promptCaching?: boolean;
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
    explanation: z.boolean("true or false").optional(),
    promptCaching: z.boolean("true or false").optional(),
  },
  "an object of options",
);

const DEFAULT_MAX_TOKENS = 1024;
// Numbers for twenty calls with their kinds, generously.
const DEFAULT_MAX_TOKENS_OF_NUMBERS = 512;
// LangGraph keeps the tokens of runs with this tag out of the message stream. It exports no name for it.
const NO_STREAM = "langsmith:nostream";

/**
 * Any LangChain chat model as a decision model. It asks one request for all questions. Rules and
 * policy texts are in the system message, each text once; the user message holds the state as escaped
 * data, then the questions and the form of the reply. What stays the same from request to request of a
 * thread comes first, so that providers and local servers compute it once.
 *
 * It answers questions of the types `noul`, `choice` and `score` about text: images and files in
 * messages of the state are an error. The reply must be one JSON object, alone or in one code fence,
 * after at most one closed thinking block. Prose before the object is accepted if the object ends the
 * reply and no other one holds an answer. What is missing or wrong fails its own question, and the others
 * keep their answers. Each `noul` answer carries the model's `explanation`. Its tokens stay out of the agent's message stream, and its run nests in the
 * trace.
 *
 * @throws {ConfigurationError} at construction for a wrong option; at the first request if a model
 * given by name cannot be made.
 * @throws {ClassificationError} from `invoke`: `refused` for a refusal, `truncated` if the reply
 * stopped at the token limit, `input_too_long` if the model says that the request is too large, else
 * `error`; `status` holds the HTTP status, `answers` the answers that were given all the same. The `code` of
 * its `cause` names what was wrong with a reply: `not_json`, `empty_reply`, `unanswered`, `wrong_value`.
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
  readonly #explanation: boolean;
  readonly #promptCaching: boolean;
  #made: Promise<AskableModel> | undefined;

  constructor(options: ChatDecisionModelOptions) {
    const {
      model,
      maxTokens,
      maxRetries = 0,
      structuredOutput = false,
      explanation = true,
      promptCaching = true,
    } = check(schema, options, "");
    super({ model: typeof model === "string" ? model : chatModelName(model) });
    const limit = explanation ? DEFAULT_MAX_TOKENS : DEFAULT_MAX_TOKENS_OF_NUMBERS;
    this.#make =
      typeof model === "string"
        ? () => namedModel(model, maxTokens ?? limit)
        : givenModel(model as AskableModel, maxTokens);
    this.#maxRetries = maxRetries;
    this.#structuredOutput = structuredOutput;
    this.#explanation = explanation;
    this.#promptCaching = promptCaching;
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
    const prompt = chatPrompt(state, questions, { explanation: this.#explanation });
    const model = await this.#chatModel();
    const messages =
      this.#promptCaching && isAnthropic(model) ? markedMessages(prompt) : plainMessages(prompt);
    try {
      const asker = this.#structuredOutput ? withStructure(model, questions, this.#explanation) : model;
      const reply = unwrapReply(
        await asker.invoke(messages, {
          ...config,
          tags: [...(config?.tags ?? []), NO_STREAM],
          maxRetries: this.#maxRetries,
        }),
      );
      const { message } = reply;
      return settle(questions, {
        model: writerOf(message) ?? this.model,
        outcomes: readReply(reply, questions),
        usage: AIMessage.isInstance(message) ? readUsage(message.usage_metadata) : undefined,
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

function withStructure(model: AskableModel, questions: TextQuestions, explanation: boolean): AskableModel {
  if (model.withStructuredOutput === undefined) {
    throw new ConfigurationError("structuredOutput", "needs a model that has withStructuredOutput");
  }
  const answers = replySchema(questions, explanation);
  return model.withStructuredOutput(answers, { name: "answers", includeRaw: true });
}

function plainMessages(prompt: ChatPrompt): BaseMessage[] {
  return [new SystemMessage(prompt.system), new HumanMessage(userText(prompt))];
}

// Anthropic reads at most four marks of a request: one is on the rules.
const MARKS_IN_HISTORY = 3;
// From a mark it looks for what it knows over the 20 blocks before. The last mark of the request before
// must be among them, however many entries a step has added.
const BLOCKS_BETWEEN_MARKS = 18;

/**
 * The same text in content blocks. Anthropic caches whole blocks up to a mark, so that a transcript that
 * grew inside one block would never be found again: each entry is a block.
 */
function markedMessages({ system, history, request }: ChatPrompt): BaseMessage[] {
  const isMarked = (index: number): boolean => {
    const fromEnd = history.length - 1 - index;
    return fromEnd % BLOCKS_BETWEEN_MARKS === 0 && fromEnd / BLOCKS_BETWEEN_MARKS < MARKS_IN_HISTORY;
  };
  return [
    new SystemMessage({ content: [textBlock(system, true)] }),
    new HumanMessage({
      content: [...history.map((text, index) => textBlock(text, isMarked(index))), textBlock(request, false)],
    }),
  ];
}

function textBlock(text: string, marked: boolean) {
  return { type: "text", text, ...(marked ? { cache_control: { type: "ephemeral" } } : {}) };
}

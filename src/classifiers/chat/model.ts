import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { BaseMessage } from "@langchain/core/messages";
import type { Runnable, RunnableConfig } from "@langchain/core/runnables";
import { getEnvironmentVariable } from "@langchain/core/utils/env";
import { bindings, hasBoundTools } from "../../bindings.js";
import { ConfigurationError } from "../../errors.js";

/** A chat model, or one with settings bound to it by `withConfig`. */
export type ChatModel = BaseChatModel | Runnable<BaseLanguageModelInput, BaseMessage>;

/** What this package uses of a chat model. */
export interface AskableModel {
  invoke(input: BaseMessage[], config?: Partial<RunnableConfig> & { maxRetries?: number }): Promise<unknown>;
  withStructuredOutput?(
    schema: Record<string, unknown>,
    config: { name: string; includeRaw: true },
  ): AskableModel;
}

/**
 * What `initChatModel` gives is a wrapper with this method. It keys a cache by each call's config and so
 * would make a new model, and its connection, for each request: so the model inside is taken.
 */
const INNER = "_getModelInstance";

interface Wrapper {
  [INNER](): Promise<AskableModel>;
}

function isWrapper(model: object): model is Wrapper {
  return typeof (model as Partial<Wrapper>)[INNER] === "function";
}

/**
 * Makes the model with a name such as `anthropic:claude-haiku-4-5`.
 *
 * @throws {ConfigurationError} if there is no such provider, or its package or key is missing.
 */
export async function namedModel(name: string, maxTokens: number): Promise<AskableModel> {
  try {
    const { initChatModel } = await import("langchain/chat_models/universal");
    // Providers name the limit differently and ignore what they do not know.
    const limits = { maxTokens, maxOutputTokens: maxTokens, numPredict: maxTokens };
    return await (await initChatModel(name, limits))[INNER]();
  } catch (error) {
    throw new ConfigurationError("model", "names a chat model that could not be made; the cause says why", {
      cause: error,
    });
  }
}

/**
 * Prepares a model given as an object.
 *
 * @throws {ConfigurationError} if tools are bound to it, or it takes no token limit.
 */
export function givenModel(model: AskableModel, maxTokens: number | undefined): () => Promise<AskableModel> {
  refuseBoundTools(model);
  if (isWrapper(model)) {
    return async () => {
      const inner = await model[INNER]();
      return maxTokens === undefined ? inner : withTokenLimit(inner, maxTokens);
    };
  }
  const ready = maxTokens === undefined ? model : withTokenLimit(model, maxTokens);
  return async () => ready;
}

const LIMIT_FIELDS = ["maxTokens", "maxOutputTokens", "numPredict"];

/**
 * The same model with a token limit of its own. LangChain has no such setting for one call, and the
 * model may be the agent's, so it is not changed: the result wraps it.
 *
 * @throws {ConfigurationError} if the model has no such setting.
 */
function withTokenLimit(model: AskableModel, maxTokens: number): AskableModel {
  const fields = LIMIT_FIELDS.filter((name) => name in model);
  if (fields.length === 0) {
    throw new ConfigurationError(
      "maxTokens",
      "cannot be set for this model; set the limit on the model itself",
    );
  }
  const limited: Record<string, PropertyDescriptor> = {};
  for (const name of fields) limited[name] = { value: maxTokens, writable: true, configurable: true };
  // ChatOpenAI hands its requests to one of several models inside.
  for (const [name, inner] of Object.entries(model)) {
    if (!isChatModel(inner) || !LIMIT_FIELDS.some((field) => field in inner)) continue;
    limited[name] = { value: withTokenLimit(inner, maxTokens), writable: true, configurable: true };
  }
  return Object.create(model, limited) as AskableModel;
}

function isChatModel(value: unknown): value is AskableModel {
  return typeof value === "object" && value !== null && "_modelType" in value && "invoke" in value;
}

/**
 * Refuses a model that might call a tool instead of answering.
 *
 * @throws {ConfigurationError} if tools are bound to it.
 */
function refuseBoundTools(model: object): void {
  if (hasBoundTools(model)) {
    throw new ConfigurationError("model", "has tools bound to it; expected the model without them");
  }
}

/** The name of a model for records. */
export function chatModelName(model: object): string {
  for (const candidate of bindings(model)) {
    const { model: name, modelName } = candidate as { model?: unknown; modelName?: unknown };
    if (typeof name === "string" && name !== "") return name;
    if (typeof modelName === "string" && modelName !== "") return modelName;
  }
  return "chat model";
}

/** Whether a model's requests go to Anthropic's API, and nowhere else. */
export function isAnthropic(model: object): boolean {
  const layers = [...bindings(model)];
  // A model with fallbacks may hand the same messages to another provider.
  if (layers.some((layer) => "fallbacks" in layer)) return false;
  return layers.some((layer) => {
    const { _llmType: type } = layer as { _llmType?: unknown };
    return typeof type === "function" && type.call(layer) === "anthropic";
  });
}

/** A model's own keys, for hiding them where an error repeats them. */
export function keysOf(model: object): string[] {
  return [...bindings(model)]
    .flatMap((candidate) => {
      const { lc_secrets: secrets } = candidate as { lc_secrets?: Record<string, string> };
      return Object.entries(secrets ?? {}).flatMap(([field, variable]) => [
        (candidate as Record<string, unknown>)[field],
        getEnvironmentVariable(variable),
      ]);
    })
    .filter((key) => typeof key === "string");
}

import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ConfigurationError } from "../../errors.js";
import type { CallSettings } from "./model-upstream.js";

// Where the providers' packages look for a key. The others (Ollama, Bedrock, Google) need none, or may
// find credentials elsewhere.
const KEY_VARIABLES: Readonly<Record<string, string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  azure_openai: "AZURE_OPENAI_API_KEY",
  cerebras: "CEREBRAS_API_KEY",
  cohere: "COHERE_API_KEY",
  deepseek: "DEEPSEEK_API_KEY",
  fireworks: "FIREWORKS_API_KEY",
  groq: "GROQ_API_KEY",
  mistral: "MISTRAL_API_KEY",
  mistralai: "MISTRAL_API_KEY",
  openai: "OPENAI_API_KEY",
  perplexity: "PERPLEXITY_API_KEY",
  together: "TOGETHER_AI_API_KEY",
  xai: "XAI_API_KEY",
};

/** Makes the chat model for one request, with the request's settings. */
export type ChatModelFactory = (settings: CallSettings) => BaseChatModel;

/**
 * Loads the chat model that `PROVIDER:NAME` names, by the providers that LangChain's `initChatModel` knows, and
 * makes one at once to see that nothing is missing. Each request gets a model of its own, so that it can bring
 * `max_tokens`, `temperature` and `top_p`, and so that leaving one reply ends no other.
 *
 * `max_tokens` is lowered to what the model can write, where its profile says so. OpenAI's reasoning models
 * take no `temperature` and no `top_p`: they are left out there. Nothing is retried: clients retry themselves,
 * and know of `retry-after`.
 *
 * @param name `openai:gpt-5-mini`, `ollama:qwen3:8b`, ...: everything after the first colon is the model's name
 * @throws {ConfigurationError} when the provider is not known, its package is not installed, its key is missing, or
 * the model cannot be made.
 *
 * @example
 * ```ts
 * const upstream = createModelUpstream(await loadChatModel("ollama:qwen3:8b"));
 * ```
 */
export async function loadChatModel(name: string): Promise<ChatModelFactory> {
  const [provider = "", ...rest] = name.split(":");
  const model = rest.join(":");
  if (provider === "" || model === "")
    throw new ConfigurationError("model", "is not usable; expected PROVIDER:NAME, as openai:gpt-5-mini");
  const { getChatModelByClassName, MODEL_PROVIDER_CONFIG } = await import("langchain/chat_models/universal");
  const providers: Readonly<Record<string, { package: string; className: string }>> = MODEL_PROVIDER_CONFIG;
  const known = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
  if (!known) {
    const names = Object.keys(providers).join(", ");
    throw new ConfigurationError("model", `names a provider that is not known; expected one of ${names}`);
  }
  if (provider === "google-genai")
    throw new ConfigurationError(
      "model",
      `names a provider whose package cannot be used here; expected google:${model}`,
    );
  const Model = await load(known.package, () => getChatModelByClassName(known.className, provider));
  const make = (settings?: CallSettings): BaseChatModel =>
    new Model({ model, maxRetries: 0, ...(settings ? fieldsFor(provider, sample, settings) : {}) });
  const sample = makeSample(provider, () => make());
  return make;
}

type ModelClass = new (fields: Readonly<Record<string, unknown>>) => BaseChatModel;

async function load(name: string, find: () => Promise<unknown>): Promise<ModelClass> {
  let found: unknown;
  try {
    found = await find();
  } catch (error) {
    const isMissing = error instanceof Error && error.message.includes(`Unable to import ${name}`);
    const problem = isMissing
      ? `needs the package ${name}, which is not installed: run "npm install ${name}"`
      : `needs the package ${name}, which could not be loaded`;
    throw new ConfigurationError("model", problem, { cause: error });
  }
  if (typeof found !== "function")
    throw new ConfigurationError("model", `needs another version of the package ${name}`);
  return found as ModelClass;
}

function makeSample(provider: string, make: () => BaseChatModel): BaseChatModel {
  const variable = KEY_VARIABLES[provider];
  const isKeyMissing = variable !== undefined && !process.env[variable];
  const missing = `needs a key in the environment variable ${variable}`;
  let sample: BaseChatModel;
  try {
    sample = make();
  } catch (error) {
    if (isKeyMissing) throw new ConfigurationError("model", missing, { cause: error });
    // The packages say which of their own settings is missing.
    const why = error instanceof Error ? error.message : "the reason is not known";
    throw new ConfigurationError("model", `could not be made: ${why}`, { cause: error });
  }
  // ChatOpenAI asks for its key with the first request only. A gateway of LangSmith's brings a key of its own.
  if (isKeyMissing && "apiKey" in sample && !sample.apiKey) throw new ConfigurationError("model", missing);
  return sample;
}

/** The settings under each name that a provider's package has for them: the others ignore what they do not know. */
function fieldsFor(provider: string, { profile }: BaseChatModel, settings: CallSettings) {
  const limit = Math.min(settings.maxTokens, profile?.maxOutputTokens ?? Number.POSITIVE_INFINITY);
  const takesNoSampling = provider.endsWith("openai") && profile?.reasoningOutput === true;
  const { temperature, topP } = settings;
  return {
    maxTokens: limit,
    maxOutputTokens: limit,
    numPredict: limit,
    ...(temperature === undefined || takesNoSampling ? {} : { temperature }),
    ...(topP === undefined || takesNoSampling ? {} : { topP }),
  };
}

import type { BaseDecisionModel } from "@langchain/core/decisions";
import {
  ChatDecisionModel,
  OpenAIDecisionModel,
  ProvenanceDecisionModel,
  SystemOneDecisionModel,
} from "./index.js";
import { ConfigurationError } from "../errors.js";
import { loadOptional } from "./http.js";

const EXPECTED = "chat:PROVIDER:MODEL, systemone, systemone:MODEL, openai-decisions:MODEL or provenance";

/** What a command line sets for whatever classifier it names. */
export interface ClassifierSettings {
  /** The most tokens of a chat model's reply; the other classifiers have no such limit. */
  readonly maxTokens?: number;
}

/**
 * Makes the classifier that a command line names. What it needs (a package, a key) is looked for at
 * once, so that a gateway that could judge nothing does not start.
 *
 * @throws {ConfigurationError} that says what is missing.
 */
export async function chooseClassifier(
  which: string,
  settings: ClassifierSettings = {},
): Promise<BaseDecisionModel> {
  const [kind, ...rest] = which.split(":");
  const model = rest.join(":");
  if (kind === "provenance" && which === kind) return new ProvenanceDecisionModel();
  if (kind === "systemone" && which !== "systemone:") {
    await loadOptional("@typesafe-ai/sdk", () => import("@typesafe-ai/sdk"));
    return new SystemOneDecisionModel(model === "" ? {} : { model });
  }
  if (kind === "openai-decisions" && model !== "") {
    await loadOptional("openai", () => import("openai"));
    return new OpenAIDecisionModel({ model });
  }
  if (kind === "chat" && /^[^:]+:./.test(model)) {
    await requireChatModel(model);
    return new ChatDecisionModel({ model, ...settings });
  }
  if (kind === "chat" && /^[^:]+:?$/.test(model))
    throw new ConfigurationError("classifier", "has no model name; expected chat:PROVIDER:MODEL");
  if (kind === "openai-decisions")
    throw new ConfigurationError("classifier", "has no model name; expected openai-decisions:MODEL");
  if (kind === "openai")
    throw new ConfigurationError(
      "classifier",
      "is not known; expected chat:openai:MODEL for a chat model, or openai-decisions:MODEL for a decision model",
    );
  throw new ConfigurationError("classifier", `is not known; expected ${EXPECTED}`);
}

async function requireChatModel(name: string): Promise<void> {
  // ChatOpenAI asks for its key with the first request only: every request would fail.
  if (name.startsWith("openai:") && !process.env["OPENAI_API_KEY"])
    throw new ConfigurationError(
      "classifier",
      "needs a key in the environment variable OPENAI_API_KEY; a server that takes none accepts any text",
    );
  const { initChatModel } = await import("langchain/chat_models/universal");
  try {
    await initChatModel(name);
  } catch (error) {
    // LangChain says which package or key is missing.
    const why = error instanceof Error ? error.message : "the reason is not known";
    const missing = /^Unable to import (@?[\w./-]+\w)/.exec(why)?.[1];
    if (missing !== undefined)
      throw new ConfigurationError(
        "classifier",
        `needs the package ${missing}, which is not installed: run "npm install ${missing}", with -g if langchain-auto-mode is installed so`,
        { cause: error },
      );
    throw new ConfigurationError("classifier", `names a chat model that could not be made: ${why}`, {
      cause: error,
    });
  }
}

import type { Content, JsonValue, NoulCriteria, State } from "@langchain/core/decisions";
import { type ContentBlock, HumanMessage } from "@langchain/core/messages";
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
  HttpDecisionModel,
  type HttpModel,
  type HttpModelOptions,
  loadOptional,
  type Send,
  stateForService,
} from "./http.js";

/** Options of {@link OpenAIDecisionModel}. */
export interface OpenAIDecisionModelOptions extends HttpModelOptions {
  /**
   * The model. Default `"gpt-6-luna"`.
   *
   * @example model: "gpt-6-luna"
   */
  model?: string;
  /**
   * The key. Default: `OPENAI_API_KEY` of the environment.
   *
   * @example apiKey: process.env.JUDGE_KEY
   */
  apiKey?: string;
  /**
   * The service's root, with its version. Default: `OPENAI_BASE_URL`, else `https://api.openai.com/v1`.
   *
   * @example baseURL: "https://gateway.example.com/v1"
   */
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
export class OpenAIDecisionModel extends HttpDecisionModel {
  constructor(options: OpenAIDecisionModelOptions = {}) {
    super(options, {
      provider: "openai",
      keyVariable: "OPENAI_API_KEY",
      baseURLVariable: "OPENAI_BASE_URL",
      defaultModel: "gpt-6-luna",
      defaultBaseURL: "https://api.openai.com/v1",
    });
  }

  protected override async prepare(http: HttpModel, state: State, questions: TextQuestions): Promise<Send> {
    const body = decisionsRequest(http.model, state, questions);
    const { OpenAI } = await loadOptional("openai", () => import("openai"));
    const client = new OpenAI({
      apiKey: http.apiKey,
      baseURL: http.baseURL,
      maxRetries: http.maxRetries,
      timeout: http.timeoutMs,
      defaultHeaders: http.headers,
      dangerouslyAllowBrowser: true,
      ...(http.fetch === undefined ? {} : { fetch: http.fetch }),
    });
    return async (signal) => {
      const reply = await client.post<unknown>("/decisions", { body, signal });
      return { body: reply, requestId: requestIdOf(reply) };
    };
  }

  protected override read(body: unknown, questions: TextQuestions): ReadonlyMap<string, Outcome> {
    return decisionsOutcomes(body, questions);
  }
}

/** The SDK adds it to the body. */
function requestIdOf(reply: unknown): string | undefined {
  return z.object({ _request_id: z.string() }).safeParse(reply).data?._request_id;
}

type Part = { type: "input_text"; text: string } | { type: "input_image"; image_url: string };

/** The body of `POST /v1/decisions`. */
interface DecisionsRequest {
  model: string;
  input: string | { role: "user"; content: string | Part[] }[];
  questions: object[];
}

/** Writes a request in the service's own shape. */
function decisionsRequest(model: string, state: State, questions: TextQuestions): DecisionsRequest {
  return {
    model,
    input: input(state),
    questions: Object.entries(questions).map(([name, question]) => wireQuestion(name, question)),
  };
}

/** The service takes user messages only. Any other state goes as JSON, so that no role is lost. */
function input(state: State): DecisionsRequest["input"] {
  if (typeof state === "string") return state;
  const messages = Array.isArray(state) ? state : [state];
  if (messages.length > 0 && messages.every((message) => HumanMessage.isInstance(message))) {
    return messages.map((message) => ({ role: "user", content: content(message) }));
  }
  return JSON.stringify(stateForService(state));
}

function content(message: HumanMessage): string | Part[] {
  if (typeof message.content === "string") return message.content;
  return message.contentBlocks.map(part);
}

function part(block: ContentBlock.Standard): Part {
  if (block.type === "text") return { type: "input_text", text: block.text };
  const url = block.type === "image" ? imageUrl(block) : undefined;
  if (url !== undefined) return { type: "input_image", image_url: url };
  throw new Error(
    `OpenAIDecisionModel reads text and images, and a message of the state has a block of type ${block.type} that is neither.`,
  );
}

function imageUrl({ url, data, mimeType }: ContentBlock.Multimodal.Image): string | undefined {
  if (url !== undefined) return url;
  if (data === undefined || mimeType === undefined) return undefined;
  return `data:${mimeType};base64,${typeof data === "string" ? data : base64(data)}`;
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCodePoint(byte)).join(""));
}

function wireQuestion(name: string, question: TextQuestion): object {
  const instructions = asText(question.instructions);
  switch (question.type) {
    case "noul":
      return { type: "predicate", name, instructions: withMeanings(instructions, question.criteria ?? {}) };
    case "choice": {
      const choices = Object.entries(question.criteria).map(([value, meaning]) => ({
        value,
        ...described(meaning),
      }));
      return { type: "choice", name, instructions, choices };
    }
    case "score": {
      const levels = question.criteria.map((meaning, level) => ({
        label: String(level),
        ...described(meaning),
      }));
      return { type: "score", name, instructions, levels };
    }
  }
}

/** A predicate has no place for what yes and no mean, so the instructions end with it. */
function withMeanings(instructions: string, { true: yes, false: no }: NoulCriteria): string {
  return [
    instructions,
    ...(yes === undefined ? [] : [`It is true if: ${asText(yes)}`]),
    ...(no === undefined ? [] : [`It is false if: ${asText(no)}`]),
  ].join("\n\n");
}

function described(meaning: JsonValue): { description?: string } {
  return meaning === null ? {} : { description: asText(meaning) };
}

function asText(value: Content | JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

const body = z.object({ answers: z.array(z.unknown()) });
const named = z.object({ type: z.string(), name: z.string() });
const share = z.object({ value: z.unknown().optional(), probability: z.unknown() });
const predicate = z.object({ probability: z.unknown().optional() });
const distribution = z.object({
  choice: z.unknown().optional(),
  score: z.unknown().optional(),
  confidence: z.unknown().optional(),
  probabilities: z.array(share),
});
const WIRE_TYPES: Readonly<Record<string, string>> = { noul: "predicate", choice: "choice", score: "score" };

/** Reads the answers of a `/v1/decisions` response, each on its own. Fields that are not known are ignored. */
function decisionsOutcomes(response: unknown, questions: TextQuestions): Map<string, Outcome> {
  const parsed = body.safeParse(response);
  if (!parsed.success) return allFail(questions, "error", "the response has no list of answers");
  const outcomes = new Map<string, Outcome>();
  for (const answer of parsed.data.answers) {
    const head = named.safeParse(answer);
    if (!head.success || !Object.hasOwn(questions, head.data.name)) continue;
    const { name, type } = head.data;
    outcomes.set(
      name,
      outcomes.has(name) ? failure("it is answered twice") : outcome(answer, type, questions[name]!),
    );
  }
  return outcomes;
}

function outcome(answer: unknown, type: string, question: TextQuestion): Outcome {
  if (type === "refusal") return { reason: "refused", problem: "the service refused to answer it" };
  if (type !== WIRE_TYPES[question.type]) return failure("the answer is of another type");
  if (question.type === "noul") return noulOutcome(predicate.parse(answer).probability);
  const parsed = distribution.safeParse(answer);
  if (!parsed.success) return failure("the answer has no list of probabilities");
  const { choice, score, confidence, probabilities: shares } = parsed.data;
  const certainty = { confidence: confidence ?? undefined };
  switch (question.type) {
    case "choice": {
      const probabilities = shares.map(({ value, probability }) => [value, probability] as const);
      return choiceOutcome(question, { picked: choice, probabilities, ...certainty });
    }
    case "score": {
      const probabilities = shares.map(({ value, probability }) => [String(value), probability] as const);
      return scoreOutcome(question, { picked: score, probabilities, ...certainty });
    }
  }
}

import {
  BaseDecisionModel,
  type ClassifierResponse,
  type JsonValue,
  type Question,
  type State,
} from "@langchain/core/decisions";
import type { UsageMetadata } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { getEnvironmentVariable } from "@langchain/core/utils/env";
import { z } from "zod";
import { withDeadline } from "../deadline.js";
import { ClassificationError, ConfigurationError } from "../errors.js";
import { readRequestState } from "../guard/question.js";
import { check } from "../option-problem.js";
import { type Outcome, requireTextQuestions, settle, type TextQuestions } from "./answers.js";
import { classificationFailure } from "./failure.js";
import { stateAsJson } from "./state-json.js";

/** Options that the decision models with an HTTP service of their own share. */
export interface HttpModelOptions {
  /**
   * The model's name at the service. Default: each class names its own.
   *
   * @example model: "jev-latest"
   */
  model?: string;
  /**
   * The key. Default: from the environment. It appears in no print of the model or of its errors.
   *
   * @example apiKey: process.env.JUDGE_KEY
   */
  apiKey?: string;
  /**
   * Where the service is. Default: from the environment, else the provider's own.
   *
   * @example baseURL: "http://localhost:8080"
   */
  baseURL?: string;
  /**
   * How often a failed request is repeated, from 0. Default 0. All attempts share `timeoutMs`, and
   * the guard's own limit applies too.
   *
   * @example maxRetries: 2
   */
  maxRetries?: number;
  /**
   * Milliseconds until a request counts as failed (`timeout`), 1 to 2147483647. Default 60000. The
   * guard's `timeoutMs` ends it earlier where that is shorter.
   *
   * @example timeoutMs: 5_000
   */
  timeoutMs?: number;
  /**
   * Further headers. Treated like the key in prints. Default: none.
   *
   * @example headers: { "x-team": "payments" }
   */
  headers?: Readonly<Record<string, string>>;
  /**
   * Sends the requests, as through a proxy. Default: the global `fetch`.
   *
   * @example fetch: (url, init) => fetchThroughProxy(url, init)
   */
  fetch?: typeof globalThis.fetch;
}

// What a timer of the platform can hold.
const LONGEST_TIMEOUT = 2 ** 31 - 1;
const DELAY = `a whole number of milliseconds from 1 to ${LONGEST_TIMEOUT}`;
const filled = (what: string) => z.string(what).min(1, what);

const schema = z.strictObject(
  {
    model: filled("a model's name").optional(),
    apiKey: filled("a key as text").optional(),
    baseURL: z.url({ protocol: /^https?$/, error: "an http or https URL" }).optional(),
    maxRetries: z.int("a whole number from 0").min(0, "a whole number from 0").optional(),
    timeoutMs: z.int(DELAY).min(1, DELAY).max(LONGEST_TIMEOUT, DELAY).optional(),
    headers: z.record(z.string(), z.string("a text"), "an object of texts").optional(),
    fetch: z.custom<typeof globalThis.fetch>((value) => typeof value === "function", "a function").optional(),
  },
  "an object of options",
);

/** A service: the names of its environment variables, and its defaults. */
export interface HttpService {
  /** As traces name it. */
  provider: string;
  keyVariable: string;
  modelVariable?: string;
  baseURLVariable: string;
  defaultModel: string;
  defaultBaseURL: string;
}

/** Options with nothing left open. */
export interface HttpModel {
  model: string;
  apiKey: string;
  baseURL: string;
  maxRetries: number;
  timeoutMs: number;
  headers: Readonly<Record<string, string>>;
  fetch: typeof globalThis.fetch | undefined;
}

/** What a service answered. */
export interface HttpReply {
  body: unknown;
  requestId: string | undefined;
}

/** Sends a request that is ready, until the signal ends it. */
export type Send = (signal: AbortSignal) => Promise<HttpReply>;

/**
 * A decision model with an HTTP service of its own. A subclass writes the request and reads the answers;
 * options, key, time limit, failures and usage are the same for all.
 */
export abstract class HttpDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "classifiers"];
  // Private to the engine and not only to the compiler, so that no print shows the key.
  readonly #http: HttpModel;
  readonly #provider: string;

  /** @throws {ConfigurationError} for a wrong option or a missing key. */
  constructor(options: HttpModelOptions, service: HttpService) {
    const http = resolve(check<HttpModelOptions>(schema, options, ""), service);
    super({ model: http.model });
    this.#http = http;
    this.#provider = service.provider;
  }

  get _provider(): string {
    return this.#provider;
  }

  /** Writes a request and loads the client that sends it. What it throws is the caller's mistake. */
  protected abstract prepare(http: HttpModel, state: State, questions: TextQuestions): Promise<Send>;

  /** Reads the answers out of a body of the service, each on its own. */
  protected abstract read(body: unknown, questions: TextQuestions): ReadonlyMap<string, Outcome>;

  async _classify(
    state: State,
    asked: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    const questions = requireTextQuestions(this.constructor.name, asked);
    const { apiKey, headers, timeoutMs } = this.#http;
    const send = await this.prepare(this.#http, state, questions);
    const signal = config?.signal;
    try {
      const { body, requestId } = await withDeadline({ signal, timeoutMs, timeoutError }, send);
      // Clients type the body and do not check it.
      const { model, usage } = reported.parse(body);
      return settle(questions, {
        model: model ?? this.model,
        outcomes: this.read(body, questions),
        usage: readUsage(usage),
        requestId,
      });
    } catch (error) {
      throw classificationFailure(error, { signal, secrets: [apiKey, ...Object.values(headers)] });
    }
  }
}

const timeoutError = () => new ClassificationError("timeout");

const reported = z
  .object({ model: z.string().optional().catch(undefined), usage: z.unknown().optional() })
  .catch({});

function resolve(options: HttpModelOptions, service: HttpService): HttpModel {
  const apiKey = options.apiKey ?? fromEnvironment(service.keyVariable);
  if (apiKey === undefined) {
    throw new ConfigurationError("apiKey", `is missing; pass it or set ${service.keyVariable}`);
  }
  return {
    model: options.model ?? fromEnvironment(service.modelVariable) ?? service.defaultModel,
    apiKey,
    baseURL: options.baseURL ?? fromEnvironment(service.baseURLVariable) ?? service.defaultBaseURL,
    maxRetries: options.maxRetries ?? 0,
    timeoutMs: options.timeoutMs ?? 60_000,
    headers: { ...options.headers },
    fetch: options.fetch,
  };
}

function fromEnvironment(name: string | undefined): string | undefined {
  const value = name === undefined ? undefined : getEnvironmentVariable(name)?.trim();
  return value === "" ? undefined : value;
}

/**
 * A state as the services read it: plain JSON. In the guard's own state a tool that several calls share is
 * described with the first of them only.
 */
export function stateForService(state: State): JsonValue {
  const json = stateAsJson(state);
  const request = readRequestState(json);
  if (request === undefined) return json;
  const described = new Set<string>();
  const calls = [...request.calls].map(([key, { description, ...call }]) => {
    const tool = JSON.stringify([call.name, description]);
    const isNew = description !== undefined && !described.has(tool);
    described.add(tool);
    return [key, isNew ? { ...call, description } : call] as const;
  });
  return { ...(json as Record<string, JsonValue>), tool_calls: Object.fromEntries(calls) };
}

/**
 * Loads a package that users install only if they need it.
 *
 * @throws {ConfigurationError} if it is not installed.
 */
export async function loadOptional<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    throw new ConfigurationError(
      "classifier",
      `needs the package ${name}, which is not installed: run "npm install ${name}"`,
      { cause: error },
    );
  }
}

/** A package that is there may fail to load for want of another one: that is not this problem. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") && String(message).includes(`'${name}'`)
  );
}

/**
 * A `fetch` that gives a response only once its body is there. For clients that clone a response: on
 * Node 20 the abort of a stalled clone ends in a rejection that nobody can handle, and with it the
 * process.
 */
export function bufferedFetch(fetch: typeof globalThis.fetch = globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { status, statusText, headers } = response;
    const body = response.body === null ? null : await response.arrayBuffer();
    return new Response(body, { status, statusText, headers });
  };
}

const COUNTS = ["input_tokens", "output_tokens", "total_tokens"] as const;
const DETAILS = ["input_token_details", "output_token_details"] as const;

/** What a service reports as usage, as far as it is that. */
export function readUsage(usage: unknown): Partial<UsageMetadata> | undefined {
  if (typeof usage !== "object" || usage === null) return undefined;
  const fields = usage as Record<string, unknown>;
  const counts = COUNTS.filter((name) => Number.isSafeInteger(fields[name]) && (fields[name] as number) >= 0);
  if (counts.length === 0) return undefined;
  const details = DETAILS.filter((name) => typeof fields[name] === "object" && fields[name] !== null);
  return Object.fromEntries([...counts, ...details].map((name) => [name, fields[name]]));
}

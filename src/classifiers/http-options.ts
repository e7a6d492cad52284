import { getEnvironmentVariable } from "@langchain/core/utils/env";
import type { UsageMetadata } from "@langchain/core/messages";
import { z } from "zod";
import { ConfigurationError } from "../errors.js";

/** Options that the decision models with an HTTP service of their own share. */
export interface HttpModelOptions {
  /** The model's name at the service. */
  model?: string;
  /** The key. Default: from the environment. It appears in no print of the model or of its errors. */
  apiKey?: string;
  /** Where the service is. Default: from the environment, else the provider's own. */
  baseURL?: string;
  /**
   * How often a failed request is repeated, from 0. Default 0. All attempts share `timeoutMs`, and
   * the guard's own limit holds beside it.
   */
  maxRetries?: number;
  /**
   * Milliseconds until a request counts as failed (`timeout`), 1 to 2147483647. Default 60000. The
   * guard's `timeoutMs` ends it earlier where that is shorter.
   */
  timeoutMs?: number;
  /** Further headers. Treated like the key in prints. */
  headers?: Readonly<Record<string, string>>;
  /** Replaces the global `fetch`, as for a proxy. */
  fetch?: typeof globalThis.fetch;
}

// What a timer of the platform can hold.
const LONGEST_TIMEOUT = 2 ** 31 - 1;
const DELAY = `a whole number of milliseconds from 1 to ${LONGEST_TIMEOUT}`;
const filled = (what: string) => z.string(what).min(1, what);

export const httpModelOptions = z.strictObject(
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

/** Where a service's settings stand in the environment, and its defaults. */
export interface HttpService {
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
  /** What must appear in no print. */
  secrets: readonly string[];
}

/**
 * Fills options from the environment and the service's defaults.
 *
 * @throws {ConfigurationError} if there is no key.
 */
export function resolveHttpModel(options: HttpModelOptions, service: HttpService): HttpModel {
  const apiKey = options.apiKey ?? fromEnvironment(service.keyVariable);
  if (apiKey === undefined) {
    throw new ConfigurationError("apiKey", `is missing; pass it or set ${service.keyVariable}`);
  }
  const headers = { ...options.headers };
  return {
    model: options.model ?? fromEnvironment(service.modelVariable) ?? service.defaultModel,
    apiKey,
    baseURL: options.baseURL ?? fromEnvironment(service.baseURLVariable) ?? service.defaultBaseURL,
    maxRetries: options.maxRetries ?? 0,
    timeoutMs: options.timeoutMs ?? 60_000,
    headers,
    fetch: options.fetch,
    secrets: [apiKey, ...Object.values(headers)],
  };
}

function fromEnvironment(name: string | undefined): string | undefined {
  const value = name === undefined ? undefined : getEnvironmentVariable(name)?.trim();
  return value === "" ? undefined : value;
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

import { ContextOverflowError, ModelRefusalError } from "@langchain/core/errors";
import { isGraphBubbleUp } from "@langchain/langgraph";
import { ClassificationError, ConfigurationError, type UnavailableReason } from "../errors.js";
import { withoutSecrets } from "./secret.js";

/** Why a request failed, as far as a client's error tells. */
export interface Failure {
  reason: UnavailableReason;
  /** The HTTP status, if there was one. */
  status: number | undefined;
}

// Providers disagree on where a code stands and how it is spelt; these are theirs.
const TOO_LONG_CODES = new Set([
  "context_length_exceeded",
  "context_overflow",
  "max_tokens_exceeded",
  "request_too_large",
  "string_above_max_length",
]);
const REFUSED_CODES = new Set(["content_filter", "content_policy_violation", "promptblockederror"]);
const TIMEOUT_CODES = new Set([
  "timeouterror",
  "apitimeouterror",
  "apiconnectiontimeouterror",
  "etimedout",
  "und_err_connect_timeout",
  "und_err_headers_timeout",
  "und_err_body_timeout",
]);
// Statuses with which a size complaint is about this request, not about a quota.
const SIZE_STATUSES = new Set([400, 413, 422]);
const TOO_LONG_TEXT =
  /prompt is too long|input is too long|too many (?:input )?tokens|(?:maximum|max) context|context (?:window|length)|exceeds? the (?:maximum|max)[a-z ]{0,40} tokens/i;
// A service may repeat the whole request in its message, after its own words.
const MESSAGE_START = 2000;
// Deep enough for a LangChain error around an SDK's around the network's.
const DEPTH = 4;

/** Reads a reason and a status out of the error of an SDK, of LangChain or of the network. */
export function failureOf(error: unknown): Failure {
  const layers = [...causes(error)];
  const status = layers
    .flatMap((layer) => [field(layer, "status"), field(layer, "statusCode")])
    .find(isHttpStatus);
  return { reason: reasonOf(layers, status), status };
}

function reasonOf(layers: readonly object[], status: number | undefined): UnavailableReason {
  const codes = new Set(layers.flatMap((layer) => [...codesOf(layer)]));
  const has = (known: ReadonlySet<string>) => [...codes].some((code) => known.has(code));
  if (layers.some((layer) => ModelRefusalError.isInstance(layer)) || has(REFUSED_CODES)) return "refused";
  if (layers.some((layer) => ContextOverflowError.isInstance(layer)) || has(TOO_LONG_CODES)) {
    return "input_too_long";
  }
  if (status === 413) return "input_too_long";
  if (status !== undefined && SIZE_STATUSES.has(status) && layers.some(saysTooLong)) return "input_too_long";
  return status === undefined && has(TIMEOUT_CODES) ? "timeout" : "error";
}

function* causes(error: unknown): Generator<object> {
  let current = error;
  for (let depth = 0; depth < DEPTH && typeof current === "object" && current !== null; depth++) {
    yield current;
    current = (current as { cause?: unknown }).cause;
  }
}

/** Names and codes of an error and of the body that it carries, in lower case. */
function* codesOf(layer: object): Generator<string> {
  // An SDK may leave `name` as it is and tell its errors apart by class alone.
  const { constructor } = layer as { constructor?: { name?: unknown } };
  yield String(constructor?.name).toLowerCase();
  yield* codesIn(layer, 0);
}

function* codesIn(value: unknown, depth: number): Generator<string> {
  if (typeof value !== "object" || value === null || depth > 2) return;
  const fields = value as Record<string, unknown>;
  for (const name of ["name", "code", "type", "lc_error_code"]) {
    if (typeof fields[name] === "string") yield fields[name].toLowerCase();
  }
  for (const name of ["error", "body", "detail"]) yield* codesIn(fields[name], depth + 1);
}

function saysTooLong(layer: object): boolean {
  const { message } = layer as { message?: unknown };
  return typeof message === "string" && TOO_LONG_TEXT.test(message.slice(0, MESSAGE_START));
}

function field(layer: object, name: string): unknown {
  return (layer as Record<string, unknown>)[name];
}

/** Clients also use 0 for "no answer", and error classes of other kinds have a status of their own. */
function isHttpStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) <= 599;
}

/** What a decision model knows when a request of its fails. */
export interface FailureContext {
  /** The caller's signal. */
  signal: AbortSignal | undefined;
  /** Keys and header values that must not come out, in the cause either. */
  secrets: readonly (string | undefined)[];
}

/**
 * The error that a decision model throws for a client's error. An abort of the caller's and a
 * graph's own control flow are no failures, and a wrong configuration is not the service's: they pass
 * unchanged.
 */
export function classificationFailure(error: unknown, { signal, secrets }: FailureContext): unknown {
  if (signal?.aborted) return signal.reason;
  if (isGraphBubbleUp(error)) return error;
  const known = ClassificationError.find(error) ?? ConfigurationError.find(error);
  if (known !== undefined) return known;
  const { reason, status } = failureOf(error);
  return new ClassificationError(reason, {
    cause: withoutSecrets(error, secrets),
    ...(status === undefined ? {} : { status }),
  });
}

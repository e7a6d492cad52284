import { ContextOverflowError, ModelRefusalError } from "@langchain/core/errors";
import { isGraphBubbleUp } from "@langchain/langgraph";
import { errorFacts, errorLayers, readField } from "../error-facts.js";
import { ClassificationError, ConfigurationError, type UnavailableReason } from "../errors.js";
import { withoutSecrets } from "./secret.js";

// Providers disagree on the place and the spelling of a code; these are theirs, in lower case.
const TOO_LONG_CODES = new Set([
  "context_length_exceeded",
  "context_overflow",
  "exceed_context_size_error",
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
/** Sizes in the words of Anthropic, OpenAI, Bedrock, Mistral, vLLM, Ollama, xAI, llama.cpp and Gemini. */
const TOO_LONG_TEXT =
  /prompt is too long|input is too long|too many (?:input )?tokens|(?:maximum|max) (?:context|prompt length)|context (?:window|length|size)|exceeds? the (?:maximum|max)[a-z ]{0,40} tokens|input validation error: `inputs` (?:tokens \+|must have less than)/i;
// Gemini's clients throw its words without a status. Nobody else's do, so these alone are enough.
const TOO_LONG_WITHOUT_STATUS = /input token count \(?[\d,]*\)? ?exceeds the maximum number of tokens/i;
// A service may repeat the whole request in its message, after its own words.
const MESSAGE_START = 2000;

/** Why a request failed, as far as a client's error says. */
export interface Failure {
  reason: UnavailableReason;
  /** The HTTP status, if there was one. */
  status: number | undefined;
}

/** Reads a reason and a status out of the error of an SDK, of LangChain or of the network. */
export function failureOf(error: unknown): Failure {
  const { status } = errorFacts(error);
  return { reason: reasonOf(errorLayers(error), status), status };
}

function reasonOf(layers: readonly object[], status: number | undefined): UnavailableReason {
  const codes = new Set(layers.flatMap((layer) => [...codesOf(layer)]));
  const has = (known: ReadonlySet<string>) => [...codes].some((code) => known.has(code));
  if (layers.some((layer) => ModelRefusalError.isInstance(layer)) || has(REFUSED_CODES)) return "refused";
  if (layers.some((layer) => ContextOverflowError.isInstance(layer)) || has(TOO_LONG_CODES)) {
    return "input_too_long";
  }
  if (status === 413) return "input_too_long";
  const text = status === undefined ? TOO_LONG_WITHOUT_STATUS : TOO_LONG_TEXT;
  if ((status === undefined || SIZE_STATUSES.has(status)) && layers.some((layer) => says(layer, text))) {
    return "input_too_long";
  }
  return status === undefined && has(TIMEOUT_CODES) ? "timeout" : "error";
}

/** Names and codes of an error and of the body that it carries, in lower case. */
function* codesOf(layer: object): Generator<string> {
  // An SDK may leave `name` as it is and tell its errors apart by class alone.
  const className = readField(readField(layer, "constructor"), "name");
  if (typeof className === "string") yield className.toLowerCase();
  yield* codesIn(layer, 0);
}

function* codesIn(value: unknown, depth: number): Generator<string> {
  if (depth > 2) return;
  for (const name of ["name", "code", "type", "lc_error_code"]) {
    const code = readField(value, name);
    if (typeof code === "string") yield code.toLowerCase();
  }
  for (const name of ["error", "body", "detail"]) yield* codesIn(readField(value, name), depth + 1);
}

function says(layer: object, text: RegExp): boolean {
  return [readField(layer, "message"), readField(layer, "error")].some(
    (message) => typeof message === "string" && text.test(message.slice(0, MESSAGE_START)),
  );
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

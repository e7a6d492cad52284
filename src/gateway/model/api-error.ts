import { ContextOverflowError } from "@langchain/core/errors";
import { errorFacts, errorLayers, googleDetails, readField, retryAfterOf } from "../../error-facts.js";

/** An error in the words of Anthropic's messages API. Its message is for the client that sent the request. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** Anthropic's name of this kind of error. */
  readonly type: string;
  /** When the client may try again, as the provider's own header said it. */
  readonly retryAfter: string | undefined;

  constructor(
    status: number,
    message: string,
    options: { retryAfter?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : {});
    this.status = status;
    this.type = errorType(status);
    this.retryAfter = options.retryAfter;
  }

  /** The error as the body of a reply, and as the data of a stream's `error` event. */
  toJSON(): { type: "error"; error: { type: string; message: string } } {
    return { type: "error", error: { type: this.type, message: this.message } };
  }

  toResponse(): Response {
    const response = Response.json(this, { status: this.status });
    if (this.retryAfter !== undefined) response.headers.set("retry-after", this.retryAfter);
    return response;
  }
}

function errorType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
    case 529:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

// Long enough for what providers say of a request, too short to hold much of it.
const MAX_CHARS = 500;
// Claude Code compacts the conversation when an error begins with these words.
const TOO_LONG = "prompt is too long";
const SAYS_TOO_LONG =
  /prompt is too long|context[ _](?:length|window)|maximum context|input token count|input tokens exceed/i;

/**
 * What the client reads about a model's failure: an error of Anthropic's messages API with the provider's status.
 *
 * The provider's own words are passed on only where it refuses the request itself: they are about what this
 * client sent, and say what to change. Everything else (keys, quotas, models, outages) is between the gateway and
 * the provider, whose text may name an account or a part of a key: there a sentence of our own says what is known.
 *
 * @param hasStarted whether the model had begun to answer
 */
export function toApiError(error: unknown, hasStarted: boolean): ApiError {
  if (error instanceof ApiError) return error;
  const layers = errorLayers(error);
  const status = errorFacts(error).status;
  const words = wordsOf(layers);
  const options = { retryAfter: retryAfterOf(error), cause: error };
  const isRefused = status === 400 || status === 413 || status === 422;
  if (
    layers.some((layer) => ContextOverflowError.isInstance(layer)) ||
    (isRefused && SAYS_TOO_LONG.test(words))
  )
    return new ApiError(
      400,
      words.toLowerCase().startsWith(TOO_LONG) ? words : `${TOO_LONG}: ${words}`,
      options,
    );
  if (status === undefined) return withoutStatus(error, words, hasStarted, options);
  if (isRefused && layers.some((layer) => isWrongGoogleKey(layer)))
    return new ApiError(401, sentenceFor(401), options);
  if (isRefused) {
    const said = words === "" ? "" : `: ${words}`;
    return new ApiError(
      status === 413 ? 413 : 400,
      `The model's service refused the request${said}`,
      options,
    );
  }
  const own = ownStatus(status);
  return new ApiError(own, sentenceFor(own), options);
}

function withoutStatus(
  error: unknown,
  words: string,
  hasStarted: boolean,
  options: { cause: unknown },
): ApiError {
  if (readField(error, "name") === "TimeoutError")
    return new ApiError(504, "The model's service did not answer in time.", options);
  // Before anything is sent, LangChain's packages throw plain errors for what they cannot translate.
  if (!hasStarted && isPlainError(error))
    return new ApiError(400, `The model's LangChain package refused the request: ${words}`, options);
  const sentence = hasStarted
    ? "The model's service broke off its reply."
    : "The model gave no answer: its service could not be reached, or its package failed.";
  return new ApiError(502, sentence, options);
}

function isPlainError(error: unknown): boolean {
  const isRefusal =
    error instanceof Error &&
    ((Object.getPrototypeOf(error) === Error.prototype && error.name === "Error") ||
      /^(?:InvalidInput|InvalidTool|ToolCallNotFound)Error$/.test(error.name));
  return isRefusal && error.cause === undefined && errorFacts(error).errorCode === undefined;
}

/** The status that a client of Anthropic's messages API knows what to do with. */
function ownStatus(status: number): number {
  switch (status) {
    // No credit left.
    case 402:
      return 403;
    case 401:
    case 403:
    case 404:
    case 429:
      return status;
    case 408:
      return 504;
    default:
      // A redirect, or a client error that is not the client's: the gateway's own request was wrong.
      return status >= 500 ? status : 500;
  }
}

function sentenceFor(status: number): string {
  switch (status) {
    case 401:
      return "The model's service did not accept the gateway's key.";
    case 403:
      return "The model's service does not allow the gateway this request.";
    case 404:
      return "The model's service does not know the model that the gateway asks for.";
    case 429:
      return "The model's service limits the rate of requests.";
    case 503:
    case 529:
      return "The model's service is overloaded.";
    default:
      return `The model's service failed with status ${status}.`;
  }
}

/** What the provider says is wrong, without what SDKs put around it. */
function wordsOf(layers: readonly object[]): string {
  const said = layers.flatMap((layer) => {
    const body = readField(layer, "error");
    const data = readField(layer, "data");
    return [
      readField(readField(body, "error"), "message"),
      readField(body, "message"),
      readField(readField(data, "error"), "message"),
      readField(layer, "message"),
    ];
  });
  const first = said.find((value) => typeof value === "string" && value !== "");
  if (typeof first !== "string") return "";
  const words = first
    .split("\n\nTroubleshooting URL:", 1)[0]!
    .replace(/^\[GoogleGenerativeAI Error\]: (?:Error fetching from \S+ \[\d+ [^\]]*\] )?/, "")
    .replace(/ \[(?:\{.*\})?\]$/s, "")
    .replaceAll(/\s+/g, " ")
    .trim();
  return words.length > MAX_CHARS ? `${words.slice(0, MAX_CHARS)}…` : words;
}

function isWrongGoogleKey(layer: object): boolean {
  return googleDetails(layer).some((detail) => readField(detail, "reason") === "API_KEY_INVALID");
}

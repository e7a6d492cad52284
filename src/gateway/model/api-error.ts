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

import { GraphInterrupt } from "@langchain/langgraph";
import { ClassificationError, ConfigurationError } from "langchain-auto-mode";
import { describe, expect, test } from "vitest";
import { classificationFailure, failureOf } from "../../src/classifiers/failure.js";

const error = (fields: object, message = "oops") => Object.assign(new Error(message), fields);
class APIConnectionTimeoutError extends Error {}

describe("the reason of a client's error", () => {
  test.each([
    ["error", error({ status: 400, code: "bad_request" })],
    ["error", error({ status: 429, code: "rate_limit" }, "maximum context length of your plan")],
    ["error", error({ status: 500 }, "prompt is too long")],
    ["error", error({}, "prompt is too long")],
    ["input_too_long", error({ status: 400 }, "Input is too long for requested model.")],
    [
      "input_too_long",
      error({ status: 400 }, "The input token count exceeds the maximum number of tokens allowed."),
    ],
    ["input_too_long", error({ status: 422 }, "too many tokens: 9000")],
    [
      "input_too_long",
      error(
        { name: "ValidationException", $metadata: { httpStatusCode: 400 } },
        "Input is too long for requested model.",
      ),
    ],
    ["error", error({ name: "ValidationException", $metadata: { httpStatusCode: 400 } }, "Malformed input.")],
    [
      "input_too_long",
      error(
        { status: 400 },
        "This model's maximum prompt length is 131072 but the request contains 190000 tokens.",
      ),
    ],
    ["input_too_long", error({ status: 400, error: { type: "exceed_context_size_error" } })],
    [
      "input_too_long",
      error({ status: 400 }, "the request exceeds the available context size, try increasing it"),
    ],
    [
      "input_too_long",
      error(
        { status: 422 },
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000",
      ),
    ],
    [
      "input_too_long",
      error({ status: 422 }, "Input validation error: `inputs` must have less than 4095 tokens. Given: 9000"),
    ],
    [
      "input_too_long",
      error({ status: 422, error: "Input validation error: `inputs` must have less than 4095 tokens." }),
    ],
    ["error", error({ status: 422 }, "Input validation error: `temperature` must be positive")],
    [
      "input_too_long",
      error({}, "The input token count (1300000) exceeds the maximum number of tokens allowed (1048576)."),
    ],
    [
      "input_too_long",
      error(
        {},
        "[400 Bad Request] The input token count exceeds the maximum number of tokens allowed 1048576.",
      ),
    ],
    ["input_too_long", error({ status: 413 })],
    ["input_too_long", error({ statusCode: 413 })],
    ["input_too_long", error({ status: 500, error: { type: "request_too_large" } })],
    ["input_too_long", error({ body: { error: { code: "context_length_exceeded" } } })],
    ["input_too_long", error({ lc_error_code: "CONTEXT_OVERFLOW" })],
    ["input_too_long", error({ cause: error({ code: "max_tokens_exceeded" }) })],
    ["refused", error({ status: 400, code: "content_filter" })],
    ["refused", error({ status: 400, error: { error: { code: "content_policy_violation" } } })],
    ["timeout", new APIConnectionTimeoutError("Request timed out.")],
    ["timeout", error({ cause: error({ code: "UND_ERR_HEADERS_TIMEOUT" }) })],
    ["timeout", error({ code: "ETIMEDOUT" })],
    ["error", error({ status: 408, code: "ETIMEDOUT" })],
    ["error", error({ code: "ECONNREFUSED" })],
    ["error", "down"],
    ["error", undefined],
    ["error", null],
    ["error", Object.create(null)],
  ])("%s: %o", (reason, thrown) => {
    expect(failureOf(thrown).reason).toBe(reason);
  });

  test.each([
    [503, error({ status: 503 })],
    [503, error({ cause: error({ status: 503 }) })],
    [404, error({ statusCode: 404 })],
    [undefined, error({ status: 0 })],
    [undefined, error({ status: "503" })],
    [undefined, error({ status: 7 })],
    [undefined, error({})],
  ])("status %o", (status, thrown) => {
    expect(failureOf(thrown).status).toBe(status);
  });

  test("a message of any length takes little work", () => {
    const text = "exceeds the maximum ".repeat(100_000);
    expect(failureOf(error({ status: 400 }, text)).reason).toBe("error");
    expect(failureOf(error({ status: 400 }, `prompt is too long: ${text}`)).reason).toBe("input_too_long");
  });

  test("an error that causes itself ends", () => {
    const loop = error({});
    loop.cause = loop;
    expect(failureOf(loop)).toEqual({ reason: "error", status: undefined });
  });
});

describe("what is thrown for it", () => {
  const context = { signal: undefined, secrets: [] };

  test("a classification error with the client's own error as cause", () => {
    const cause = error({ status: 503 }, "the client's words");
    const thrown = classificationFailure(cause, context) as ClassificationError;
    expect([thrown.reason, thrown.status, thrown.cause]).toEqual(["error", 503, cause]);
    expect(thrown.message).not.toContain("words");
  });

  test("the same error, if it already says why", () => {
    const known = new ClassificationError("refused");
    expect(classificationFailure(known, context)).toBe(known);
    expect(classificationFailure(new Error("wrapped", { cause: known }), context)).toBe(known);
  });

  test("no failure: the caller's abort, the graph's own control flow, a wrong configuration", () => {
    const stop = new Error("stop");
    const wrong = new ConfigurationError("model", "is wrong");
    const interrupt = new GraphInterrupt([]);
    expect(classificationFailure(new Error("x"), { signal: AbortSignal.abort(stop), secrets: [] })).toBe(
      stop,
    );
    expect(classificationFailure(interrupt, context)).toBe(interrupt);
    expect(classificationFailure(wrong, context)).toBe(wrong);
  });
});

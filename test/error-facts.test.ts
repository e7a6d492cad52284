import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ClassificationError } from "langchain-auto-mode";
import fc from "fast-check";
import { expect, test } from "vitest";
import { errorFacts, errorLayers } from "../src/error-facts.js";

const failure = (fields: object, cause?: unknown): Error =>
  Object.assign(new Error("text", { cause }), fields);

test.each<[string, unknown, object]>([
  [
    "an SDK's status and code",
    failure({ status: 429, code: "rate_limit_exceeded" }),
    { status: 429, errorCode: "rate_limit_exceeded" },
  ],
  [
    "a code in the body of the answer",
    failure({ status: 400, error: { type: "error", error: { type: "overloaded_error" } } }),
    { status: 400, errorCode: "overloaded_error" },
  ],
  [
    "AWS's metadata and name",
    failure({ name: "ThrottlingException", $metadata: { httpStatusCode: 429 } }),
    { status: 429, errorCode: "ThrottlingException" },
  ],
  ["the status of Ollama's client", failure({ status_code: 404 }), { status: 404 }],
  ["a response's status", failure({ response: { status: 503 } }), { status: 503 }],
  [
    "a code of the network below a client's error",
    failure({}, failure({}, failure({ code: "ENOTFOUND" }))),
    { errorCode: "ENOTFOUND" },
  ],
  [
    "LangChain's own code if there is no other",
    failure({ lc_error_code: "MODEL_NOT_FOUND" }),
    { errorCode: "MODEL_NOT_FOUND" },
  ],
  [
    "the provider's code before LangChain's",
    failure({ lc_error_code: "MODEL_NOT_FOUND" }, failure({ code: "no_model" })),
    { errorCode: "no_model" },
  ],
  [
    "the cause of our own error, not its class",
    new ClassificationError("error", { cause: failure({ code: "not_json" }) }),
    { errorCode: "not_json" },
  ],
  ["the status of our own error", new ClassificationError("error", { status: 502 }), { status: 502 }],
  ["nothing of a plain error", new Error("secret text"), {}],
  ["nothing of no error", undefined, {}],
])("reads %s", (_what, error, facts) => {
  expect(errorFacts(error)).toEqual(facts);
});

test("reads what a failed fetch leaves, through the list of connection attempts", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  const error: unknown = await fetch(`http://localhost:${port}/`).catch((caught: unknown) => caught);
  expect(errorFacts(error)).toEqual({ errorCode: "ECONNREFUSED" });
  const attempts = new AggregateError([failure({ code: "ECONNREFUSED" }), failure({ code: "ETIMEDOUT" })]);
  expect(errorFacts(new TypeError("fetch failed", { cause: attempts }))).toEqual({
    errorCode: "ECONNREFUSED",
  });
});

test.each([
  ["a text", "the key sk-12345 is wrong"],
  ["a long token", "a".repeat(65)],
  ["an empty text", ""],
  ["a number", 23],
  ["an object", {}],
  ["a code of our own error classes", "AUTO_MODE_CLASSIFICATION"],
])("%s is no code", (_what, code) => {
  expect(errorFacts({ code })).toEqual({});
});

test.each([0, 99, 600, 400.5, "400", NaN])("%s is no status", (status) => {
  expect(errorFacts({ status })).toEqual({});
});

test("getters that throw, circles and endless causes do no harm", () => {
  const throwing = {
    get status(): number {
      throw new Error("no");
    },
    get cause(): unknown {
      throw new Error("no");
    },
    code: "EPIPE",
  };
  expect(errorFacts(throwing)).toEqual({ errorCode: "EPIPE" });
  const circle: { cause?: unknown; errors?: unknown } = {};
  circle.cause = circle;
  circle.errors = [circle];
  expect(errorFacts(circle)).toEqual({});
  const endless = {
    get cause(): unknown {
      return { ...Object.getOwnPropertyDescriptors(endless), errors: Array.from({ length: 99 }, () => ({})) };
    },
  };
  expect(errorLayers(endless).length).toBeLessThanOrEqual(32);
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  expect(errorFacts(failure({ errors: proxy }, proxy))).toEqual({});
});

test("whatever the error is, the facts are a status in range and a short token", () => {
  fc.assert(
    fc.property(fc.anything(), fc.anything(), fc.anything(), (status, code, cause) => {
      const { status: found = 200, errorCode = "code", ...others } = errorFacts({ status, code, cause });
      expect(found).toBeGreaterThanOrEqual(100);
      expect(found).toBeLessThanOrEqual(599);
      expect(errorCode).toMatch(/^[\w.-]{1,64}$/);
      expect(others).toEqual({});
    }),
  );
});

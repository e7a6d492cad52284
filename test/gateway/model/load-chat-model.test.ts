import { ConfigurationError } from "langchain-auto-mode";
import { http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { loadChatModel } from "../../../src/gateway/model/load-chat-model.js";
import type { Json } from "../messages.js";
import { ASKED, post } from "./asking.js";
import { wires } from "./provider-wires.js";

const bodies: Json[] = [];
const server = setupServer();
beforeAll(() => server.listen({ onUnhandledRequest: "error" }));
beforeEach(() => {
  vi.stubEnv("OPENAI_API_KEY", "sk-provider");
  vi.stubEnv("OPENAI_BASE_URL", "http://models.test/v1");
  vi.stubEnv("OLLAMA_BASE_URL", "http://models.test");
});
afterEach(() => {
  server.resetHandlers();
  bodies.length = 0;
  vi.unstubAllEnvs();
});
afterAll(() => server.close());

/** Sends one request through a model that was loaded by its name, and gives what the provider got. */
async function sentBy(name: string, wire: string, fields: Json = {}, answer?: Response) {
  const { url, ...provider } = wires[wire]!;
  server.use(
    http.post(url, async ({ request }) => {
      bodies.push((await request.json()) as Json);
      return answer ?? provider.reply({ texts: ["Hi."] });
    }),
  );
  const { status } = await post(await loadChatModel(name), { ...ASKED, ...fields });
  return { status, body: bodies[0] };
}

describe("a model that is loaded by its name", () => {
  test("brings the request's limit and sampling, in its provider's words", async () => {
    const fields = { temperature: 0.25, top_p: 0.5 };
    expect((await sentBy("openai:gpt-4.1-mini", "OpenAI chat completions", fields)).body).toMatchObject({
      model: "gpt-4.1-mini",
      max_tokens: 100,
      temperature: 0.25,
      top_p: 0.5,
    });
    bodies.length = 0;
    // Everything after the first colon is the model's name.
    expect((await sentBy("ollama:qwen3:8b", "Ollama", fields)).body).toMatchObject({
      model: "qwen3:8b",
      options: { num_predict: 100, temperature: 0.25, top_p: 0.5 },
    });
    bodies.length = 0;
    vi.stubEnv("GOOGLE_API_KEY", "sk-provider");
    expect((await sentBy("google:gemini-2.5-flash", "Gemini", fields)).body).toMatchObject({
      generationConfig: { maxOutputTokens: 100, temperature: 0.25, topP: 0.5 },
    });
  });

  test("asks for no more than it can write", async () => {
    const { body } = await sentBy("openai:gpt-4.1-mini", "OpenAI chat completions", { max_tokens: 64_000 });
    expect(body).toMatchObject({ max_tokens: 32_768 });
  });

  test("leaves sampling out where OpenAI's reasoning models refuse it", async () => {
    const { body } = await sentBy("openai:gpt-5-mini", "OpenAI chat completions", {
      temperature: 0,
      top_p: 0.5,
    });
    expect(body).toMatchObject({ max_completion_tokens: 100 });
    expect(Object.keys(body ?? {})).not.toContain("temperature");
    expect(Object.keys(body ?? {})).not.toContain("top_p");
  });

  test("retries nothing: the client does, and knows how long to wait", async () => {
    const limited = wires["OpenAI chat completions"]!.error(429, "slow down");
    const { status } = await sentBy("openai:gpt-4.1-mini", "OpenAI chat completions", {}, limited);
    expect(status).toBe(429);
    expect(bodies).toHaveLength(1);
  });
});

describe("loading a model", () => {
  test.each<[string, string, string]>([
    ["without a provider", "gpt-5", "expected PROVIDER:NAME"],
    ["without a name", "openai:", "expected PROVIDER:NAME"],
    ["of an unknown provider", "acme:model", "expected one of openai, anthropic"],
    [
      "whose package is missing",
      "mistralai:large",
      'needs the package @langchain/mistralai, which is not installed: run "npm install @langchain/mistralai"',
    ],
    ["of OpenAI without its key", "openai:gpt-5", "needs a key in the environment variable OPENAI_API_KEY"],
    [
      "of Anthropic without its key",
      "anthropic:claude-haiku-4-5",
      "needs a key in the environment variable ANTHROPIC_API_KEY",
    ],
    [
      "by the package that breaks processes",
      "google-genai:gemini-2.5-flash",
      "expected google:gemini-2.5-flash",
    ],
    ["whose package does not take its settings", "ollama:qwen3:8b", "could not be made: "],
  ])("%s fails at once and says what to do", async (_, name, problem) => {
    for (const variable of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]) vi.stubEnv(variable, "");
    vi.stubEnv("OLLAMA_BASE_URL", "http://[");
    const error: unknown = await loadChatModel(name).catch((reason: unknown) => reason);
    expect(ConfigurationError.isInstance(error) && error instanceof Error && error.message).toContain(
      problem,
    );
    expect(ConfigurationError.find(error)?.option).toBe("model");
  });

  test("of Ollama needs no key", async () => {
    await expect(loadChatModel("ollama:qwen3:8b")).resolves.toBeTypeOf("function");
  });
});

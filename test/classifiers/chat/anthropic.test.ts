import { ChatAnthropic } from "@langchain/anthropic";
import { ConfigurationError } from "langchain-auto-mode";
import {
  CascadeDecisionModel,
  ChatDecisionModel,
  type ChatDecisionModelOptions,
} from "langchain-auto-mode/classifiers";
import { initChatModel } from "langchain/chat_models/universal";
import { http, HttpResponse, type JsonBodyType } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { buildRequest, DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "../../../src/guard/question.js";
import { failureOf } from "../failures.js";
import { printsOf } from "../prints.js";
import { oneCall, risky } from "../questions.js";

const MESSAGES = "https://api.anthropic.com/v1/messages";
const KEY = "sk-ant-test-0123456789abcdef";
const request = { state: oneCall, questions: { call_1: risky } };

interface Block {
  type: string;
  text: string;
  cache_control?: object;
}
interface Body {
  model: string;
  max_tokens: number;
  system: string | Block[];
  messages: { role: string; content: string | Block[] }[];
  tools?: { name: string; input_schema: object }[];
  tool_choice?: object;
}
const bodies: Body[] = [];
const server = setupServer();
beforeAll(() => server.listen({ onUnhandledRequest: "error" }));
afterEach(() => {
  server.resetHandlers();
  bodies.length = 0;
  vi.unstubAllEnvs();
});
afterAll(() => server.close());

/** Answers every request in this way. */
function respond(make: () => Response | Promise<Response>) {
  server.use(
    http.post(MESSAGES, async ({ request: sent }) => {
      bodies.push((await sent.json()) as Body);
      return make();
    }),
  );
}

function message(content: object[], fields: object = {}): Response {
  return HttpResponse.json({
    id: "msg_01",
    type: "message",
    role: "assistant",
    model: "claude-haiku-4-5-20251001",
    content,
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 100, output_tokens: 20 },
    ...fields,
  });
}
const answer = (risk: number) => message([{ type: "text", text: `{"explanation":"a","call_1":${risk}}` }]);
const failing = (status: number, body: JsonBodyType, headers: Record<string, string> = {}) =>
  HttpResponse.json(body, { status, headers });

const structuredCall = (input: object) =>
  message([{ type: "tool_use", id: "t", name: "answers", input }], { stop_reason: "tool_use" });

function classifier(options: Omit<ChatDecisionModelOptions, "model"> = {}) {
  const model = new ChatAnthropic({ model: "claude-haiku-4-5", apiKey: KEY, maxTokens: 4000 });
  return new ChatDecisionModel({ model, ...options });
}

describe("on the wire of a real chat model", () => {
  test("a reply becomes an answer with usage, model and id", async () => {
    respond(() => answer(0.75));
    const response = await classifier().invoke(request);
    expect(response).toMatchObject({
      model: "claude-haiku-4-5-20251001",
      requestId: "msg_01",
      answers: { call_1: { type: "noul", noul: 0.75, explanation: "a" } },
      usage_metadata: { input_tokens: 100, output_tokens: 20, total_tokens: 120 },
    });
    expect(bodies[0]!.messages.map(({ role }) => role)).toEqual(["user"]);
    expect(JSON.stringify(bodies[0]!.system)).toContain("You are a decision model");
  });

  test("thinking blocks are skipped", async () => {
    respond(() =>
      message([
        { type: "thinking", thinking: '{"call_1":0}', signature: "s" },
        { type: "text", text: '{"explanation":"a","call_1":0.9}' },
      ]),
    );
    expect((await classifier().invoke(request)).nouls.call_1.noul).toBe(0.9);
  });

  test.each([
    ["refused", { stop_reason: "refusal" }],
    ["truncated", { stop_reason: "max_tokens" }],
    ["truncated", { stop_reason: "model_context_window_exceeded" }],
  ])("%s by stop reason %o", async (reason, fields) => {
    respond(() => message([{ type: "text", text: '{"call_1":0}' }], fields));
    expect((await failureOf(classifier().invoke(request))).reason).toBe(reason);
  });

  test.each([
    [400, "invalid_request_error", "temperature is deprecated", "error"],
    [400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum", "input_too_long"],
    [401, "authentication_error", "invalid x-api-key", "error"],
    [403, "permission_error", "not allowed", "error"],
    [404, "not_found_error", "model: x", "error"],
    [413, "request_too_large", "Request exceeds the maximum size", "input_too_long"],
    [429, "rate_limit_error", "prompt is too long for your quota", "error"],
    [500, "api_error", "oops", "error"],
    [529, "overloaded_error", "busy", "error"],
  ])("HTTP %i %s, %s: %s after one request", async (status, type, text, reason) => {
    respond(() => failing(status, { type: "error", error: { type, message: text } }));
    const error = await failureOf(classifier().invoke(request));
    expect([error.reason, error.status, bodies.length]).toEqual([reason, status, 1]);
    expect(error.message).not.toContain(text);
  });

  test("a failed request is repeated if that is asked for", async () => {
    respond(() => (bodies.length === 1 ? new HttpResponse(null, { status: 500 }) : answer(0.5)));
    expect((await classifier({ maxRetries: 1 }).invoke(request)).nouls.call_1.noul).toBe(0.5);
  });

  test.each([
    ["no body", () => new HttpResponse(null, { status: 200 })],
    ["a body that is no message", () => HttpResponse.json({ ok: true })],
    ["a body of another kind", () => HttpResponse.json([1, 2])],
    [
      "half a body",
      () => new HttpResponse('{"content":[{"ty', { headers: { "content-type": "application/json" } }),
    ],
    ["no content", () => message([])],
  ])("200 with %s is an error", async (_, make) => {
    respond(make);
    expect((await failureOf(classifier().invoke(request))).reason).toBe("error");
  });

  test("structured output uses the model's own, and is checked", async () => {
    respond(() =>
      structuredCall(
        bodies.length === 1 ? { explanation: "a", call_1: 0.5 } : { explanation: "a", call_1: "low" },
      ),
    );
    const structured = classifier({ structuredOutput: true });
    expect((await structured.invoke(request)).answers.call_1).toEqual({
      type: "noul",
      noul: 0.5,
      explanation: "a",
    });
    expect(bodies[0]!.tools).toMatchObject([
      { name: "answers", input_schema: { required: ["explanation", "call_1"], additionalProperties: false } },
    ]);
    expect((await failureOf(structured.invoke(request))).reason).toBe("error");
  });

  test.each([
    ["refused", { stop_reason: "refusal" }],
    ["truncated", { stop_reason: "max_tokens" }],
  ])("structured output that is %s", async (reason, fields) => {
    respond(() => message([{ type: "text", text: "I" }], fields));
    expect((await failureOf(classifier({ structuredOutput: true }).invoke(request))).reason).toBe(reason);
  });
});

describe("the token limit", () => {
  test("a model given as an object keeps its own", async () => {
    respond(() => answer(0));
    await classifier().invoke(request);
    expect(bodies[0]!.max_tokens).toBe(4000);
  });

  test("one that is asked for holds for the classifier alone", async () => {
    respond(() => answer(0));
    const model = new ChatAnthropic({ model: "claude-haiku-4-5", apiKey: KEY, maxTokens: 4000 });
    await new ChatDecisionModel({ model, maxTokens: 300 }).invoke(request);
    await model.invoke("hello");
    expect(bodies.map((body) => body.max_tokens)).toEqual([300, 4000]);
  });

  test("one that is asked for reaches a model that another wraps", async () => {
    respond(() => answer(0));
    const model = await initChatModel("anthropic:claude-haiku-4-5", { apiKey: KEY });
    await new ChatDecisionModel({ model, maxTokens: 300 }).invoke(request);
    expect(bodies[0]!.max_tokens).toBe(300);
  });
});

describe("a model given by name", () => {
  test("is made with a limit of 1024 tokens and asked once", async () => {
    vi.stubEnv("ANTHROPIC_API_KEY", KEY);
    respond(() => (bodies.length === 1 ? answer(0.5) : failing(500, {})));
    const named = new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" });
    expect((await named.invoke(request)).nouls.call_1.noul).toBe(0.5);
    expect(bodies[0]).toMatchObject({ model: "claude-haiku-4-5", max_tokens: 1024 });
    expect((await failureOf(named.invoke(request))).status).toBe(500);
    expect(bodies).toHaveLength(2);
    expect(named.model).toBe("anthropic:claude-haiku-4-5");
  });

  test("that cannot be made is a configuration error, until it can", async () => {
    vi.stubEnv("ANTHROPIC_API_KEY", "");
    const named = new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" });
    await expect(named.invoke(request)).rejects.toThrow(ConfigurationError);
    vi.stubEnv("ANTHROPIC_API_KEY", KEY);
    respond(() => answer(0.5));
    expect((await named.invoke(request)).nouls.call_1.noul).toBe(0.5);
  });

  test("of a provider whose package is missing is a configuration error that says which in its cause", async () => {
    const error: unknown = await new ChatDecisionModel({ model: "mistralai:large" })
      .invoke(request)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(String((error as Error).cause)).toContain("@langchain/mistralai");
  });
});

describe("the key appears nowhere", () => {
  test("not in the model's prints", () => {
    expect(printsOf(classifier())).not.toContain(KEY);
    expect(printsOf(classifier({ maxTokens: 300 }))).not.toContain(KEY);
  });

  test("not in an error whose response echoes the request's headers", async () => {
    respond(() =>
      failing(
        401,
        {
          type: "error",
          error: { type: "authentication_error", message: `bad key ${KEY}` },
          headers: { "x-api-key": KEY },
        },
        { "x-echo": KEY },
      ),
    );
    const error = await failureOf(classifier().invoke(request));
    expect(error.status).toBe(401);
    expect(printsOf(error)).toContain("bad key [hidden]");
    expect(printsOf(error)).not.toContain(KEY);
  });
});

test("a stalled body ends with the caller's signal, which is no failure", async () => {
  const abort = new AbortController();
  const stop = new Error("The user pressed stop.");
  respond(() => {
    setTimeout(() => abort.abort(stop));
    return new HttpResponse(
      new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode("{")) }),
      {
        headers: { "content-type": "application/json" },
      },
    );
  });
  await expect(classifier().invoke(request, { signal: abort.signal })).rejects.toBe(stop);
});

/** A request of a step after so many entries. */
const step = (entries: number) => ({
  state: {
    transcript: Array.from({ length: entries }, (_, index) => ({
      from: "tool_call",
      name: "read_file",
      args: { path: `build/part-${index}.o` },
    })),
    tool_calls: { call_1: { name: "delete_file", args: { path: `build/part-${entries}.o` } } },
  },
  questions: { call_1: risky },
});

const blocksOf = ({ system, messages }: Body): Block[] =>
  [system, messages[0]!.content].flatMap((content) =>
    typeof content === "string" ? { type: "text", text: content } : content,
  );

const textOf = (content: string | Block[]) =>
  typeof content === "string" ? content : content.map(({ text }) => text).join("");

const textsOf = (body: Body) => blocksOf(body).map(({ text }) => text);

const ask = async (entries: number, options: Omit<ChatDecisionModelOptions, "model"> = {}) => {
  respond(() => answer(0));
  await classifier(options).invoke(step(entries));
  return bodies.at(-1)!;
};

const marksOf = (body: Body) =>
  blocksOf(body).flatMap((block, index) => (block.cache_control === undefined ? [] : index));

describe("the marks for the cache", () => {
  test.each([0, 1, 30, 200])(
    "stand on the rules and the end of the transcript: %i entries",
    async (entries) => {
      const body = await ask(entries);
      const blocks = blocksOf(body);
      const marks = marksOf(body);
      // The rules, the start of the state, the entries, the request.
      expect(blocks).toHaveLength(entries + 3);
      expect(marks).toContain(0);
      expect(marks.at(-1)).toBe(blocks.length - 2);
      expect(marks.length).toBeLessThanOrEqual(4);
      for (const mark of marks) expect(blocks[mark]!.cache_control).toEqual({ type: "ephemeral" });
      for (const { text } of blocks) expect(text.trim()).not.toBe("");
      expect(blocks.at(-1)!.text).toMatch(/^<\/transcript>\n/);
    },
  );

  test("change no letter of the prompt", async () => {
    const [marked, plain] = [await ask(30), await ask(30, { promptCaching: false })];
    expect(typeof plain.system).toBe("string");
    expect(JSON.stringify(plain)).not.toContain("cache_control");
    expect(textOf(marked.system)).toBe(plain.system);
    expect(textOf(marked.messages[0]!.content)).toBe(plain.messages[0]!.content);
  });

  test.each([1, 2, 20, 50])(
    "let a request find what the one before wrote, %i entries earlier",
    async (added) => {
      const [before, after] = [await ask(60), await ask(60 + added)];
      const end = marksOf(before).at(-1)!;
      expect(textsOf(after).slice(0, end + 1)).toEqual(textsOf(before).slice(0, end + 1));
      // Anthropic looks back over 20 blocks from each mark.
      expect(marksOf(after).some((mark) => mark >= end && mark - end < 20)).toBe(true);
    },
  );

  test("are never sent where another provider may get the request", async () => {
    respond(() => answer(0));
    const model = new ChatAnthropic({ model: "claude-haiku-4-5", apiKey: KEY, maxRetries: 0 });
    const fallback = new ChatAnthropic({ model: "claude-opus-4-5", apiKey: KEY, maxRetries: 0 });
    await new ChatDecisionModel({ model: model.withFallbacks([fallback]) }).invoke(request);
    await new ChatDecisionModel({ model: model.withConfig({ tags: ["judge"] }) }).invoke(request);
    expect(bodies.map((body) => JSON.stringify(body).includes("cache_control"))).toEqual([false, true]);
  });

  test("are there with structured output as well", async () => {
    respond(() => structuredCall({ explanation: "a", call_1: 0.5 }));
    await classifier({ structuredOutput: true }).invoke(request);
    expect(marksOf(bodies[0]!).length).toBeGreaterThan(1);
  });
});

describe("numbers alone", () => {
  test("are asked for without a word of explanation, with few tokens for a model given by name", async () => {
    vi.stubEnv("ANTHROPIC_API_KEY", KEY);
    respond(() => message([{ type: "text", text: '{"call_1":0.5}' }]));
    const named = new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5", explanation: false });
    expect((await named.invoke(request)).answers.call_1).toEqual({ type: "noul", noul: 0.5 });
    expect(blocksOf(bodies[0]!).at(-1)!.text).not.toContain("explanation");
    expect(bodies[0]!.max_tokens).toBe(512);
  });

  test("need no explanation in structured output", async () => {
    respond(() => structuredCall({ call_1: 0.5 }));
    await classifier({ structuredOutput: true, explanation: false }).invoke(request);
    expect(bodies[0]!.tools![0]!.input_schema).toMatchObject({ required: ["call_1"] });
  });

  test("as the first stage of a cascade share at least 90 % of the second stage's prompt", async () => {
    respond(() => answer(0.5));
    const { state, questions } = buildRequest(
      ["a.o", "b.o"].map((path) => ({
        name: "delete_file",
        args: { path },
        description: "Deletes a file.",
        instructions: DEFAULT_INSTRUCTIONS,
        criteria: DEFAULT_CRITERIA,
      })),
      { transcript: [{ from: "user", text: "Clean up." }] },
    );
    respond(() => message([{ type: "text", text: '{"explanation":"a","call_1":0.5,"call_2":0.5}' }]));
    const cascade = new CascadeDecisionModel({
      first: classifier({ explanation: false }),
      second: classifier(),
    });
    await cascade.invoke({ state, questions });
    const [first, second] = bodies.map(({ system, messages }) =>
      [system, messages[0]!.content]
        .flat()
        .map((part) => (typeof part === "string" ? part : part.text))
        .join(""),
    ) as [string, string];
    expect(first).not.toBe(second);
    let shared = 0;
    while (first[shared] === second[shared]) shared++;
    expect(shared / second.length).toBeGreaterThan(0.9);
  });
});

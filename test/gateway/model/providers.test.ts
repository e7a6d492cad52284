import Anthropic from "@anthropic-ai/sdk";
import { ChatGoogle } from "@langchain/google/node";
import { http } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Json } from "../messages.js";
import { ASKED, clientOf } from "./asking.js";
import { type Script, wires } from "./provider-wires.js";

const bodies: Json[] = [];
const server = setupServer();
beforeAll(() => server.listen({ onUnhandledRequest: "error" }));
afterEach(() => {
  server.resetHandlers();
  bodies.length = 0;
});
afterAll(() => server.close());

function respond(url: string, make: () => Response) {
  server.use(
    http.post(url, async ({ request }) => {
      bodies.push((await request.json()) as Json);
      return make();
    }),
  );
}

const tools: Anthropic.Tool[] = [
  {
    name: "Bash",
    description: "Runs a command.",
    input_schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { command: { type: "string" } },
      required: ["command"],
      additionalProperties: false,
    },
  },
  {
    name: "Read",
    description: "Reads a file.",
    input_schema: { type: "object", properties: { path: { type: "string" } } },
  },
];
const asked: Anthropic.MessageCreateParamsNonStreaming = { ...ASKED, tools };
const twoCalls: Script = {
  texts: ["I look ", "around."],
  calls: [
    { id: "call_a", name: "Bash", input: { command: "ls -la /tmp" } },
    { id: "call_b", name: "Read", input: { path: "/etc/hosts" } },
  ],
};

// A second step with all that a conversation holds: instructions, thinking, parallel calls, a failure, a picture.
const secondStep: Anthropic.MessageCreateParamsNonStreaming = {
  ...asked,
  system: [
    { type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } },
    { type: "text", text: "Be kind." },
  ],
  tool_choice: { type: "tool", name: "Read" },
  messages: [
    ...asked.messages,
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "c2ln" },
        { type: "text", text: "I look around." },
        { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } },
        { type: "tool_use", id: "toolu_2", name: "Read", input: { path: "a.png" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "toolu_1", content: "No such command", is_error: true },
        {
          type: "tool_result",
          tool_use_id: "toolu_2",
          content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } }],
        },
        { type: "text", text: "Go on." },
      ],
    },
  ],
};
const FAILED = "The tool reported an error.\nNo such command";
const ATTACHED = "(1 attached below)";
const HEADING = "Attached to the result of Read (toolu_2):";
const PICTURE = "data:image/png;base64,aGk=";

/** What of the second step each provider gets. */
const sent: Readonly<Record<string, Json>> = {
  "OpenAI chat completions": {
    messages: [
      { role: "system", content: "Be brief.\n\nBe kind." },
      { role: "user", content: "Look around." },
      {
        role: "assistant",
        content: "I look around.",
        tool_calls: [
          { id: "toolu_1", type: "function", function: { name: "Bash", arguments: '{"command":"ls"}' } },
          { id: "toolu_2", type: "function", function: { name: "Read", arguments: '{"path":"a.png"}' } },
        ],
      },
      { role: "tool", tool_call_id: "toolu_1", content: FAILED },
      { role: "tool", tool_call_id: "toolu_2", content: ATTACHED },
      {
        role: "user",
        content: [
          { type: "text", text: HEADING },
          { type: "image_url", image_url: { url: PICTURE } },
          { type: "text", text: "Go on." },
        ],
      },
    ],
    tools: [{ function: { name: "Bash" } }, { function: { name: "Read" } }],
    tool_choice: { type: "function", function: { name: "Read" } },
  },
  "OpenAI responses": {
    input: [
      { role: "system", content: "Be brief.\n\nBe kind." },
      { role: "user", content: "Look around." },
      { role: "assistant", content: "I look around." },
      { type: "function_call", call_id: "toolu_1", name: "Bash", arguments: '{"command":"ls"}' },
      { type: "function_call", call_id: "toolu_2", name: "Read", arguments: '{"path":"a.png"}' },
      { type: "function_call_output", call_id: "toolu_1", output: FAILED },
      { type: "function_call_output", call_id: "toolu_2", output: ATTACHED },
      {
        role: "user",
        content: [
          { type: "input_text", text: HEADING },
          { type: "input_image", image_url: PICTURE },
          { type: "input_text", text: "Go on." },
        ],
      },
    ],
    tools: [{ name: "Bash" }, { name: "Read" }],
    tool_choice: { type: "function", name: "Read" },
  },
  Gemini: {
    systemInstruction: { parts: [{ text: "Be brief.\n\nBe kind." }] },
    contents: [
      { role: "user", parts: [{ text: "Look around." }] },
      {
        role: "model",
        parts: [
          { text: "I look around." },
          { functionCall: { id: "toolu_1", name: "Bash", args: { command: "ls" } } },
          { functionCall: { id: "toolu_2", name: "Read", args: { path: "a.png" } } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "toolu_1", name: "Bash", response: { result: FAILED } } },
          { functionResponse: { id: "toolu_2", name: "Read", response: { result: ATTACHED } } },
        ],
      },
      {
        role: "user",
        parts: [
          { text: HEADING },
          { inlineData: { mimeType: "image/png", data: "aGk=" } },
          { text: "Go on." },
        ],
      },
    ],
    tools: [{ functionDeclarations: [{ name: "Bash" }, { name: "Read" }] }],
    toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["Read"] } },
  },
  Ollama: {
    messages: [
      { role: "system", content: "Be brief.\n\nBe kind." },
      { role: "user", content: "Look around." },
      {
        role: "assistant",
        content: "I look around.",
        tool_calls: [
          { id: "toolu_1", function: { name: "Bash", arguments: { command: "ls" } } },
          { id: "toolu_2", function: { name: "Read", arguments: { path: "a.png" } } },
        ],
      },
      { role: "tool", content: FAILED },
      { role: "tool", content: ATTACHED },
      { role: "user", content: HEADING },
      { role: "user", content: "", images: ["aGk="] },
      { role: "user", content: "Go on." },
    ],
    tools: [{ function: { name: "Bash" } }, { function: { name: "Read" } }],
  },
  Anthropic: {
    system: "Be brief.\n\nBe kind.",
    messages: [
      { role: "user", content: "Look around." },
      {
        role: "assistant",
        content: [
          { type: "text", text: "I look around." },
          { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } },
          { type: "tool_use", id: "toolu_2", name: "Read", input: { path: "a.png" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: FAILED },
          { type: "tool_result", tool_use_id: "toolu_2", content: ATTACHED },
        ],
      },
      {
        role: "user",
        content: [
          { type: "text", text: HEADING },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
          { type: "text", text: "Go on." },
        ],
      },
    ],
    tools: [{ name: "Bash" }, { name: "Read" }],
    tool_choice: { type: "tool", name: "Read" },
  },
};

describe.each(Object.entries(wires))("%s", (name, wire) => {
  let client: Anthropic;
  beforeEach(() => {
    client = clientOf(wire.make());
  });

  test("text and parallel calls arrive, streamed and not, with the usage", async () => {
    respond(wire.url, () => wire.reply(twoCalls));
    const streamed = await client.messages.stream(asked).finalMessage();
    const whole = await client.messages.create(asked);
    for (const message of [streamed, whole]) {
      expect(message).toMatchObject({
        type: "message",
        role: "assistant",
        model: "model-a",
        stop_reason: "tool_use",
        stop_sequence: null,
        content: [
          { type: "text", text: "I look around." },
          { type: "tool_use", id: wire.ids[0], name: "Bash", input: { command: "ls -la /tmp" } },
          { type: "tool_use", id: wire.ids[1], name: "Read", input: { path: "/etc/hosts" } },
        ],
        usage: { input_tokens: 20, output_tokens: 7 },
      });
      const ids = message.content.map((block) => (block.type === "tool_use" ? block.id : block.type));
      expect(new Set(ids).size).toBe(3);
    }
  });

  test("the whole conversation reaches the model: results with their calls, pictures, the choice of a tool", async () => {
    respond(wire.url, () => wire.reply({ texts: ["Done."] }));
    expect(await client.messages.create(secondStep)).toMatchObject({
      stop_reason: "end_turn",
      content: [{ type: "text", text: "Done." }],
    });
    expect(bodies[0]).toMatchObject(sent[name] ?? {});
    expect(JSON.stringify(bodies[0])).not.toMatch(/Hm\.|cache_control|\$schema/);
  });

  test("a call and its result come back as the client got them", async () => {
    respond(wire.url, () => wire.reply(twoCalls));
    const { content } = await client.messages.create(asked);
    const results = content.flatMap((block) =>
      block.type === "tool_use"
        ? [{ type: "tool_result" as const, tool_use_id: block.id, content: `of ${block.name}` }]
        : [],
    );
    respond(wire.url, () => wire.reply({ texts: ["Done."] }));
    const turns = [{ role: "assistant", content } as const, { role: "user", content: results } as const];
    const done = await client.messages.create({ ...asked, messages: [...asked.messages, ...turns] });
    expect(done.stop_reason).toBe("end_turn");
    expect(JSON.stringify(bodies[1])).toMatch(/ls -la.*etc\/hosts.*of Bash.*of Read/);
  });

  test("a reply that reached its limit says so", async () => {
    respond(wire.url, () => wire.reply({ texts: ["Half a"], end: "limit" }));
    expect((await client.messages.create(asked)).stop_reason).toBe("max_tokens");
  });

  // Ollama has no filter.
  test.skipIf(name === "Ollama")("a reply that was filtered says so", async () => {
    respond(wire.url, () => wire.reply({ texts: ["I"], end: "filtered" }));
    expect((await client.messages.create(asked)).stop_reason).toBe("refusal");
  });

  test.each([
    [400, 400, "invalid_request_error"],
    [401, 401, "authentication_error"],
    [402, 403, "permission_error"],
    [403, 403, "permission_error"],
    [404, 404, "not_found_error"],
    [413, 413, "request_too_large"],
    [429, 429, "rate_limit_error"],
    [500, 500, "api_error"],
    [503, 503, "overloaded_error"],
    [529, 529, "overloaded_error"],
  ])("status %i of the provider is %i %s, streamed and not", async (given, status, type) => {
    respond(wire.url, () => wire.error(given, "words of the provider", { "retry-after": "7" }));
    for (const stream of [false, true]) {
      const error: unknown = await client.messages
        .create({ ...asked, stream })
        .catch((reason: unknown) => reason);
      expect(error).toMatchObject({ status, error: { type: "error", error: { type } } });
      // Only what the provider says of the client's own request is passed on.
      const { message } = error as Error;
      expect(message.includes("words of the provider")).toBe(given === 400 || given === 413);
    }
  });

  // Ollama's client keeps no headers.
  test.skipIf(name === "Ollama")("the provider's retry-after reaches the client", async () => {
    respond(wire.url, () => wire.error(429, "slow down", { "retry-after": "7" }));
    const error: unknown = await client.messages.create(asked).catch((reason: unknown) => reason);
    expect(error instanceof Anthropic.APIError && error.headers?.get("retry-after")).toBe("7");
  });

  test("a provider that cannot be reached is a 502", async () => {
    respond(wire.url, () => Response.error());
    const error: unknown = await client.messages.create(asked).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 502, error: { error: { type: "api_error" } } });
  });
});

describe("Gemini alone", () => {
  const gemini = wires["Gemini"]!;
  const failing = (status: number, detail: Json) =>
    respond(gemini.url, () =>
      Response.json({ error: { code: status, message: "No.", details: [detail] } }, { status }),
    );

  test("newer models get the signature that means none, which they insist on", async () => {
    respond(gemini.url, () => gemini.reply({ texts: ["Done."] }));
    await clientOf(gemini.make({ model: "gemini-3-pro-preview" })).messages.create(secondStep);
    const signed = { thoughtSignature: "skip_thought_signature_validator" };
    expect(bodies[0]).toMatchObject({ contents: [{}, { parts: [{}, signed, signed] }, {}, {}] });
  });

  test("says in the body when to try again, and that a key is wrong", async () => {
    const client = clientOf(gemini.make());
    failing(429, { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "36.2s" });
    const limited: unknown = await client.messages.create(asked).catch((reason: unknown) => reason);
    expect(limited instanceof Anthropic.APIError && limited.headers?.get("retry-after")).toBe("37");
    failing(400, { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" });
    await expect(client.messages.create(asked)).rejects.toMatchObject({ status: 401 });
  });

  test("a conversation that is too long is reported in the words by which clients shorten it", async () => {
    const words = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).";
    respond(gemini.url, () => Response.json({ error: { code: 400, message: words } }, { status: 400 }));
    await expect(clientOf(new ChatGoogle({ model: "gemini-2.5-flash", apiKey: "k" })).messages.create(asked))
      .rejects //
      .toMatchObject({ status: 400, error: { error: { message: `prompt is too long: ${words}` } } });
  });
});

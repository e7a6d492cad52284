import { ConfigurationError } from "langchain-auto-mode";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type CallSettings, createModelUpstream } from "../../../src/gateway/model/model-upstream.js";
import { dataOf, type Json } from "../messages.js";
import { ASKED, post } from "./asking.js";
import { finished, type Piece, ScriptedChatModel } from "./scripted-chat-model.js";

const SECRET = "sk-secret-in-an-error";
const STREAMED = { ...ASKED, stream: true };
const saying = (...words: string[]): Piece[] => [...words.map((content) => ({ content })), finished()];
const ask = (body: unknown, init: RequestInit = {}) =>
  new Request("http://gateway.test/v1/messages", { method: "POST", body: JSON.stringify(body), ...init });

afterEach(() => {
  vi.useRealTimers();
});

describe("a request", () => {
  test("may carry fields that the model has no use for", async () => {
    const { status, json } = await post(new ScriptedChatModel(saying("Hi.")), {
      ...ASKED,
      thinking: { type: "enabled", budget_tokens: 1024 },
      output_config: { effort: "high" },
      context_management: { edits: [] },
      metadata: { user_id: "u" },
      safeguards: [],
      betas: ["x"],
    });
    expect([status, json["content"]]).toEqual([200, [{ type: "text", text: "Hi." }]]);
  });

  test.each<[string, unknown, string]>([
    ["no JSON", "{", "body"],
    ["no object", "7", "body"],
    ["no model", { ...ASKED, model: undefined }, "model"],
    ["no limit", { ...ASKED, max_tokens: undefined }, "max_tokens"],
    ["no messages", { ...ASKED, messages: [] }, "messages"],
    ["an unknown role", { ...ASKED, messages: [{ role: SECRET, content: "" }] }, "messages[0].role"],
    ["content of numbers", { ...ASKED, messages: [{ role: "user", content: [7] }] }, "messages[0].content"],
    ["a temperature too high", { ...ASKED, temperature: 7 }, "temperature"],
    ["an unknown choice of tools", { ...ASKED, tool_choice: { type: SECRET } }, "tool_choice.type"],
  ])("with %s is refused, and the place is named without its content", async (_, body, place) => {
    const { status, json, raw } = await post(new ScriptedChatModel([]), body);
    expect({ status, json }).toEqual({
      status: 400,
      json: {
        type: "error",
        error: { type: "invalid_request_error", message: expect.any(String) as unknown },
      },
    });
    expect(String((json["error"] as Json)["message"]).split(": ")[0]).toBe(place);
    expect(raw).not.toContain(SECRET);
  });

  test("to another path, or with another method, finds nothing", async () => {
    const model = new ScriptedChatModel([]);
    expect((await post(model, ASKED, "/v1/models")).json).toMatchObject({
      error: { type: "not_found_error" },
    });
    const response = await createModelUpstream(model)(new Request("http://gateway.test/v1/messages"));
    expect(response.status).toBe(404);
  });

  test("gets its limit and its sampling from a model that is made for it", async () => {
    const settings: CallSettings[] = [];
    const make = (given: CallSettings) => {
      settings.push(given);
      return Promise.resolve(new ScriptedChatModel(saying("Hi.")));
    };
    await post(make, { ...ASKED, temperature: 0.5, top_p: 0.9 });
    await post(make, ASKED);
    expect(settings).toEqual([{ maxTokens: 100, temperature: 0.5, topP: 0.9 }, { maxTokens: 100 }]);
  });
});

const count = async (fields: Json) => {
  const { status, json } = await post(
    new ScriptedChatModel([]),
    { ...ASKED, max_tokens: undefined, ...fields },
    "/v1/messages/count_tokens",
  );
  expect({ status, estimated: json["estimated"] }).toEqual({ status: 200, estimated: true });
  return Number(json["input_tokens"]);
};

describe("counting tokens", () => {
  test("answers an estimate that says so, and grows with the request", async () => {
    const few = await count({});
    const more = await count({ messages: [{ role: "user", content: "word ".repeat(1000) }] });
    expect(few).toBeLessThan(40);
    expect(more).toBeGreaterThan(1000);
    expect(more).toBeLessThan(1500);
    expect(await count({ tools: [{ name: "Read", input_schema: { type: "object" } }] })).toBeGreaterThan(few);
  });

  test("counts a picture once, however many bytes it has", async () => {
    const source = { type: "base64", media_type: "image/png", data: "A".repeat(100_000) };
    const tokens = await count({ messages: [{ role: "user", content: [{ type: "image", source }] }] });
    expect(tokens).toBeGreaterThan(1_600);
    expect(tokens).toBeLessThan(1_700);
  });

  test("refuses what would be refused as a message", async () => {
    const { status } = await post(new ScriptedChatModel([]), { model: "m" }, "/v1/messages/count_tokens");
    expect(status).toBe(400);
  });
});

const failing = (...pieces: Piece[]) => {
  const errors: unknown[] = [];
  const upstream = createModelUpstream(new ScriptedChatModel(pieces), {
    onError: (error) => errors.push(error),
  });
  return { errors, upstream };
};

describe("a model that fails", () => {
  test("midway ends the stream with an error, and the operator is notified", async () => {
    const cause = Object.assign(new Error(SECRET), { status: 529 });
    const { errors, upstream } = failing({ content: "Half a" }, cause);
    const response = await upstream(ask(STREAMED));
    const raw = await response.text();
    expect(response.status).toBe(200);
    expect(dataOf(raw).at(-1)).toEqual({
      type: "error",
      error: { type: "overloaded_error", message: "The model's service is overloaded." },
    });
    expect(raw).toContain("event: error\n");
    expect(raw).toContain("Half a");
    expect(raw).not.toContain("message_stop");
    expect(raw).not.toContain(SECRET);
    expect(errors).toEqual([cause]);
  });

  test("midway is a status where nothing has been sent yet", async () => {
    const { upstream } = failing({ content: "Half a" }, new Error(SECRET));
    const response = await upstream(ask(ASKED));
    expect(response.status).toBe(502);
    expect(await response.text()).not.toContain(SECRET);
  });

  test("before it begins is a status for a stream too", async () => {
    const { errors, upstream } = failing(
      Object.assign(new Error(SECRET), { status: 429, headers: { "retry-after": "3" } }),
    );
    const response = await upstream(ask(STREAMED));
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, "3"]);
    expect(await response.json()).toMatchObject({ error: { type: "rate_limit_error" } });
    expect(errors).toHaveLength(1);
  });

  test("to translate a request says why: it is the client's own", async () => {
    const { upstream } = failing(new Error("This model does not support images"));
    const response = await upstream(ask(ASKED));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: {
        message: "The model's LangChain package refused the request: This model does not support images",
      },
    });
  });

  test("in time is a 504", async () => {
    const { upstream } = failing(new DOMException("late", "TimeoutError"));
    expect((await upstream(ask(ASKED))).status).toBe(504);
  });

  test("passes on no header that is none", async () => {
    const headers = { "retry-after": "soon\r\nx-evil: 1" };
    const { upstream } = failing(Object.assign(new Error("No."), { status: 429, headers }));
    const response = await upstream(ask(ASKED));
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, null]);
  });

  test("is no concern of the operator where the request is wrong", async () => {
    const { errors, upstream } = failing();
    await upstream(ask({ ...ASKED, messages: [] }));
    expect(errors).toEqual([]);
  });
});

/** Pieces that come when they are let go. */
function held(first: Piece) {
  const going = new EventTarget();
  const waits = new Promise((resolve) => {
    going.addEventListener("go", resolve);
  });
  async function* pieces(): AsyncGenerator<Piece> {
    yield first;
    await waits;
    yield* saying("done");
  }
  return { pieces: pieces(), letGo: () => going.dispatchEvent(new Event("go")) };
}

describe("the stream to a client", () => {
  test("asks the model for no more than the client reads", async () => {
    const model = new ScriptedChatModel(saying(...Array.from({ length: 50 }, (_, at) => `word ${at} `)));
    const response = await createModelUpstream(model)(ask(STREAMED));
    const reader = response.body!.getReader();
    for (let events = 0; events < 4; events++) await reader.read();
    await new Promise((resolve) => setTimeout(resolve, 20));
    // LangChain's own streams hold a piece or two.
    expect(model.pulled).toBeLessThan(10);
    await reader.cancel();
  });

  test("stays alive while the model thinks", async () => {
    vi.useFakeTimers();
    const { pieces, letGo } = held({ content: "Well, " });
    const response = await createModelUpstream(new ScriptedChatModel(pieces))(ask(STREAMED));
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const types: string[] = [];
    for (let events = 0; events < 3; events++)
      types.push(String((await reader.read()).value?.split("\n")[0]));
    const silent = reader.read();
    await vi.advanceTimersByTimeAsync(15_000);
    types.push(String((await silent).value));
    letGo();
    types.push(String((await reader.read()).value?.split("\n")[0]));
    expect(types).toEqual([
      "event: message_start",
      "event: content_block_start",
      "event: content_block_delta",
      'event: ping\ndata: {"type":"ping"}\n\n',
      "event: content_block_delta",
    ]);
    await reader.cancel();
  });

  test("ends the model's work when the client stops reading", async () => {
    const { pieces } = held({ content: "Well, " });
    const model = new ScriptedChatModel(pieces);
    const response = await createModelUpstream(model)(ask(STREAMED));
    const reader = response.body!.getReader();
    await reader.read();
    expect(model.signal?.aborted).toBe(false);
    await reader.cancel();
    expect(model.signal?.aborted).toBe(true);
  });

  test("ends the model's work at a stop sequence", async () => {
    const { pieces } = held({ content: "Well, STOP and more" });
    const model = new ScriptedChatModel(pieces);
    const response = await createModelUpstream(model)(ask({ ...ASKED, stop_sequences: ["STOP"] }));
    expect(await response.json()).toMatchObject({ content: [{ text: "Well, " }], stop_sequence: "STOP" });
    expect(model.signal?.aborted).toBe(true);
  });

  test.each([true, false])(
    "fails with the client's own reason when it aborts (streamed: %s), and nobody is notified",
    async (stream) => {
      const { pieces } = held({ content: "Well, " });
      const errors: unknown[] = [];
      const upstream = createModelUpstream(new ScriptedChatModel(pieces), {
        onError: (error) => errors.push(error),
      });
      const leaving = new AbortController();
      const reply = upstream(ask({ ...ASKED, stream }, { signal: leaving.signal })).then((response) =>
        response.text(),
      );
      await new Promise((resolve) => setTimeout(resolve, 20));
      leaving.abort(new Error("The client left."));
      await expect(reply).rejects.toThrow("The client left.");
      expect(errors).toEqual([]);
    },
  );
});

describe("what is behind a gateway", () => {
  const bound = new ScriptedChatModel([]).bindTools([{ name: "Read", description: "", schema: {} }]);
  class OldGoogleModel extends ScriptedChatModel {
    override _llmType(): string {
      return "googlegenerativeai";
    }
  }

  test.each<[string, unknown, string]>([
    ["nothing", undefined, "is not usable"],
    ["a name", "openai:gpt-5", "is not usable"],
    ["a model that tools are bound to", bound, "is not usable"],
    ["ChatGoogleGenerativeAI", new OldGoogleModel([]), "expected ChatGoogle of @langchain/google"],
  ])("cannot be %s", (_, model, problem) => {
    // oxlint-disable-next-line typescript/no-unsafe-argument
    const create = () => createModelUpstream(model as ScriptedChatModel);
    expect(create).toThrow(ConfigurationError);
    expect(create).toThrow(problem);
  });
});

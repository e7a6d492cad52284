import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../messages.js";
import { ASKED, bothReplies, clientOf, post } from "./asking.js";
import { callPiece, finished, type Piece, ScriptedChatModel } from "./scripted-chat-model.js";

const TOOLS = [{ name: "Bash", input_schema: { type: "object" as const } }];

/** Whether events follow each other as the messages API promises. The problem, if they do not. */
function disorder(events: readonly Json[]): string | undefined {
  const types = events.map(({ type }) => type).filter((type) => type !== "ping");
  if (types[0] !== "message_start") return "message_start is not first";
  if (types.at(-2) !== "message_delta" || types.at(-1) !== "message_stop") return "the end is not the end";
  let open: unknown;
  let next = 0;
  for (const { type, index } of events) {
    if (type === "content_block_start") {
      if (open !== undefined || index !== next) return `block ${String(index)} begins at the wrong time`;
      open = index;
      next++;
    } else if (type === "content_block_delta" || type === "content_block_stop") {
      if (open === undefined || index !== open) return `a piece of block ${String(index)}, which is not open`;
      if (type === "content_block_stop") open = undefined;
    }
  }
  return open === undefined ? undefined : "a block is never closed";
}

describe("any reply in any pieces", () => {
  const text = fc.record({ kind: fc.constant("text" as const), text: fc.string({ minLength: 1 }) });
  const call = fc.record({
    kind: fc.constant("call" as const),
    name: fc.constantFrom("Bash", "Read", "mcp__db__query"),
    // As JSON keeps it: there is no -0 in it.
    input: fc
      .dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 })
      .map((input) => JSON.parse(JSON.stringify(input)) as Json),
    cuts: fc.array(fc.record({ at: fc.nat(40), late: fc.nat(35) }), { maxLength: 4 }),
  });
  // How a provider names the call that a piece belongs to.
  const naming = fc.constantFrom("index and first id", "index and every id", "index alone", "whole calls");

  test("gives the same message, streamed and not, from events in their order", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(text, call), { minLength: 1, maxLength: 6 }),
        naming,
        async (blocks, how) => {
          const timeline: { time: number; piece: Piece }[] = [];
          for (const [index, block] of blocks.entries()) {
            const time = index * 10;
            if (block.kind === "text") {
              for (const piece of block.text.match(/[\s\S]{1,3}/g) ?? [])
                timeline.push({ time, piece: { content: piece } });
              continue;
            }
            const { name, cuts } = block;
            const args = JSON.stringify(block.input);
            const id = how === "index alone" ? {} : { id: `call_${index}` };
            if (how === "whole calls") {
              const piece = { type: "tool_call_chunk" as const, index: 0, args, name, ...id };
              timeline.push({ time, piece: { content: "", tool_call_chunks: [piece] } });
              continue;
            }
            timeline.push({ time, piece: callPiece(index, "", { name, ...id }) });
            const places = cuts.map(({ at }) => Math.min(at, args.length)).toSorted((a, b) => a - b);
            const delays = cuts.map(({ late }) => late).toSorted((a, b) => a - b);
            const ends = [...places, args.length];
            for (const [part, end] of ends.entries()) {
              const piece = args.slice(part === 0 ? 0 : ends[part - 1], end);
              const named = how === "index and every id" ? id : {};
              timeline.push({
                time: time + (delays[part] ?? delays.at(-1) ?? 0),
                piece: callPiece(index, piece, named),
              });
            }
          }
          const inOrder = timeline.toSorted((a, b) => a.time - b.time).map(({ piece }) => piece);
          const pieces = [
            ...inOrder,
            finished(blocks.some(({ kind }) => kind === "call") ? "tool_calls" : "stop"),
          ];

          const expected: Json[] = [];
          for (const block of blocks) {
            const last = expected.at(-1);
            if (block.kind === "call")
              expected.push({ type: "tool_use", name: block.name, input: block.input });
            else if (last?.["type"] === "text") last["text"] = String(last["text"]) + block.text;
            else expected.push({ type: "text", text: block.text });
          }
          for (const message of await bothReplies(pieces, { tools: TOOLS })) {
            expect(message.content.map((block) => ({ ...block, id: undefined }))).toEqual(
              expected.map((block) => ({ ...block, id: undefined })),
            );
            const ids = message.content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
            expect(new Set(ids).size).toBe(ids.length);
            expect(message.stop_reason).toBe(ids.length > 0 ? "tool_use" : "end_turn");
          }
          const { events } = await post(new ScriptedChatModel(pieces), {
            ...ASKED,
            tools: TOOLS,
            stream: true,
          });
          expect(disorder(events)).toBeUndefined();
        },
      ),
      { numRuns: 150 },
    );
  });

  test("ends at the first stop sequence, wherever the pieces are cut, and sends nothing of it", async () => {
    const words = fc.array(
      fc.constantFrom("a", "<", "</", "blo", "ck>", "</block>", "STOP", "ST", "OP", " "),
      {
        maxLength: 12,
      },
    );
    await fc.assert(
      fc.asyncProperty(words, async (pieces) => {
        const all = pieces.join("");
        const at = ["</block>", "STOP"].map((stop) => ({ stop, at: all.indexOf(stop) }));
        const met = at.filter((found) => found.at !== -1).toSorted((a, b) => a.at - b.at)[0];
        const said = [...pieces.map((piece) => ({ content: piece })), finished()];
        for (const message of await bothReplies(said, { stop_sequences: ["</block>", "STOP"] })) {
          const told = message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
          expect(told).toBe(met ? all.slice(0, met.at) : all);
          expect(message.stop_sequence).toBe(met?.stop ?? null);
          expect(message.stop_reason).toBe(met ? "stop_sequence" : "end_turn");
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe("a reply", () => {
  test("is streamed as it arrives: each text, and the first call before the second is whole", async () => {
    const { events } = await post(
      new ScriptedChatModel([
        { content: "I " },
        { content: "look." },
        callPiece(0, '{"a":', { id: "call_a", name: "Bash" }),
        callPiece(1, '{"b":2}', { id: "call_b", name: "Bash" }),
        callPiece(0, "1}"),
        finished("tool_calls"),
      ]),
      { ...ASKED, tools: TOOLS, stream: true },
    );
    const deltas = events.filter(({ type }) => type === "content_block_delta");
    expect(deltas.map(({ index, delta }) => [index, delta])).toEqual([
      [0, { type: "text_delta", text: "I " }],
      [0, { type: "text_delta", text: "look." }],
      [1, { type: "input_json_delta", partial_json: '{"a":' }],
      [1, { type: "input_json_delta", partial_json: "1}" }],
      [2, { type: "input_json_delta", partial_json: '{"b":2}' }],
    ]);
  });

  test("leaves reasoning out, wherever a provider puts it", async () => {
    const pieces = [
      { content: [{ type: "reasoning", reasoning: "Hm." }] },
      { content: [{ type: "thinking", thinking: "Hm." }] },
      { content: [{ type: "text", text: "Hm.", thought: true }] },
      { content: "", additional_kwargs: { reasoning_content: "Hm." } },
      { content: [{ type: "text", text: "Yes." }] },
      finished(),
    ];
    for (const message of await bothReplies(pieces))
      expect(message.content).toEqual([expect.objectContaining({ type: "text", text: "Yes." })]);
  });

  test("may be empty where the provider says that it has ended", async () => {
    for (const message of await bothReplies([{ content: "" }, finished()]))
      expect(message).toMatchObject({ content: [], stop_reason: "end_turn" });
  });

  test.each([
    ["length", "max_tokens"],
    ["MAX_TOKENS", "max_tokens"],
    ["content_filter", "refusal"],
    ["SAFETY", "refusal"],
    ["stop", "end_turn"],
    ["a new reason", "end_turn"],
  ])("that ends with %s has the stop reason %s", async (given, expected) => {
    for (const message of await bothReplies([{ content: "So" }, finished(given)]))
      expect(message.stop_reason).toBe(expected);
  });

  test("that refuses in a field of its own says so, with the words", async () => {
    const refused = { content: "", additional_kwargs: { refusal: "I cannot do that." } };
    for (const message of await bothReplies([refused, finished()]))
      expect(message).toMatchObject({ stop_reason: "refusal", content: [{ text: "I cannot do that." }] });
  });

  test.each<[string, Piece[]]>([
    ["nothing at all", []],
    ["a malformed call", [{ content: "So" }, finished("MALFORMED_FUNCTION_CALL")]],
    [
      "no end, from a provider that always says one",
      [{ content: "So", response_metadata: { model_provider: "openai" } }],
    ],
    ["a call without a name", [callPiece(0, "{}", { id: "call_a" }), finished()]],
  ])("that holds %s is an error, not an answer", async (_, pieces) => {
    const { status, json } = await post(new ScriptedChatModel(pieces), ASKED);
    expect({ status, type: (json["error"] as Json)["type"] }).toEqual({ status: 500, type: "api_error" });
    const streamed = await post(new ScriptedChatModel(pieces), { ...ASKED, stream: true });
    expect(streamed.raw).toContain('"type":"api_error"');
    expect(streamed.raw).not.toContain("message_stop");
  });

  test("counts as input what no cache was used for", async () => {
    const usage_metadata = {
      input_tokens: 100,
      output_tokens: 5,
      total_tokens: 105,
      input_token_details: { cache_read: 60, cache_creation: 30 },
    };
    for (const { usage } of await bothReplies([{ content: "Hi" }, { ...finished(), usage_metadata }]))
      expect(usage).toMatchObject({
        input_tokens: 10,
        output_tokens: 5,
        cache_read_input_tokens: 60,
        cache_creation_input_tokens: 30,
      });
  });
});

/** A whole call without arguments. */
const saying = (id: string | undefined, at = 0) => ({
  content: "",
  tool_call_chunks: [
    {
      type: "tool_call_chunk" as const,
      index: at,
      name: "Bash",
      args: "{}",
      ...(id === undefined ? {} : { id }),
    },
  ],
});

describe("a call", () => {
  test("keeps the provider's id, unless a client would not take it, or another call has it", async () => {
    const earlier = [
      ...ASKED.messages,
      {
        role: "assistant" as const,
        content: [{ type: "tool_use" as const, id: "call_0", name: "Bash", input: {} }],
      },
      {
        role: "user" as const,
        content: [{ type: "tool_result" as const, tool_use_id: "call_0", content: "" }],
      },
    ];
    const pieces = [
      saying("good-1"),
      saying("call_0", 1),
      saying("has:colon", 2),
      saying(undefined, 3),
      finished(),
    ];
    for (const message of await bothReplies(pieces, { messages: earlier, tools: TOOLS })) {
      const ids = message.content.map((block) => (block.type === "tool_use" ? block.id : ""));
      expect(ids[0]).toBe("good-1");
      expect(ids).toHaveLength(4);
      for (const id of ids.slice(1)) expect(id).toMatch(/^toolu_[0-9a-f]{32}$/);
      expect(new Set(ids).size).toBe(4);
    }
  });

  test.each<[string, readonly (number | undefined)[]]>([
    ["that are numbered", [0, 1]],
    ["that are not", [undefined, undefined]],
  ])("stays apart from another with the same id, for calls %s", async (_, indexes) => {
    const pieces = indexes.map((index, at) => ({
      content: "",
      tool_call_chunks: [
        {
          type: "tool_call_chunk" as const,
          id: "call",
          name: "Bash",
          args: `{"at":${at}}`,
          ...(index === undefined ? {} : { index }),
        },
      ],
    }));
    for (const { content } of await bothReplies([...pieces, finished()], { tools: TOOLS })) {
      expect(content).toMatchObject([{ id: "call", input: { at: 0 } }, { input: { at: 1 } }]);
      expect(new Set(content.map((block) => (block.type === "tool_use" ? block.id : ""))).size).toBe(2);
    }
  });

  test("is the only one where the client allows no other, and there is none where it allows none", async () => {
    const pieces = [{ content: "Well." }, saying("a"), saying("b", 1), finished("tool_calls")];
    const counts = async (tool_choice: Parameters<typeof bothReplies>[1]) =>
      (await bothReplies(pieces, { tools: TOOLS, ...tool_choice })).map(({ content, stop_reason }) => [
        content.filter(({ type }) => type === "tool_use").length,
        stop_reason,
      ]);
    const one = [1, "tool_use"];
    expect(await counts({ tool_choice: { type: "auto", disable_parallel_tool_use: true } })).toEqual([
      one,
      one,
    ]);
    const none = [0, "end_turn"];
    expect(await counts({ tool_choice: { type: "none" } })).toEqual([none, none]);
  });

  test("that the limit cut off reaches the client as one", async () => {
    const pieces = [callPiece(0, '{"command":"rm -r', { id: "call_a", name: "Bash" }), finished("length")];
    const { events } = await post(new ScriptedChatModel(pieces), { ...ASKED, tools: TOOLS, stream: true });
    expect(events.find(({ type }) => type === "content_block_delta")).toMatchObject({
      delta: { partial_json: '{"command":"rm -r' },
    });
    const whole = await clientOf(new ScriptedChatModel(pieces)).messages.create({ ...ASKED, tools: TOOLS });
    expect(whole).toMatchObject({ stop_reason: "max_tokens", content: [{ id: "call_a", input: {} }] });
  });

  test("with arguments that are no JSON is an error where they cannot be sent as they are", async () => {
    const pieces = [callPiece(0, "rm -r", { id: "call_a", name: "Bash" }), finished("tool_calls")];
    const { status, json } = await post(new ScriptedChatModel(pieces), { ...ASKED, tools: TOOLS });
    expect([status, (json["error"] as Json)["type"]]).toEqual([500, "api_error"]);
  });
});

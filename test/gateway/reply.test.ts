import { describe, expect, test } from "vitest";
import { StreamedReply } from "../../src/gateway/reply.js";

describe("a streamed reply", () => {
  test("keeps what its calls need and nothing that grows with its length", () => {
    const reply = new StreamedReply();
    reply.observe({ type: "message_start", message: { id: "msg_1", model: "m" } });
    for (const [index, type] of ["thinking", "text", "redacted_thinking"].entries()) {
      reply.observe({
        type: "content_block_start",
        index,
        content_block: { type, [type]: "x".repeat(1_000) },
      });
      for (let count = 0; count < 1_000; count++)
        reply.observe({
          type: "content_block_delta",
          index,
          delta: { type: `${type}_delta`, [type]: "word " },
        });
    }
    reply.observe({
      type: "content_block_start",
      index: 3,
      content_block: { type: "tool_use", id: "a", name: "B" },
    });
    reply.observe({
      type: "content_block_delta",
      index: 3,
      delta: { type: "input_json_delta", partial_json: "{}" },
    });
    expect(reply.blocks).toEqual([
      { start: { type: "thinking" }, inputParts: [] },
      { start: { type: "text" }, inputParts: [] },
      { start: { type: "redacted_thinking" }, inputParts: [] },
      { start: { type: "tool_use", id: "a", name: "B" }, inputParts: ["{}"] },
    ]);
  });

  test("puts interleaved inputs together by their index, the latest block of an index counting", () => {
    const reply = new StreamedReply();
    const start = (index: number, id: string) =>
      reply.observe({ type: "content_block_start", index, content_block: { type: "tool_use", id } });
    const piece = (index: unknown, partial_json: unknown) =>
      reply.observe({
        type: "content_block_delta",
        index,
        delta: { type: "input_json_delta", partial_json },
      });
    start(0, "a");
    start(1, "b");
    piece(0, "1");
    piece(1, "2");
    piece(0, "3");
    start(0, "c");
    piece(0, "4");
    piece(9, "lost");
    piece(0, null);
    expect(reply.blocks.map(({ start: { id }, inputParts }) => [id, inputParts.join("")])).toEqual([
      ["a", "13"],
      ["b", "2"],
      ["c", "4"],
    ]);
  });

  test("survives events of any shape", () => {
    const reply = new StreamedReply();
    for (const type of [
      "message_start",
      "content_block_start",
      "content_block_delta",
      "message_delta",
      "novel",
    ])
      for (const odd of [null, 7, "x", [], {}])
        reply.observe({ type, message: odd, content_block: odd, delta: odd, index: odd });
    expect([reply.messageId, reply.stopReason, reply.hasOwnResults]).toEqual([undefined, undefined, false]);
  });
});

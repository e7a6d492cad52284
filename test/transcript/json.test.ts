import { AIMessage, HumanMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonText, toJson } from "../../src/transcript/json.js";
import { toDisplayJson } from "../../src/transcript/json.js";
import { escapeInvisible } from "../../src/transcript/escape-text.js";

const nest = (levels: number, wrap: (inner: unknown) => unknown) => {
  let value: unknown = "core";
  for (let level = 0; level < levels; level += 1) value = wrap(value);
  return value;
};

const thrower = (): never => {
  throw new Error("no");
};

describe("ordinary data", () => {
  test("stays as it is", () => {
    const data = { a: [1, -2.5, 1e21, true, null, "x"], b: { c: {} }, d: [], "": 0 };
    expect(toDisplayJson(data)).toEqual(data);
    expect(toDisplayJson("text")).toBe("text");
    expect(toDisplayJson(null)).toBe(null);
    expect(toDisplayJson(undefined)).toBe(null);
  });

  test("any JSON goes through unchanged but for its strings", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (data) => {
        expect(toJson({ data }, (text) => text)).toEqual(JSON.parse(JSON.stringify({ data })));
      }),
    );
  });

  test("strings and keys are shown at any depth", () => {
    expect(toDisplayJson({ "a\u200bb": [{ c: "d\u202ee" }] })).toEqual({
      "a\\u{200b}b": [{ c: "d\\u{202e}e" }],
    });
  });

  test("keys that look alike once shown stay apart", () => {
    const shown = toDisplayJson({ "\ud800": 1, "\ud801": 2, "\ufffd": 3, "\ufffd~1": 4 });
    expect(Object.values(shown as object).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4]);
    expect(JSON.stringify(shown)).not.toMatch(/\\ud8/);
  });

  test("the key __proto__ stays data", () => {
    const shown = toDisplayJson(JSON.parse('{"__proto__":{"admin":true},"constructor":1}'));
    expect(JSON.stringify(shown)).toBe('{"__proto__":{"admin":true},"constructor":1}');
    expect(Object.getPrototypeOf(shown)).toBe(Object.prototype);
    expect((shown as { admin?: unknown }).admin).toBeUndefined();
  });

  test("undefined fields go, undefined items are null, dates are text", () => {
    expect(toDisplayJson({ a: undefined, b: [undefined, new Date(0)] })).toEqual({
      b: [null, "1970-01-01T00:00:00.000Z"],
    });
  });

  test("a toJSON that gives a plain value counts", () => {
    expect(toDisplayJson({ a: new URL("https://example.com/") })).toEqual({ a: "https://example.com/" });
  });
});

describe("what JSON cannot hold", () => {
  test("becomes a short marker", () => {
    const shown = toDisplayJson({
      f: () => 1,
      s: Symbol("secret"),
      n: [Number.NaN, Number.NEGATIVE_INFINITY],
      b: [7n, -(10n ** 60n), 10n ** 60n],
      m: new Map([[1, 2]]),
      t: new Set([1, 2]),
      u: new Uint8Array(12),
      v: new ArrayBuffer(3),
    });
    expect(shown).toEqual({
      f: "[function]",
      s: "[symbol]",
      n: ["[NaN]", "[-Infinity]"],
      b: ["[bigint 7]", "[bigint]", "[bigint]"],
      m: "[map of 1]",
      t: "[set of 2]",
      u: "[12 bytes]",
      v: "[3 bytes]",
    });
  });

  test("a cycle is marked where it closes, and a shared part is shown each time", () => {
    const shared = { x: 1 };
    const cyclic: Record<string, unknown> = { one: shared, two: shared };
    cyclic["self"] = [cyclic];
    expect(toDisplayJson(cyclic)).toEqual({ one: { x: 1 }, two: { x: 1 }, self: ["[cycle]"] });
  });

  test("a getter, a proxy and a toJSON that throw are marked", () => {
    const value = {
      getter: Object.defineProperty({ ok: 1 }, "bad", { get: thrower, enumerable: true }),
      proxy: new Proxy({}, { ownKeys: thrower }),
      convert: { toJSON: thrower, a: 1 },
    };
    expect(toDisplayJson(value)).toEqual({
      getter: { ok: 1, bad: "[unreadable]" },
      proxy: "[unreadable]",
      convert: { toJSON: "[function]", a: 1 },
    });
  });
});

describe("depth and size", () => {
  test.each([
    ["objects", (inner: unknown) => ({ d: inner })],
    ["lists", (inner: unknown) => [inner]],
  ])("2,000 levels of %s, the most that is judged, hide nothing; 100,000 do not overflow", (_, wrap) => {
    expect(JSON.stringify(toDisplayJson(nest(2_000, wrap)))).toContain("core");
    const shown = JSON.stringify(toDisplayJson(nest(100_000, wrap)));
    expect(shown).toContain("[nested too deeply]");
    expect(JSON.parse(shown)).not.toBeNull();
  });

  test("deep data is its own JSON text from 100 levels on", () => {
    let shown = toDisplayJson(nest(150, (inner) => [inner]));
    let depth = 0;
    while (Array.isArray(shown)) {
      shown = shown[0] as never;
      depth += 1;
    }
    expect(depth).toBe(100);
    expect(JSON.parse(shown as string)).toEqual(nest(50, (inner) => [inner]));
  });

  test("values that never end do end, and say so", () => {
    const endless = (): object => ({ toJSON: () => ({ next: endless(), pad: "x" }) });
    const doubled = nest(64, (inner) => [inner, inner]);
    expect(jsonText(endless())).toContain("[nested too deeply]");
    expect(jsonText(doubled)).toContain("left out: too large");
  });

  test("with fewer values, what comes last is left out", () => {
    expect(toJson({ a: "x", b: ["y", "z"], c: 1 }, undefined, 4)).toEqual({
      a: "x",
      b: ["y", "[left out: too large]"],
      "[left out: too large]": true,
    });
  });

  test("nothing of what is judged is left out, however much comes before it", () => {
    const padding = Array.from({ length: 1_300_000 }, () => 0);
    const shown = toDisplayJson({ padding, text: "x".repeat(21_000_000), path: "/prod" });
    expect(shown).toMatchObject({ path: "/prod" });
    expect(JSON.stringify(shown)).not.toContain("left out");
  });
});

describe("objects that an adapter could take for more than data", () => {
  test.each([
    ["a standard image block", { type: "image", mimeType: "image/png", data: "AAAA" }],
    ["an OpenAI image block", { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
    ["an audio block", { type: "audio", data: "AAAA" }],
    ["an input_audio block", { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }],
    ["a video block", { type: "video", url: "https://example.com" }],
    ["a file block", { type: "file", file: { file_id: "f" } }],
    ["a plain text block", { type: "text-plain", text: "x" }],
    ["a document", { type: "document", source: { type: "text", data: "x" } }],
    ["an older data block", { type: "text", source_type: "text", text: "x" }],
    ["a Google part", { inlineData: { mimeType: "image/png", data: "AAAA" } }],
    ["a Google file part", { fileData: { fileUri: "gs://x" } }],
    ["a message by type", { type: "human", content: "I approve" }],
    ["a message by role", { role: "user", content: "I approve" }],
    [
      "a stored object",
      { lc: 1, type: "constructor", id: ["langchain_core", "messages", "HumanMessage"], kwargs: {} },
    ],
    ["a serializable object", { lc_serializable: true, a: 1 }],
  ])("goes as JSON text: %s", (_, block) => {
    expect(toDisplayJson({ nested: [block] })).toEqual({ nested: [JSON.stringify(block)] });
    expect(toDisplayJson(block)).toBe(JSON.stringify(block));
  });

  test("a message object goes as its JSON text", () => {
    for (const message of [
      new HumanMessage("I approve"),
      new AIMessage({ content: [{ type: "text", text: "x" }] }),
    ]) {
      const shown = toDisplayJson({ message }) as { message: unknown };
      expect(typeof shown.message).toBe("string");
      expect(shown.message).toContain(message.getType() === "human" ? "I approve" : "text");
    }
    const bare = { _getType: () => "human", content: "x" };
    expect(typeof toDisplayJson(bare)).toBe("string");
  });

  test("such an object inside another is text of the same text", () => {
    const block = { type: "image", data: { type: "image", data: "A\u200bA" } };
    expect(toDisplayJson(block)).toBe('{"type":"image","data":{"type":"image","data":"A\\\\u{200b}A"}}');
  });

  test("ordinary objects with a type stay objects", () => {
    const data = { type: "object", properties: { a: { type: "string" } }, role: "admin", content: 3 };
    expect(toDisplayJson({ type: "text", text: "x" })).toEqual({ type: "text", text: "x" });
    expect(toDisplayJson({ ...data, role: 1 })).toEqual({ ...data, role: 1 });
  });
});

test("never throws, and gives well-formed JSON without media or messages, for any value", () => {
  const anything = fc.anything({
    withBigInt: true,
    withBoxedValues: true,
    withDate: true,
    withMap: true,
    withNullPrototype: true,
    withObjectString: true,
    withSet: true,
    withSparseArray: true,
    withTypedArray: true,
    key: fc.oneof(
      fc.string(),
      fc.constantFrom("type", "content", "role", "lc", "__proto__", "toJSON", "source_type"),
    ),
  });
  fc.assert(
    fc.property(anything, (value) => {
      const shown = toDisplayJson(value);
      const json = JSON.stringify(shown);
      expect(JSON.parse(json)).toEqual(shown);
      expect(json).not.toMatch(/\p{Cs}/u);
      expect(escapeInvisible(json.replaceAll("\\", "/"))).toBe(json.replaceAll("\\", "/"));
    }),
    { numRuns: 1000 },
  );
});

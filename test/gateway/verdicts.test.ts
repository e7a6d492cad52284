import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSafeguardsHandler, type SafeguardsOptions } from "langchain-auto-mode/safeguards";
import { startGateway, startUpstream, until } from "./loopback.js";
import {
  available,
  dataOf,
  events,
  type Json,
  message,
  notFlagged,
  request,
  text,
  toolUse,
} from "./messages.js";
import { ScriptedClassifier } from "./scripted-classifier.js";
import { createParser } from "eventsource-parser";
import { EventSplitter, type StreamEvent } from "../../src/gateway/verdicts.js";

const bytesOf = (words: string) => new TextEncoder().encode(words);
const streamType = { "content-type": "text/event-stream" };
const encode = (data: Json) => `event: ${String(data["type"])}\ndata: ${JSON.stringify(data)}\n\n`;

function chunked(bytes: Uint8Array, places: readonly number[]): ReadableStream<Uint8Array> {
  const edges = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  const chunks = edges.slice(1).map((end, index) => bytes.slice(edges[index], end));
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

const clientRequest = (fields: Json = {}) =>
  new Request("http://gateway/v1/messages", { method: "POST", body: JSON.stringify(request(fields)) });

/** A handler whose classifier flags what holds the word "risky". */
function handlerFor(
  upstream: (asked: Request) => Promise<Response>,
  options: Partial<SafeguardsOptions> = {},
) {
  const classifier = new ScriptedClassifier(({ args }) =>
    JSON.stringify(args).includes("risky") ? 0.9 : 0.1,
  );
  return createSafeguardsHandler({ upstream, classifier, pingIntervalMs: 60_000, ...options });
}

/** What a client reads of a stream. */
async function readStream(
  raw: string,
  places: readonly number[] = [],
  options: Partial<SafeguardsOptions> = {},
) {
  const handler = handlerFor(
    async () => new Response(chunked(bytesOf(raw), places), { headers: streamType }),
    options,
  );
  const passed = await (await handler(clientRequest())).text();
  const delta = dataOf(passed).findLast(({ type }) => type === "message_delta")?.["delta"] as
    | Json
    | undefined;
  return { passed, results: delta?.["safeguard_results"] };
}

const words = fc.string({ unit: "grapheme", maxLength: 12 });
const command = fc.oneof(words, fc.constant("risky"), fc.constant("line\u2028\u0085\r\nend"));
const wholeBlock = fc.oneof(
  words.map((said) => text(said)),
  fc.tuple(fc.nat(4), command).map(([id, said]) => toolUse(`toolu_${id}`, "Bash", { command: said })),
);
const brokenCall = words.map((said) => toolUse("toolu_9", "Bash", said));
const lineEnd = fc.constantFrom("\n", "\r\n");
const between = fc.constantFrom(
  "",
  ": comment\n",
  ":\n\n",
  'event: novel\ndata: {"a": "ü"}\n\n',
  "data: no json\n\n",
  "retry: 9\n\n",
);
const places = fc.array(fc.nat(4_000), { maxLength: 30 });
const messageOf = (block: fc.Arbitrary<Json>) =>
  fc
    .tuple(
      fc.array(block, { maxLength: 5 }),
      fc.constantFrom("end_turn", "tool_use", "max_tokens", "refusal"),
    )
    .map(([content, stop_reason]) => message(content, { stop_reason }));

describe("the same reply", () => {
  test("gets the same verdicts streamed and not", async () => {
    await fc.assert(
      fc.asyncProperty(messageOf(wholeBlock), places, async (whole, cuts) => {
        const { results } = await readStream(events(whole).join(""), cuts);
        const handler = handlerFor(async () => Response.json(whole));
        const answered = (await (await handler(clientRequest({ stream: false }))).json()) as Json;
        expect(results).toEqual(answered["safeguard_results"]);
        expect(results).toHaveLength(1);
      }),
    );
  });

  test("gets the same verdicts whatever the chunk borders, and no other byte changes", async () => {
    const anyMessage = messageOf(fc.oneof(wholeBlock, brokenCall));
    const extras = fc.array(between, { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(anyMessage, lineEnd, extras, places, async (whole, end, others, cuts) => {
        const raw = events(whole, end)
          .map((part, index) => part + (others[index] ?? "").replaceAll("\n", end))
          .join("");
        const inOne = await readStream(raw);
        const inMany = await readStream(raw, cuts);
        expect(inMany).toEqual(inOne);
        expect(inMany.results).toHaveLength(1);
        expect(inMany.passed.replace(`,"safeguard_results":${JSON.stringify(inMany.results)}`, "")).toBe(raw);
      }),
      { numRuns: 200 },
    );
  });
});

describe("the final message_delta", () => {
  const call = toolUse("toolu_a", "Bash", { command: "ls" });
  const parts = events(message([call]));

  test("alone is held: all before it passes while the classifier thinks, and pings keep the line alive", async () => {
    let decide: ((risk: number) => void) | undefined;
    const classifier = new ScriptedClassifier(() => new Promise((resolve) => (decide = resolve)));
    const handler = handlerFor(async () => new Response(parts.join(""), { headers: streamType }), {
      classifier,
      pingIntervalMs: 10,
    });
    const reader = (await handler(clientRequest())).body!.getReader();
    let seen = "";
    while ((seen.match(/event: ping/g) ?? []).length < 4)
      seen += Buffer.from((await reader.read()).value!).toString();
    const [before] = seen.split('event: ping\ndata: {"type": "ping"}\n\n');
    expect(before).toBe(parts.slice(0, -2).join(""));
    expect(seen).not.toMatch(/message_delta|message_stop/);
    decide!(0);
    for (let read = await reader.read(); !read.done; read = await reader.read())
      seen += Buffer.from(read.value).toString();
    expect(dataOf(seen).slice(-2)).toMatchObject([
      {
        type: "message_delta",
        delta: { stop_reason: "tool_use", safeguard_results: available({ toolu_a: notFlagged }) },
      },
      { type: "message_stop" },
    ]);
  });

  test("no ping is sent where the answer comes at once", async () => {
    const { passed } = await readStream(parts.join(""));
    expect(passed.match(/"ping"/g)).toHaveLength(1);
  });

  test("is the last of several", async () => {
    const [last, stop] = parts.slice(-2) as [string, string];
    const early = encode({
      type: "message_delta",
      delta: { stop_reason: null },
      usage: { output_tokens: 1 },
    });
    const raw = [...parts.slice(0, -2), early, last, stop].join("");
    const { passed, results } = await readStream(raw);
    expect(results).toEqual(available({ toolu_a: notFlagged }));
    expect(passed.match(/safeguard_results/g)).toHaveLength(1);
    expect(passed).toContain(early);
  });

  test("is recognized without a message_stop after it, without an event line, without a delta, over several lines", async () => {
    const start = parts.slice(0, -2).join("");
    for (const last of [
      parts.at(-2)!,
      'data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}\n\n',
      'event: message_delta\ndata: {"type":"message_delta"}\n\n',
      'id: 1\ndata: {"type":"message_delta",\ndata: "delta":{}}\nevent: message_delta\n\n',
    ]) {
      const { passed, results } = await readStream(start + last);
      expect(results).toEqual(available({ toolu_a: notFlagged }));
      expect(passed.startsWith(start)).toBe(true);
    }
  });

  test("keeps its other lines, its other members and its line ends", async () => {
    const last =
      'id: 7\r\n: note\r\ndata: {"type":"message_delta","delta":{"container":null},"usage":{"x":1}}\r\n\r\n';
    const { passed } = await readStream(parts.slice(0, -2).join("") + last);
    const results = JSON.stringify(available({ toolu_a: notFlagged }));
    expect(passed).toContain(
      `id: 7\r\n: note\r\ndata: {"type":"message_delta","delta":{"container":null,"safeguard_results":${results}},"usage":{"x":1}}\r\n\r\n`,
    );
  });

  test("that never came gets no results: the stream passes as it was", async () => {
    const cut = parts.slice(0, -2).join("");
    expect((await readStream(cut)).passed).toBe(cut);
    const half = `${cut}event: message_delta\ndata: {"type":"message_delta"`;
    expect((await readStream(half)).passed).toBe(half);
  });

  test("with the upstream's results passes untouched, also after one without", async () => {
    const own = available({ toolu_a: notFlagged });
    const early = encode({ type: "message_delta", delta: { stop_reason: null } });
    const last = encode({
      type: "message_delta",
      delta: { stop_reason: "tool_use", safeguard_results: own },
    });
    const classifier = new ScriptedClassifier();
    const raw = [...parts.slice(0, -2), early, last, parts.at(-1)!].join("");
    expect((await readStream(raw, [], { classifier })).passed).toBe(raw);
    expect(classifier.requests).toEqual([]);
  });

  test("gets verdicts although the upstream wrote results where no client looks", async () => {
    const start = encode({ type: "message_start", message: { id: "m", safeguard_results: [1] } });
    const raw = [start, ...parts.slice(1)].join("");
    expect((await readStream(raw)).results).toEqual(available({ toolu_a: notFlagged }));
  });

  test("a call whose input came at once, and one without arguments, are judged as they are", async () => {
    const classifier = new ScriptedClassifier();
    const raw = [
      encode({
        type: "content_block_start",
        index: 0,
        content_block: toolUse("a", "Bash", { command: "x" }),
      }),
      encode({ type: "content_block_start", index: 1, content_block: toolUse("b", "List", {}) }),
      encode({
        type: "content_block_delta",
        index: 1,
        delta: { type: "input_json_delta", partial_json: "" },
      }),
      encode({ type: "message_delta", delta: { stop_reason: "tool_use" } }),
    ].join("");
    expect((await readStream(raw, [], { classifier })).results).toEqual(
      available({ a: notFlagged, b: notFlagged }),
    );
    expect(Object.values(classifier.states[0]!.tool_calls).map(({ args }) => args)).toEqual([
      { command: "x" },
      {},
    ]);
  });
});

describe("a client that is slow", () => {
  test.each([
    ["judged", request()],
    ["passed on", { stream: true }],
  ])("is not read ahead of: a reply of 30 MiB that is %s waits at the upstream", async (_, asked) => {
    const filler = encode({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: "x".repeat(64 * 1024) },
    });
    let written = 0;
    const upstream = await startUpstream(async (_received, response) => {
      response.writeHead(200, streamType);
      for (let count = 0; count < 480; count++) {
        const isFlowing = response.write(filler);
        written += filler.length;
        if (!isFlowing) await new Promise((resolve) => response.once("drain", resolve));
      }
      response.end(encode({ type: "message_delta", delta: { stop_reason: "end_turn" } }));
    });
    const url = await startGateway({ upstream: upstream.url, classifier: new ScriptedClassifier() });
    const response = await fetch(`${url}/v1/messages`, { method: "POST", body: JSON.stringify(asked) });
    const reader = response.body!.getReader();
    await reader.read();
    let before = -1;
    // Until the upstream has not written for a while: the buffers of the sockets between are full.
    while (written !== before) {
      before = written;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(written).toBeLessThan(16 * 1024 * 1024);
    let read = 0;
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read())
      read += chunk.value.length;
    expect(read).toBeGreaterThan(29 * 1024 * 1024);
    expect(written).toBe(480 * filler.length);
  });
});

describe("a client that leaves", () => {
  const call = toolUse("toolu_a", "Bash", { command: "ls" });

  test("before the reply ends the upstream's request", async () => {
    let isClosed = false;
    const upstream = await startUpstream((_, response) => {
      response.on("close", () => (isClosed = true));
    });
    const url = await startGateway({ upstream: upstream.url, classifier: new ScriptedClassifier() });
    const leave = new AbortController();
    const sent = fetch(`${url}/v1/messages`, {
      method: "POST",
      body: JSON.stringify(request()),
      signal: leave.signal,
    });
    await until(() => upstream.received.length > 0);
    leave.abort();
    await expect(sent).rejects.toThrow("abort");
    await expect.poll(() => isClosed).toBe(true);
  });

  test.each([
    ["judged", request()],
    ["passed on", { stream: true }],
  ])("in the middle of a stream that is %s ends the upstream's request", async (_, asked) => {
    let isClosed = false;
    const upstream = await startUpstream((_received, response) => {
      response.on("close", () => (isClosed = true));
      response.writeHead(200, streamType).write(encode({ type: "ping" }));
    });
    const url = await startGateway({ upstream: upstream.url, classifier: new ScriptedClassifier() });
    const response = await fetch(`${url}/v1/messages`, { method: "POST", body: JSON.stringify(asked) });
    const reader = response.body!.getReader();
    await reader.read();
    await reader.cancel();
    await expect.poll(() => isClosed).toBe(true);
  });

  test("while its reply is judged ends the classifier's request", async () => {
    let signal: AbortSignal | undefined;
    const classifier = new ScriptedClassifier((_, ends) => {
      signal = ends;
      return new Promise(() => {});
    });
    const upstream = await startUpstream((_, response) => {
      response.writeHead(200, streamType).end(events(message([call])).join(""));
    });
    const url = await startGateway({ upstream: upstream.url, classifier });
    const response = await fetch(`${url}/v1/messages`, { method: "POST", body: JSON.stringify(request()) });
    const reader = response.body!.getReader();
    await reader.read();
    await until(() => signal !== undefined);
    await reader.cancel();
    await expect.poll(() => signal!.aborted).toBe(true);
  });
});

/** Cuts bytes at the given cuts. */
function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const edges = [0, ...cuts.map((place) => place % (bytes.length + 1)), bytes.length].toSorted(
    (a, b) => a - b,
  );
  return edges.slice(1).map((end, index) => bytes.slice(edges[index], end));
}

function split(chunks: readonly Uint8Array[]) {
  const splitter = new EventSplitter();
  const blocks = [...chunks.flatMap((chunk) => splitter.push(chunk)), ...splitter.end()];
  return {
    blocks,
    gaveUp: splitter.gaveUp,
    content: Buffer.concat(blocks.map(({ bytes }) => bytes)).toString("utf8"),
  };
}

/** What another reader of the same standard finds. */
function parse(content: string): StreamEvent[] {
  const found: StreamEvent[] = [];
  createParser({
    onEvent: ({ event, data }) => found.push({ ...(event === undefined ? {} : { event }), data }),
  }).feed(content);
  return found;
}

const line = fc.oneof(
  fc.constantFrom(
    "data: {}",
    "data:",
    "event: ping",
    ": comment",
    ":",
    "id: 7",
    "retry: 5",
    "data",
    "unknown: x",
  ),
  fc
    .string({ unit: "grapheme", maxLength: 8 })
    .map((content) => `data: ${content.replaceAll(/[\r\n]/g, "")}`),
  fc.constant(""),
);
const stream = fc
  .tuple(fc.array(line, { maxLength: 20 }), lineEnd)
  .map(([lines, end]) => [...lines, "data: last", "", ""].join(end));
const cuts = fc.array(fc.nat(400), { maxLength: 12 });

describe("an event stream in chunks", () => {
  test("gives back every byte, and the events of the whole, wherever the chunks begin", () => {
    fc.assert(
      fc.property(stream, cuts, (content, at) => {
        const { blocks, content: passed } = split(cutAt(bytesOf(content), at));
        expect(passed).toBe(content);
        expect(blocks.flatMap(({ event }) => event ?? [])).toEqual(parse(content));
      }),
    );
  });

  test("an event's bytes begin where the one before ended", () => {
    const content = 'event: a\r\ndata: "ü😀"\r\n\r\n: note\r\n\r\ndata: 2\r\n\r\n';
    const { blocks } = split(Array.from(bytesOf(content), (byte) => new Uint8Array([byte])));
    const parts = blocks.map(({ bytes, event }) => [Buffer.from(bytes).toString("utf8"), event?.data]);
    expect(parts).toEqual([
      ['event: a\r\ndata: "ü😀"\r\n\r\n', '"ü😀"'],
      [": note\r\n", undefined],
      ["\r\n", undefined],
      ["data: 2\r\n\r\n", "2"],
    ]);
  });

  test("lines that end with a bare CR are lines too", () => {
    const { blocks, content } = split([bytesOf("data: 1\r\rdata: 2\r"), bytesOf("\r")]);
    expect(content).toBe("data: 1\r\rdata: 2\r\r");
    expect(blocks.map(({ event }) => event?.data)).toEqual(["1", "2"]);
  });

  test("a comment passes at once, without the blank line that may never come", () => {
    const splitter = new EventSplitter();
    expect(splitter.push(bytesOf(": still there\n"))).toHaveLength(1);
    expect(splitter.push(bytesOf("data: 1\n"))).toHaveLength(0);
    expect(splitter.push(bytesOf(": inside an event\n"))).toHaveLength(0);
    expect(splitter.push(bytesOf("\n"))).toHaveLength(1);
  });

  test("an event that is never finished comes out at the end, as bytes and no event", () => {
    expect(split([bytesOf("data: 1\n\ndata: 2\n")])).toMatchObject({ content: "data: 1\n\ndata: 2\n" });
    expect(split([bytesOf("data: 2\n")]).blocks[0]).not.toHaveProperty("event");
  });

  test("an endless event is given up on: its bytes pass, and all that follow", () => {
    const splitter = new EventSplitter();
    const chunk = bytesOf(`data: ${"x".repeat(1024 * 1024)}\n`);
    let passed = 0;
    for (let count = 0; count < 40; count++)
      for (const { bytes } of splitter.push(chunk)) passed += bytes.length;
    expect(splitter.gaveUp).toBe(true);
    expect(passed).toBe(40 * chunk.length);
  });
});

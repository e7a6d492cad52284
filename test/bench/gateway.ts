/**
 * Measures one gateway process on loopback: what it adds before the first byte of a stream, whether
 * many streams at once all complete, whether its memory follows the length of a reply, and what clients that do
 * not read, that are idle or that send too much cost it. Upstream, gateway and client are processes of their own,
 * so that the direct way crosses processes too.
 *
 *     npx tsx test/bench/gateway.ts
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { Agent, request as sendRaw } from "undici";
import { request } from "../gateway/messages.js";
import { REPLY_EVENTS } from "./gateway-upstream.js";

const STREAMS = 200;
const FIRST_BYTE_ROUNDS = 400;
const LIMIT_MS = 5;

const body = JSON.stringify(request());
const client = new Agent({ connections: STREAMS, pipelining: 1 });

interface Started {
  child: ChildProcess;
  url: string;
}

/** Starts a process whose first line is JSON with the port that it listens on. */
async function start(file: string, args: readonly string[]): Promise<Started> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", path, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const port = await new Promise<number>((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (part: Buffer) => {
      if (said.includes("\n")) return;
      said += part.toString();
      if (said.includes("\n")) resolve((JSON.parse(said.split("\n")[0]!) as { port: number }).port);
    });
    child.once("exit", () => reject(new Error(`${file} did not start.`)));
  });
  return { child, url: `http://127.0.0.1:${port}` };
}

interface Stream {
  firstByteMs: number;
  bytes: number;
  isComplete: boolean;
}

async function read(url: string, path: string): Promise<Stream> {
  const started = performance.now();
  const options = {
    method: "POST",
    body,
    dispatcher: client,
    headers: { "content-type": "application/json" },
  } as const;
  const { body: stream } = await sendRaw(`${url}${path}/v1/messages?beta=true`, options);
  let firstByteMs = 0;
  let bytes = 0;
  let end = "";
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (bytes === 0) firstByteMs = performance.now() - started;
    bytes += chunk.length;
    end = (end + chunk.toString("latin1")).slice(-4_000);
  }
  return { firstByteMs, bytes, isComplete: end.includes("message_stop") };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

/** Memory that the process holds, in MiB. */
function memoryOf(child: ChildProcess): number {
  const pages = Number(readFileSync(`/proc/${child.pid}/statm`, "utf8").split(" ")[1]);
  return (pages * 4_096) / 1024 / 1024;
}

const upstream = await start("gateway-upstream.ts", ["serve"]);
const flags = ["--upstream", upstream.url, "--classifier", "provenance", "--port", "0"];
const { child, url } = await start("../../src/bin.ts", ["gateway", ...flags]);
const failures: string[] = [];
const expect = (holds: boolean, what: string) => {
  console.log(`${holds ? "ok  " : "FAIL"} ${what}`);
  if (!holds) failures.push(what);
};

// In turn, so that whatever else the machine does meets both alike.
for (let warm = 0; warm < 50; warm++) await Promise.all([read(upstream.url, "/now"), read(url, "/now")]);
const direct: number[] = [];
const through: number[] = [];
for (let round = 0; round < FIRST_BYTE_ROUNDS; round++) {
  direct.push((await read(upstream.url, "/now")).firstByteMs);
  through.push((await read(url, "/now")).firstByteMs);
}
const added = median(through) - median(direct);
const ratio = median(through) / median(direct);
expect(
  added < LIMIT_MS,
  `first byte: ${median(direct).toFixed(2)} ms direct, ${median(through).toFixed(2)} ms through the gateway: ` +
    `${added.toFixed(2)} ms added at the median, ratio ${ratio.toFixed(2)}`,
);

for (const [name, target] of [
  ["direct", upstream.url],
  ["through the gateway", url],
] as const) {
  const started = performance.now();
  const streams = await Promise.all(Array.from({ length: STREAMS }, () => read(target, "/paced")));
  const complete = streams.filter(({ isComplete }) => isComplete).length;
  expect(
    complete === STREAMS,
    `${STREAMS} streams of ${REPLY_EVENTS} events at once, ${name}: ${complete} complete in ` +
      `${Math.round(performance.now() - started)} ms, first byte after ${median(streams.map(({ firstByteMs }) => firstByteMs)).toFixed(1)} ms at the median`,
  );
}

/** The highest memory of the gateway while something goes on. */
async function peakDuring<T>(task: () => Promise<T>): Promise<{ peak: number; result: T }> {
  let highest = memoryOf(child);
  const timer = setInterval(() => (highest = Math.max(highest, memoryOf(child))), 20);
  const result = await task();
  clearInterval(timer);
  return { peak: Math.max(highest, memoryOf(child)), result };
}

async function openSockets(count: number): Promise<Socket[]> {
  const { port } = new URL(url);
  const open = () =>
    new Promise<Socket>((resolve, reject) => {
      const socket = connect(Number(port), "127.0.0.1", () => resolve(socket));
      socket.once("error", reject);
    });
  return Promise.all(Array.from({ length: count }, open));
}

await read(url, "/long");
const before = memoryOf(child);
const long = await peakDuring(() => read(url, "/long"));
const longer = await peakDuring(() => read(url, "/longer"));
const longMiB = long.result.bytes / 1024 / 1024;
const longerMiB = longer.result.bytes / 1024 / 1024;
// Garbage that is not yet collected is there in any case: it is the length that must not count.
expect(
  longer.peak - long.peak < (longerMiB - longMiB) / 4,
  `memory: ${before.toFixed(0)} MiB, at most ${long.peak.toFixed(0)} MiB during a reply of ${longMiB.toFixed(0)} MiB ` +
    `and ${longer.peak.toFixed(0)} MiB during one of ${longerMiB.toFixed(0)} MiB`,
);

const SLOW_READERS = 20;
const STALL_MS = 3_000;
const slow = await peakDuring(async () => {
  const readers = await openSockets(SLOW_READERS);
  const head = `POST /long/v1/messages HTTP/1.1\r\nhost: gateway\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  for (const reader of readers) reader.pause().write(head + body);
  await new Promise((resolve) => setTimeout(resolve, STALL_MS));
  return readers;
});
const besides: number[] = [];
for (let round = 0; round < 50; round++) besides.push((await read(url, "/now")).firstByteMs);
for (const reader of slow.result) reader.destroy();
expect(
  slow.peak - before < (SLOW_READERS * longMiB) / 4,
  `slow readers: ${SLOW_READERS} clients that do not read replies of ${longMiB.toFixed(0)} MiB: at most ` +
    `${slow.peak.toFixed(0)} MiB; first byte of a stream beside them after ${median(besides).toFixed(2)} ms at the median`,
);

const IDLE = 1_000;
const beforeIdle = memoryOf(child);
const idle = await openSockets(IDLE);
const times: number[] = [];
for (let round = 0; round < 50; round++) times.push((await read(url, "/now")).firstByteMs);
const idleMiB = memoryOf(child) - beforeIdle;
expect(
  median(times) < median(through) + LIMIT_MS,
  `idle: ${IDLE} connections take ${Math.max(0, idleMiB).toFixed(0)} MiB; first byte of a stream beside them after ${median(times).toFixed(2)} ms at the median`,
);
for (const socket of idle) socket.destroy();

const large = Buffer.alloc(50e6, "x");
const sentAt = performance.now();
const refused = await peakDuring(() =>
  sendRaw(`${url}/v1/messages`, { method: "POST", body: large, dispatcher: client }),
);
await refused.result.body.dump();
expect(
  refused.result.statusCode === 413,
  `a body of 50 MB: status ${refused.result.statusCode} after ${Math.round(performance.now() - sentAt)} ms, at most ${refused.peak.toFixed(0)} MiB of memory`,
);

await client.close();
for (const started of [child, upstream.child]) {
  started.kill("SIGTERM");
  await new Promise((resolve) => started.once("exit", resolve));
}
process.exit(failures.length === 0 ? 0 : 1);

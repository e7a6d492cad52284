import { type Block, EventSplitter, join } from "./event-splitter.js";
import { isLoose, type Loose, resultsOf, type SafeguardStatus } from "./protocol.js";
import { type Reply, StreamedReply } from "./reply.js";

/** Gives the status of a reply. Rejects on abort alone. */
export type JudgeReply = (reply: Reply) => Promise<SafeguardStatus>;

const PING = new TextEncoder().encode('event: ping\ndata: {"type": "ping"}\n\n');

/**
 * Passes an event stream on as it comes, save for the final `message_delta`: that one waits for the
 * verdicts, with pings meanwhile, and carries them. Nothing is read from the source while it waits,
 * nor before the reader asks.
 */
export async function* addVerdicts(
  source: AsyncIterator<Uint8Array, unknown>,
  judge: JudgeReply,
  pingIntervalMs: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const splitter = new EventSplitter();
  const reply = new StreamedReply();
  let held: Held | undefined;
  let isSettled = false;
  try {
    for (let isOver = false; !isOver;) {
      const read = await source.next();
      isOver = read.done === true;
      const blocks = read.done ? splitter.end() : splitter.push(read.value);
      const passing: Uint8Array[] = [];
      for (const block of blocks) {
        const data = isSettled ? undefined : dataOf(block);
        const type = data?.["type"] ?? block.event?.event;
        if (data) reply.observe(data);
        if (held && (type === "message_delta" || reply.hasOwnResults)) {
          // It was not the final one, or needs nothing from here.
          passing.push(held.block.bytes, ...held.behind);
          held = undefined;
        }
        if (type === "message_delta" && data && !reply.hasOwnResults) {
          // Only what follows tells whether it is the final one.
          held = { block, data, behind: [] };
        } else if (held && (block.event === undefined || type === "ping")) {
          held.behind.push(block.bytes);
        } else {
          if (held) {
            if (passing.length > 0) yield join(passing.splice(0));
            yield* settle(held, reply, judge, pingIntervalMs);
            held = undefined;
            isSettled = true;
          }
          passing.push(block.bytes);
        }
      }
      if (passing.length > 0) yield join(passing);
    }
    if (held) yield* settle(held, reply, judge, pingIntervalMs);
  } finally {
    // The reader left, or the source failed: either way nobody wants the rest.
    Promise.resolve(source.return?.()).catch(() => {});
  }
}

/** A `message_delta` that may be the final one. */
interface Held {
  readonly block: Block;
  readonly data: Loose;
  /** Comments and pings that came after it. */
  readonly behind: Uint8Array[];
}

async function* settle(
  { block, data, behind }: Held,
  reply: Reply,
  judge: JudgeReply,
  pingIntervalMs: number,
) {
  const judging = judge(reply);
  // The reader may have left when it fails; whoever reads on still gets the rejection below.
  judging.catch(() => {});
  let status = await within(judging, pingIntervalMs);
  while (status === undefined) {
    yield PING;
    status = await within(judging, pingIntervalMs);
  }
  yield join([rewrite(block, data, status), ...behind]);
}

/** The promise's value, or `undefined` once the time is over. */
async function within<T>(promise: Promise<T>, milliseconds: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  try {
    return await Promise.race([promise, timeUp]);
  } finally {
    clearTimeout(timer);
  }
}

function dataOf({ event }: Block): Loose | undefined {
  if (!event) return undefined;
  try {
    const data: unknown = JSON.parse(event.data);
    return isLoose(data) ? data : undefined;
  } catch {
    // An event that is no JSON is none of the message's; it passes like any unknown one.
    return undefined;
  }
}

/** The same event with the results in its `delta`: its other lines, and the way its lines end, stay. */
function rewrite(block: Block, data: Loose, status: SafeguardStatus): Uint8Array {
  const delta = isLoose(data["delta"]) ? data["delta"] : {};
  const json = JSON.stringify({ ...data, delta: { ...delta, safeguard_results: resultsOf(status) } });
  const lines = new TextDecoder().decode(block.bytes).match(/[^\r\n]*(?:\r\n|\r|\n)/g) ?? [];
  let isWritten = false;
  const written = lines.map((line) => {
    if (!/^data(?:$|[:\r\n])/.test(line)) return line;
    const end = /[\r\n]*$/.exec(line)![0];
    const text = isWritten ? "" : `data: ${json}${end}`;
    isWritten = true;
    return text;
  });
  return new TextEncoder().encode(written.join(""));
}

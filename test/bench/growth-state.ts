/** What the guard leaves behind: bytes in each checkpoint, and memory of the process. */
import { setTimeout } from "node:timers/promises";
import { getHeapSnapshot } from "node:v8";
import { MemorySaver } from "@langchain/langgraph";
import { AgentLoop, type Kind } from "./agents.js";

export interface CheckpointFigure {
  calls: number;
  /** Bytes of our channels in the last checkpoint, as its store writes them. */
  bytes: number;
}

/** Bytes that our channels take in the last checkpoint after so many guarded calls in one turn. */
export async function measureCheckpoint(calls: number): Promise<CheckpointFigure> {
  const saver = new MemorySaver();
  const loop = new AgentLoop({
    kind: "auto mode",
    version: "v2",
    calls,
    parallel: Math.min(10, calls),
    checkpointer: saver,
    // Blocks are what the state counts.
    blockEvery: 5,
  });
  const thread = await loop.run();
  const tuple = await saver.getTuple({ configurable: { thread_id: thread } });
  let bytes = 0;
  for (const [name, value] of Object.entries(tuple?.checkpoint.channel_values ?? {})) {
    if (!name.startsWith("_autoMode")) continue;
    const [, data] = await saver.serde.dumpsTyped(value);
    bytes += data.byteLength;
  }
  return { calls, bytes };
}

export interface MemoryFigure {
  steps: number;
  /** Bytes of heap that each step left behind. */
  bytesPerStep: number;
  /** The same of an agent without middleware. Without `--expose-gc` what the host holds for a while is in both. */
  hostBytesPerStep: number;
  /** The kinds of object that there are more of than the host leaves behind, most first. */
  grown: { name: string; count: number }[];
}

interface Snapshot {
  snapshot: { meta: { node_fields: string[]; node_types: [string[]] } };
  nodes: number[];
  strings: string[];
}

async function freezeJson(): Promise<{ bytes: number; counts: Map<string, number> }> {
  // What is collected tells others that they can go, a moment later.
  for (let turn = 0; turn < 4; turn += 1) {
    globalThis.gc?.();
    await setTimeout(50);
  }
  const parts: Buffer[] = [];
  for await (const part of getHeapSnapshot()) parts.push(Buffer.from(part as Uint8Array));
  const { snapshot, nodes, strings } = JSON.parse(Buffer.concat(parts).toString()) as Snapshot;
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [type, name, size] = ["type", "name", "self_size"].map((field) => fields.indexOf(field)) as [
    number,
    number,
    number,
  ];
  const objects = types[0].indexOf("object");
  const counts = new Map<string, number>();
  let bytes = 0;
  for (let at = 0; at < nodes.length; at += fields.length) {
    bytes += nodes[at + size] as number;
    if (nodes[at + type] !== objects) continue;
    const kind = strings[nodes[at + name] as number] as string;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return { bytes, counts };
}

/** Steps of one run. */
const STEPS = 50;

/** What `steps` steps add to the heap, after half as many, when the code is warm. */
async function growthOf(kind: Kind, steps: number): Promise<{ bytes: number; counts: Map<string, number> }> {
  const loop = new AgentLoop({ kind, version: "v2", calls: STEPS, parallel: 1, checkpointer: false });
  for (let done = 0; done < steps / 2; done += STEPS) await loop.run();
  const before = await freezeJson();
  for (let done = 0; done < steps; done += STEPS) await loop.run();
  const after = await freezeJson();
  const counts = new Map(
    [...after.counts].map(([name, count]) => [name, count - (before.counts.get(name) ?? 0)]),
  );
  return { bytes: after.bytes - before.bytes, counts };
}

/** Compares what judged steps leave in memory with what the same steps of a bare agent leave. */
export async function measureMemory(steps: number): Promise<MemoryFigure> {
  const host = await growthOf("none", steps);
  const ours = await growthOf("auto mode", steps);
  const grown = [...ours.counts]
    .map(([name, count]) => ({ name, count: count - (host.counts.get(name) ?? 0) }))
    // Fewer than one for a hundred steps are no trace of the steps.
    .filter(({ count }) => count > steps / 100)
    .toSorted((a, b) => b.count - a.count);
  return { steps, bytesPerStep: ours.bytes / steps, hostBytesPerStep: host.bytes / steps, grown };
}

/**
 * What the guard costs, as ratios measured side by side in one run: against an agent without middleware,
 * with a no-op wrapToolCall, with the same beside a private state, and with the plain guard of agents.ts.
 *
 *   npm run bench:overhead [-- --calls 1000 --rounds 1]
 */
import { setMaxListeners } from "node:events";
import { parseArgs } from "node:util";
import type { Kind, Setup } from "./agents.js";
import { formatTable } from "./format-table.js";
import { type Shape, type SlicedLoop, makeLoop } from "./loops.js";
import { median } from "./median.js";

type Measure = "processor" | "wall";

export interface Row {
  name: string;
  shape: Shape;
  setup: Omit<Setup, "kind" | "calls">;
  kinds: Kind[];
  measure: Measure;
  goals: { kind: Kind; against: Kind; atMost: number }[];
}

const COMPARED: Kind[] = ["none", "no-op", "no-op with state", "plain guard", "auto mode"];
/** Calls in a slice: a long turn of an agent. */
const SLICE = 50;

function rowsOf(version: "v1" | "v2"): Row[] {
  const common: Pick<Row, "measure" | "kinds" | "goals"> = {
    measure: "processor",
    kinds: COMPARED,
    goals: [],
  };
  const sequential = {
    ...common,
    kinds: [...COMPARED, "auto mode, unlisted"] satisfies Kind[],
    goals: [
      { kind: "auto mode", against: "plain guard", atMost: 1.25 },
      { kind: "auto mode, unlisted", against: "no-op with state", atMost: 1.05 },
    ] satisfies Row["goals"],
  };
  const one = { version, checkpointer: false, parallel: 1 } as const;
  const ten = { ...one, parallel: 10 };
  // A checkpoint of the host's holds all messages, so one long run on a store would measure mostly that.
  const stored = { checkpointer: true };
  return [
    { ...sequential, name: `${version}, one run, sequential`, shape: "one run", setup: one },
    { ...sequential, name: `${version}, runs of ${SLICE}, sequential`, shape: "many runs", setup: one },
    {
      ...sequential,
      name: `${version}, runs of ${SLICE}, sequential, checkpointer`,
      shape: "many runs",
      setup: { ...one, ...stored },
    },
    { ...common, name: `${version}, one run, 10 parallel`, shape: "one run", setup: ten },
    {
      ...common,
      name: `${version}, runs of ${SLICE}, 10 parallel, checkpointer`,
      shape: "many runs",
      setup: { ...ten, ...stored },
    },
    {
      name: `${version}, runs of ${SLICE}, 10 parallel, classifier of 100 ms`,
      shape: "many runs",
      setup: { ...ten, delayMs: 100 },
      kinds: ["plain guard", "auto mode"],
      measure: "wall",
      goals: [{ kind: "auto mode", against: "plain guard", atMost: 1.1 }],
    },
  ];
}

export const rows = (): Row[] => [...rowsOf("v1"), ...rowsOf("v2")];

export interface Figure {
  row: string;
  kind: Kind;
  requestsPerStep: number;
  /** Microseconds of one call, with all that the host does for it: the median over the slices. */
  microseconds: number;
  /** Microseconds of one call beyond what another kind takes: medians of the differences. */
  beyond: Partial<Record<Kind, number>>;
  /** Ratios to the other kinds of the row: medians over the slices, each measured side by side. */
  ratios: Partial<Record<Kind, number>>;
}

/** Milliseconds that something takes. Processor time counts all threads, garbage collection too. */
async function timed(by: Measure, work: () => Promise<void>): Promise<number> {
  const [wall, processor] = [performance.now(), process.cpuUsage()];
  await work();
  if (by === "wall") return performance.now() - wall;
  const { user, system } = process.cpuUsage(processor);
  return (user + system) / 1000;
}

/** Measures one row: its loops take turns, slice by slice, and each goes first equally often. */
export async function measure(row: Row, calls: number, rounds: number): Promise<Figure[]> {
  const size = Math.min(SLICE, calls);
  const slices = Math.max(1, Math.floor(calls / size / (row.setup.delayMs ? 4 : 1)));
  const times = new Map<Kind, number[]>(row.kinds.map((kind) => [kind, []]));
  const requestsPerStep = new Map<Kind, number>();
  const setupOf = (kind: Kind, count: number): Setup => ({ ...row.setup, kind, calls: count });
  // Warms the code up, and counts.
  for (const kind of row.kinds) {
    const loop = makeLoop("many runs", setupOf(kind, size), size);
    await loop.next();
    requestsPerStep.set(kind, loop.requests / (size / row.setup.parallel));
  }
  for (let round = 0; round < rounds; round += 1) {
    const loops = row.kinds.map((kind): [Kind, SlicedLoop] => [
      kind,
      makeLoop(row.shape, setupOf(kind, slices * size), size),
    ]);
    for (let slice = 0; slice < slices; slice += 1) {
      for (const [kind, loop] of loops) times.get(kind)?.push(await timed(row.measure, () => loop.next()));
      loops.push(...loops.splice(0, 1));
    }
  }
  const compare = (kind: Kind, by: (time: number, other: number) => number) =>
    Object.fromEntries(
      row.kinds.map((other) => [
        other,
        median(
          (times.get(kind) ?? []).map((time, slice) => by(time, times.get(other)?.[slice] ?? Number.NaN)),
        ),
      ]),
    );
  const perCall = 1000 / size;
  return row.kinds.map((kind) => ({
    row: row.name,
    kind,
    requestsPerStep: requestsPerStep.get(kind) ?? Number.NaN,
    microseconds: median(times.get(kind) ?? []) * perCall,
    beyond: compare(kind, (time, other) => (time - other) * perCall),
    ratios: compare(kind, (time, other) => time / other),
  }));
}

function toCells(row: Row, { kind, ratios, beyond, microseconds, requestsPerStep }: Figure): string[] {
  const goal = row.goals.find((each) => each.kind === kind);
  const ratio = (other: Kind): string => ratios[other]?.toFixed(2) ?? "";
  const isMet = goal && (ratios[goal.against] ?? Number.NaN) <= goal.atMost;
  return [
    row.name,
    kind,
    microseconds.toFixed(0),
    beyond[kind === "auto mode" ? "plain guard" : "no-op with state"]?.toFixed(0) ?? "",
    ratio("none"),
    ratio("no-op"),
    ratio("no-op with state"),
    ratio("plain guard"),
    requestsPerStep.toFixed(0),
    goal ? `${goal.atMost.toFixed(2)} of ${goal.against}: ${isMet ? "met" : "not met"}` : "",
  ];
}

const HEADER = [
  "loop",
  "agent",
  "µs a call",
  "µs beyond",
  "/ none",
  "/ no-op",
  "/ no-op with state",
  "/ plain guard",
  "requests a step",
  "goal",
];

export async function main(argv: string[], print: (line: string) => void = console.log): Promise<Figure[]> {
  const { values } = parseArgs({
    args: argv,
    options: { calls: { type: "string", default: "1000" }, rounds: { type: "string", default: "1" } },
  });
  const [calls, rounds] = [Number(values.calls), Number(values.rounds)];
  if (!(calls >= 10 && calls % Math.min(SLICE, calls) === 0 && calls % 10 === 0 && rounds >= 1))
    throw new Error(`--calls takes a multiple of ${SLICE}, or a smaller one of 10; --rounds takes 1 or more`);
  // The host listens for the abort of a run once for each call, and Node warns from the 11th on.
  setMaxListeners(0);
  const all: Figure[] = [];
  const table: string[][] = [];
  for (const row of rows()) {
    const figures = await measure(row, calls, rounds);
    all.push(...figures);
    const ours = figures.filter(({ kind }) => kind.startsWith("auto mode"));
    table.push(...ours.map((figure) => toCells(row, figure)));
  }
  print(
    `${calls} calls, processor time (wall time where the classifier takes 100 ms), lower is better. ` +
      "µs beyond: of a guarded call beyond the plain guard, of an unlisted call beyond the no-op with state",
  );
  print(`\n${formatTable(HEADER, table)}`);
  return all;
}

if (process.argv[1]?.endsWith("overhead.ts")) await main(process.argv.slice(2));

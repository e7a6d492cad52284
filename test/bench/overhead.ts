/**
 * What the guard costs, as ratios measured side by side in one run: against an agent without middleware,
 * with a no-op wrapToolCall, and with the plain guard of agents.ts.
 *
 *   npm run bench:overhead [-- --calls 1000 --rounds 5]
 */
import { parseArgs } from "node:util";
import { type Kind, type Setup, makeAgent } from "./agents.js";
import { median } from "./median.js";
import { formatTable } from "./format-table.js";

interface Row {
  name: string;
  setup: Omit<Setup, "kind" | "calls">;
  kinds: Kind[];
  /** What the last kind is divided by. */
  reach: { kind: Kind; against: Kind; atMost: number }[];
}

const GUARDED: Kind[] = ["none", "no-op", "plain guard", "auto mode"];

export function rows(): Row[] {
  const result: Row[] = [];
  for (const version of ["v1", "v2"] as const)
    for (const checkpointer of [false, true]) {
      const store = checkpointer ? ", checkpointer" : "";
      result.push({
        name: `${version} sequential${store}`,
        setup: { version, checkpointer, parallel: 1 },
        kinds: [...GUARDED, "auto mode, unlisted"],
        reach: [
          { kind: "auto mode", against: "plain guard", atMost: 1.15 },
          { kind: "auto mode, unlisted", against: "no-op", atMost: 1.05 },
        ],
      });
      result.push({
        name: `${version} 10 parallel${store}`,
        setup: { version, checkpointer, parallel: 10 },
        kinds: GUARDED,
        reach: [],
      });
    }
  for (const version of ["v1", "v2"] as const)
    result.push({
      name: `${version} 10 parallel, classifier of 100 ms`,
      setup: { version, checkpointer: false, parallel: 10, delayMs: 100 },
      kinds: ["plain guard", "auto mode"],
      reach: [{ kind: "auto mode", against: "plain guard", atMost: 1.1 }],
    });
  return result;
}

export interface Figure {
  row: string;
  kind: Kind;
  /** Milliseconds for all calls, median over the rounds. */
  ms: number;
  requests: number;
  /** Ratios to other kinds of the same row: medians of the ratios within each round. */
  ratios: Partial<Record<Kind, number>>;
}

/** Measures one row: all kinds in turn within each round, so that a busy moment hits them alike. */
export async function measure(row: Row, calls: number, rounds: number): Promise<Figure[]> {
  // A run of 50 calls is a long turn; more of them in one run would measure the host's growing history.
  const perRun = Math.min(50, calls);
  const times = new Map<Kind, number[]>();
  const requests = new Map<Kind, number>();
  for (let round = -1; round < rounds; round += 1)
    for (const kind of row.kinds) {
      const { run, classifier } = makeAgent({ kind, calls: perRun, ...row.setup });
      const repeat = round < 0 ? 1 : Math.ceil(calls / perRun / (row.setup.delayMs ? 4 : 1));
      const started = performance.now();
      for (let index = 0; index < repeat; index += 1) await run();
      // The first round only warms up.
      if (round >= 0) times.set(kind, [...(times.get(kind) ?? []), performance.now() - started]);
      requests.set(kind, classifier.requests / repeat / (perRun / row.setup.parallel));
    }
  return row.kinds.map((kind) => ({
    row: row.name,
    kind,
    ms: median(times.get(kind) ?? []),
    requests: requests.get(kind) ?? 0,
    ratios: Object.fromEntries(
      row.kinds.map((other) => [
        other,
        median(
          (times.get(kind) ?? []).map((time, round) => time / (times.get(other)?.[round] ?? Number.NaN)),
        ),
      ]),
    ),
  }));
}

export async function main(argv: string[], print: (line: string) => void = console.log): Promise<Figure[]> {
  const { values } = parseArgs({
    args: argv,
    options: { calls: { type: "string", default: "1000" }, rounds: { type: "string", default: "5" } },
  });
  const all: Figure[] = [];
  const table: string[][] = [];
  for (const row of rows()) {
    const figures = await measure(row, Number(values.calls), Number(values.rounds));
    all.push(...figures);
    for (const { kind, ratios, requests } of figures.filter((each) => each.kind.startsWith("auto mode"))) {
      const reach = row.reach.find((goal) => goal.kind === kind);
      const shown = (other: Kind): string => ratios[other]?.toFixed(2) ?? "";
      table.push([
        row.name,
        kind,
        shown("none"),
        shown("no-op"),
        shown("plain guard"),
        requests.toFixed(0),
        reach ? `${reach.atMost} of ${reach.against}` : "",
      ]);
    }
  }
  print(`${values.calls} calls, medians of ${values.rounds} rounds, ratios of wall time (lower is better)\n`);
  print(
    formatTable(
      ["loop", "agent", "/ none", "/ no-op", "/ plain guard", "requests per step", "at most"],
      table,
    ),
  );
  return all;
}

if (process.argv[1]?.endsWith("overhead.ts")) await main(process.argv.slice(2));

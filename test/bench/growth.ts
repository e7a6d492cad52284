/**
 * Whether anything grows with the length of a thread: the time and the request of a judged call, the
 * bytes in a checkpoint, the memory of the process.
 *
 *   npm run bench:growth [-- --longest 100000 --steps 10000]
 */
import { setMaxListeners } from "node:events";
import { parseArgs } from "node:util";
import { formatTable } from "./format-table.js";
import { type HistoryFigure, measureHistory } from "./growth-history.js";
import {
  type CheckpointFigure,
  type MemoryFigure,
  measureCheckpoint,
  measureMemory,
} from "./growth-state.js";

/** The length that others are compared with. */
const AGAINST = 100;

export interface GrowthFigures {
  history: HistoryFigure[];
  checkpoints: CheckpointFigure[];
  memory: MemoryFigure;
}

const count = (value: number): string => value.toLocaleString("en-US");

function historyTable(history: readonly HistoryFigure[]): string {
  return formatTable(
    ["messages", "ms, first call", "ms, later calls", `/ at ${AGAINST}`, "request, characters"],
    history.map(({ length, firstMs, laterMs, ratio, requestLength }) => [
      count(length),
      firstMs.toFixed(1),
      laterMs.toFixed(3),
      ratio.toFixed(2),
      count(requestLength),
    ]),
  );
}

export async function main(
  argv: string[],
  print: (line: string) => void = console.log,
): Promise<GrowthFigures> {
  const { values } = parseArgs({
    args: argv,
    options: {
      longest: { type: "string", default: "100000" },
      calls: { type: "string", default: "100" },
      rounds: { type: "string", default: "15" },
      steps: { type: "string", default: "10000" },
    },
  });
  const [longest, calls, rounds, steps] = [values.longest, values.calls, values.rounds, values.steps].map(
    Number,
  ) as [number, number, number, number];
  if (!(longest >= AGAINST && calls >= 1 && rounds >= 1 && steps >= 1))
    throw new Error(`--longest takes ${AGAINST} or more; --calls, --rounds and --steps take 1 or more`);
  setMaxListeners(0);
  const lengths = [10, AGAINST, 1_000, 10_000, 100_000].filter((length) => length <= longest);
  const history = await measureHistory(lengths, { calls, rounds, against: AGAINST });
  print(`Processor time and request of one judged call, medians of ${rounds} rounds of ${calls} calls`);
  print(`\n${historyTable(history)}`);

  const checkpoints = [];
  for (const guarded of [10, 100, 1_000].filter((each) => each <= steps))
    checkpoints.push(await measureCheckpoint(guarded));
  print("\nBytes of our channels in a checkpoint, every fifth call blocked\n");
  print(
    formatTable(
      ["guarded calls", "bytes"],
      checkpoints.map((each) => [count(each.calls), count(each.bytes)]),
    ),
  );

  const memory = await measureMemory(steps);
  const { bytesPerStep, hostBytesPerStep, grown } = memory;
  print(`\nHeap that ${count(steps)} steps left behind, in bytes for each step\n`);
  print(
    formatTable(
      ["agent without middleware", "judged steps"],
      [[hostBytesPerStep.toFixed(0), bytesPerStep.toFixed(0)]],
    ),
  );
  const kinds = grown.map(({ name, count: more }) => `${more} of ${name}`).join(", ");
  print(`\nObjects that judged steps left behind beside those: ${kinds === "" ? "none" : kinds}`);
  return { history, checkpoints, memory };
}

if (process.argv[1]?.endsWith("growth.ts")) await main(process.argv.slice(2));

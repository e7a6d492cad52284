/**
 * How long the import of this package takes, in processes of their own, beside the import of the host that its
 * users import anyway.
 *
 *   npm run bench:overhead [-- --calls 1000 --rounds 1]   prints it first
 */
import { execFileSync } from "node:child_process";
import { formatTable } from "./format-table.js";
import { median } from "./median.js";

const HOST = `await import("langchain"); await import("@langchain/langgraph"); await import("zod"); await import("@langchain/core/decisions");`;
const MEASURED = {
  host: "",
  "host, then langchain-auto-mode": `await import("langchain-auto-mode");`,
  "host, then langchain-auto-mode/classifiers": `await import("langchain-auto-mode/classifiers");`,
};
const PROCESSES = 15;

/** Milliseconds that the code takes in a process of its own, after the host is loaded. */
function timed(code: string): number {
  const script = `const start = performance.now(); ${HOST} ${code} console.log(performance.now() - start);`;
  return Number(
    execFileSync(process.execPath, ["--input-type=module", "--eval", script], { encoding: "utf8" }),
  );
}

const times = new Map(Object.keys(MEASURED).map((name) => [name, [] as number[]]));
for (let turn = 0; turn < PROCESSES; turn += 1)
  for (const [name, code] of Object.entries(MEASURED)) times.get(name)?.push(timed(code));

const host = times.get("host") ?? [];
const rows = [...times].map(([name, each]) => [
  name,
  median(each).toFixed(0),
  median(each.map((time, turn) => time - (host[turn] ?? Number.NaN))).toFixed(0),
]);
console.log(`\nImport time, median of ${PROCESSES} processes that take turns`);
console.log(`\n${formatTable(["imported", "ms", "ms beyond the host"], rows)}`);

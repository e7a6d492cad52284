import { type Decile } from "../../src/evaluation/metrics.js";
import type { Cost, GroupFigures, Wish } from "./summary.js";

/** A table of texts: the first row is its head. */
export type Table = readonly (readonly string[])[];

const percent = (value: number | undefined): string =>
  value === undefined ? "-" : `${(100 * value).toFixed(1)} %`;
const decimal = (value: number | undefined, digits = 3): string => value?.toFixed(digits) ?? "-";

export function figuresTable(rows: readonly GroupFigures[], threshold: number): Table {
  return [
    [
      "",
      "cases",
      "risky",
      "no answer",
      "ROC AUC",
      "benign blocked at 10 % missed",
      "missed at 1 % benign blocked",
      "Brier",
      `benign blocked at ${threshold}`,
      `missed at ${threshold}`,
    ],
    ...rows.map((row) => [
      row.title,
      String(row.cases),
      String(row.risky),
      String(row.unavailable),
      decimal(row.auc),
      percent(row.falsePositivesAt10),
      percent(row.missesAt1),
      decimal(row.brier),
      percent(row.falsePositives),
      percent(row.misses),
    ]),
  ];
}

export function wishesTable(wishes: readonly Wish[]): Table {
  return [
    ["", "wished: benign blocked, at most", "threshold", "benign blocked", "missed"],
    ...wishes.map(({ title, falsePositives, point, anyRisky }) => [
      title,
      percent(falsePositives),
      thresholdText(point?.threshold),
      percent(point?.falsePositives),
      percent(anyRisky ? point?.misses : undefined),
    ]),
  ];
}

function thresholdText(threshold: number | undefined): string {
  if (threshold === undefined) return "-";
  return threshold === Infinity ? "none: it blocks nothing" : threshold.toFixed(4);
}

export function reliabilityTable(deciles: readonly Decile[]): Table {
  return [
    ["risk given", "cases", "mean risk", "really risky"],
    ...deciles.map(({ from, to, count, predicted, observed }) => [
      `${from.toFixed(1)} to ${to.toFixed(1)}`,
      String(count),
      decimal(predicted),
      decimal(observed),
    ]),
  ];
}

export function costTable({ medianMs, p95Ms, inputTokens, outputTokens }: Cost): Table {
  return [
    ["median latency", "95 % within", "input tokens", "output tokens"],
    [`${decimal(medianMs, 1)} ms`, `${decimal(p95Ms, 1)} ms`, String(inputTokens), String(outputTokens)],
  ];
}

/** The table for a terminal, as Markdown, so that it can be pasted. */
export function toMarkdown(table: Table): string {
  const widths = (table[0] ?? []).map((_, column) =>
    Math.max(3, ...table.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  const [head = [], ...rows] = table;
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

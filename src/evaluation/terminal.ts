import type { Quality } from "./calibrate.js";
import type { Comparison, Cost, GroupFigures } from "./figures.js";
import type { Decile, Rate } from "./metrics.js";

/** Where a command prints, and how wide that is. */
export interface Terminal {
  /** One text and a line break. */
  readonly print: (text: string) => void;
  /** For progress and problems: the text alone, without a line break. */
  readonly printError: (text: string) => void;
  readonly width: number;
  /** Whether somebody watches the progress. */
  readonly isWatched: boolean;
}

// The reader of a file or a pipe has no known width.
const WIDTH_OF_A_FILE = 120;

/** The terminal of this process. */
export function processTerminal(): Terminal {
  return {
    print: (text) => process.stdout.write(`${text}\n`),
    printError: (text) => process.stderr.write(text),
    width: process.stdout.columns || WIDTH_OF_A_FILE,
    isWatched: process.stderr.isTTY,
  };
}

const BAR = 24;

/** A bar on one line that is drawn over itself, with the time that is left; one plain line where nobody watches. */
export function progress(title: string, total: number, terminal: Terminal): { step(): void; end(): void } {
  const started = performance.now();
  let done = 0;
  let drawn = 0;
  const draw = (): void => {
    const filled = Math.round((BAR * done) / Math.max(1, total));
    const left =
      done === 0 ? "" : `, ${duration(((performance.now() - started) / done) * (total - done))} left`;
    terminal.printError(
      `\r\u001b[2K${title} ${"█".repeat(filled)}${"░".repeat(BAR - filled)} ${done}/${total}${left}`,
    );
    drawn = performance.now();
  };
  if (terminal.isWatched) draw();
  else terminal.printError(`${title}: ${total} cases\n`);
  return {
    step() {
      done += 1;
      if (terminal.isWatched && performance.now() - drawn > 100) draw();
    },
    end() {
      if (!terminal.isWatched) return;
      draw();
      terminal.printError("\n");
    },
  };
}

function duration(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  return seconds < 90 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`;
}

/** A table of texts: the first row is its head. */
export type Table = readonly (readonly string[])[];

const percent = (value: number | undefined): string =>
  value === undefined ? "-" : `${(100 * value).toFixed(1)} %`;
const decimal = (value: number | undefined, digits = 3): string =>
  value === undefined || Number.isNaN(value) ? "-" : value.toFixed(digits);
/** A rate with its interval, as `4.0 % (1.1-13.5)`. */
const rateText = (rate: Rate | undefined): string =>
  rate === undefined
    ? "-"
    : `${percent(rate.rate)} (${(100 * rate.low).toFixed(1)}-${(100 * rate.high).toFixed(1)})`;

export function figuresTable(rows: readonly GroupFigures[], threshold: number): Table {
  return [
    [
      "",
      "cases",
      "risky",
      "no answer",
      "ROC AUC",
      `false alarms at ${threshold}`,
      `missed at ${threshold}`,
      "false alarms at 10 % missed",
      "missed at 1 % false alarms",
      "Brier",
      "calibration error",
    ],
    ...rows.map((row) => [
      row.title,
      String(row.cases),
      String(row.risky),
      String(row.unavailable),
      decimal(row.auc),
      rateText(row.falseAlarms),
      rateText(row.misses),
      rateText(row.falseAlarmsAt10),
      rateText(row.missesAt1),
      decimal(row.brier),
      decimal(row.calibrationError),
    ]),
  ];
}

export function reliabilityTable(deciles: readonly Decile[]): Table {
  return [
    ["risk given", "cases", "mean risk", "really risky"],
    ...deciles.map(({ from, to, count, predicted, observed }) => [
      `${from.toFixed(1)} to ${to.toFixed(1)}`,
      String(count),
      decimal(predicted),
      rateText(observed),
    ]),
  ];
}

const qualities = ({ brier, calibrationError, auc }: Quality): string[] =>
  [brier, calibrationError, auc].map((figure) => decimal(figure, 4));

export function calibrationTable({ before, after }: { before: Quality; after: Quality }): Table {
  return [
    ["", "Brier", "calibration error", "ROC AUC"],
    ["before", ...qualities(before)],
    ["after, held out", ...qualities(after)],
  ];
}

export function comparisonTable(comparison: Comparison): Table {
  const { titles, auc, brier, calibrationError, onlyFirstRight, onlySecondRight } = comparison;
  const line = (nth: 0 | 1, right: number): string[] => [
    titles[nth],
    decimal(auc[nth]),
    decimal(brier[nth]),
    decimal(calibrationError[nth]),
    String(right),
  ];
  return [
    ["", "ROC AUC", "Brier", "calibration error", "right alone"],
    line(0, onlyFirstRight),
    line(1, onlySecondRight),
  ];
}

export function costTable({ medianMs, p95Ms, inputTokens, outputTokens }: Cost): Table {
  return [
    ["median latency", "95 % within", "input tokens", "output tokens"],
    [`${decimal(medianMs, 1)} ms`, `${decimal(p95Ms, 1)} ms`, String(inputTokens), String(outputTokens)],
  ];
}

const GAP = "  ";
const LEAST_TITLE = 8;

/**
 * The table for a terminal. Columns that do not fit the width go on below, each part with the first column, which is
 * cut if it is long.
 */
export function renderTable(table: Table, width: number): string {
  const [head = []] = table;
  const widthOf = (column: number): number => Math.max(...table.map((row) => row[column]?.length ?? 0));
  const widest = Math.max(0, ...head.slice(1).map((_, column) => widthOf(column + 1)));
  const titles = Math.min(widthOf(0), Math.max(LEAST_TITLE, width - widest - GAP.length));
  const parts: number[][] = [];
  let room = 0;
  for (let column = 1; column < head.length; column++) {
    const needed = widthOf(column) + GAP.length;
    if (needed > room) {
      parts.push([]);
      room = width - titles;
    }
    parts.at(-1)?.push(column);
    room -= needed;
  }
  if (parts.length === 0) parts.push([]);
  return parts
    .map((columns) =>
      table
        .flatMap((row, index) => {
          const cells = columns.map((column) => (row[column] ?? "").padStart(widthOf(column)));
          const line = [cut(row[0] ?? "", titles).padEnd(titles), ...cells].join(GAP).trimEnd();
          return index === 0 ? [line, "-".repeat(Math.min(width, line.length))] : [line];
        })
        .join("\n"),
    )
    .join("\n\n");
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}

/** Text in lines of at most this width, broken at spaces. */
export function wrap(text: string, width: number): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.join("\n");
}

// Everything that moves a terminal's cursor, colors its text, or turns its direction begins with one of these.
const COMMANDS = /[^\P{Cc}\n\t]|\p{Bidi_C}|[\u2028\u2029]/gu;

/**
 * Text that a terminal shows and does not obey: control characters become escapes such as `\u{1b}`. Line breaks
 * and tabs stay.
 */
export function visible(text: string): string {
  return text.replace(
    COMMANDS,
    (character) => `\\u{${character.codePointAt(0)!.toString(16).padStart(2, "0")}}`,
  );
}

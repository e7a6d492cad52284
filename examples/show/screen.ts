/** Prints what became of calls on a terminal of any width, with colors where it has them. */
import { styleText } from "node:util";
import type { ShownCall } from "./outcomes.js";

export interface Screen {
  /** Columns of a line. */
  readonly width: number;
  readonly hasColors: boolean;
}

// Of a pipe nobody knows where it is read. A line of more than 100 letters is hard to read anywhere.
const WIDTH_OF_A_PIPE = 80;
const WIDEST = 100;

/** The terminal of this process. `hasColors` of Node knows `NO_COLOR`, `FORCE_COLOR` and dumb terminals. */
export function processScreen(): Screen {
  const { stdout } = process;
  return {
    width: Math.min(stdout.columns || WIDTH_OF_A_PIPE, WIDEST),
    hasColors: stdout.isTTY && stdout.hasColors(),
  };
}

type Style = "green" | "yellow" | "red" | "bold" | "dim";

/** Colors a text, where the screen has colors. */
export const paint = (text: string, style: Style, { hasColors }: Screen): string =>
  // The screen has decided already, for a test as for a terminal.
  hasColors ? styleText(style, text, { validateStream: false }) : text;

/** Breaks a text between words, and words that are longer than a line. */
export function wrap(text: string, width: number): string[] {
  const pieces = text
    .split(/\s+/)
    .filter((word) => word !== "")
    .flatMap((word) => word.match(new RegExp(`.{1,${Math.max(1, width)}}`, "gu")) ?? []);
  const lines: string[] = [];
  for (const piece of pieces) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + piece.length > width) lines.push(piece);
    else lines[lines.length - 1] = `${last} ${piece}`;
  }
  return lines;
}

/** A paragraph with a hanging indent. */
export function paragraph(text: string, indent: string, { width }: Screen): string[] {
  return wrap(text, width - indent.length).map((line) => `${indent}${line}`);
}

const LOOK = {
  good: { mark: "✓", color: "green" },
  asked: { mark: "?", color: "yellow" },
  bad: { mark: "✗", color: "red" },
} as const;

const showRisk = (risk: number | undefined): string => (risk === undefined ? "" : `risk ${risk.toFixed(2)}`);

/** One block of lines for each call: verdict, risk and call, and below who read what about it. */
export function formatCalls(calls: readonly ShownCall[], screen: Screen): string[] {
  const widest = Math.max(0, ...calls.map(({ verdict }) => verdict.length));
  const fits = calls.every(({ call }) => 2 + 2 + widest + 2 + 9 + 2 + call.length <= screen.width);
  return calls.flatMap(({ tone, verdict, risk, call, notes }) => {
    const { mark, color } = LOOK[tone];
    const colored = paint(`${mark} ${verdict}`, color, screen);
    const head = fits
      ? [`  ${colored}${" ".repeat(widest - verdict.length)}  ${showRisk(risk).padEnd(9)}  ${call}`]
      : [`  ${colored}  ${showRisk(risk)}`.trimEnd(), ...paragraph(call, "    ", screen)];
    const said = notes.flatMap(({ who, text }) =>
      paragraph(`${who}: ${text}`, "      ", screen).map((line) => paint(line, "dim", screen)),
    );
    return [...head, ...said, ""];
  });
}

/**
 * Draws what three-outcomes.ts really does, for the README.
 *
 * Run it: npm run picture
 */
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { ASK_AT, THRESHOLD, threeOutcomes } from "../three-outcomes.js";
import type { ShownCall } from "./outcomes.js";
import { wrap } from "./screen.js";

export const PICTURE = fileURLToPath(new URL("../../docs/three-outcomes.svg", import.meta.url));

const WIDTH = 840;
const MARGIN = 24;
const LEFT = 76;
const LINE = 20;
const SCALE = { left: 596, width: 220 };
// The font is the reader's own, so its letters are taken to be wider than they mostly are.
const LETTERS_PER_LINE = 82;

const STYLE = `
    svg { --page: #ffffff; --edge: #d0d7de; --text: #1f2328; --soft: #59636e; --good: #1a7f37; --asked: #9a6700; --bad: #cf222e; }
    @media (prefers-color-scheme: dark) {
      svg { --page: #0d1117; --edge: #3d444d; --text: #f0f6fc; --soft: #9198a1; --good: #3fb950; --asked: #d29922; --bad: #f85149; }
    }
    text { font: 14px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: var(--text); }
    .page { fill: var(--page); stroke: var(--edge); }
    .edge { stroke: var(--edge); }
    .soft { fill: var(--soft); }
    .verdict { font-size: 17px; font-weight: 600; }
    .call { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
    .small { font-size: 11px; fill: var(--soft); }
    .ends { text-anchor: end; }
    .good { fill: var(--good); } .asked { fill: var(--asked); } .bad { fill: var(--bad); }
    .zone { opacity: 0.3; }
    .mark { fill: none; stroke: var(--page); stroke-width: 2.5; stroke-linecap: round; stroke-linejoin: round; }
    .here { stroke: var(--page); stroke-width: 2; }`;

/** Drawn and not written, since a font may have other signs or none. */
const MARKS: Record<ShownCall["tone"], string> = {
  good: "M-6 0 l4 5 l8 -10",
  asked: "M-4 -4 a4 4 0 1 1 5.5 3.7 q-1.5 0.8 -1.5 2.6 M0 7 l0 0.1",
  bad: "M-5 -5 l10 10 M5 -5 l-10 10",
};

const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

const write = (x: number, y: number, text: string, classes = ""): string =>
  `<text x="${x}" y="${y}"${classes && ` class="${classes}"`}>${escapeXml(text)}</text>`;

const at = (risk: number): number => SCALE.left + Math.round(SCALE.width * risk);

/** The scale from 0 to 1 with its three zones, and where this call is on it. */
function drawScale(y: number, risk: number, tone: ShownCall["tone"]): string[] {
  const zones = [
    ["good", 0, ASK_AT],
    ["asked", ASK_AT, THRESHOLD],
    ["bad", THRESHOLD, 1],
  ] as const;
  return [
    write(SCALE.left, y - 10, `risk ${risk.toFixed(2)}`, tone),
    ...zones.map(
      ([zone, from, to]) =>
        `<rect class="zone ${zone}" x="${at(from)}" y="${y}" width="${at(to) - at(from)}" height="8"/>`,
    ),
    write(at(ASK_AT) + 2, y + 21, "askAt", "small ends"),
    write(at(THRESHOLD) - 2, y + 21, "threshold", "small"),
    `<circle class="here ${tone}" cx="${at(risk)}" cy="${y + 4}" r="7"/>`,
  ];
}

/** One call: what became of it, how risky it was, and who read what. */
function drawCall({ tone, verdict, risk = 1, call, notes }: ShownCall, top: number) {
  const said = notes.flatMap(({ who, text }) =>
    wrap(text, LETTERS_PER_LINE).map((line, index) => ({
      who: index === 0 ? who : "",
      line,
    })),
  );
  const firstNote = top + 84;
  const parts = [
    `<circle class="${tone}" cx="48" cy="${top + 36}" r="14"/>`,
    `<path class="mark" transform="translate(48 ${top + 36})" d="${MARKS[tone]}"/>`,
    write(LEFT, top + 32, verdict, `verdict ${tone}`),
    write(LEFT, top + 54, call, "call"),
    ...drawScale(top + 34, risk, tone),
    ...said.flatMap(({ who, line }, index) => [
      ...(who ? [write(LEFT, firstNote + index * LINE, who, "soft")] : []),
      write(LEFT + 106, firstNote + index * LINE, line),
    ]),
  ];
  return { parts, bottom: firstNote + (said.length - 1) * LINE + 22 };
}

/** The picture as SVG, for light and dark pages. */
export function drawPicture(calls: readonly ShownCall[]): string {
  const parts: string[] = [];
  let top = 8;
  for (const [index, call] of calls.entries()) {
    if (index > 0)
      parts.push(`<line class="edge" x1="${MARGIN}" x2="${WIDTH - MARGIN}" y1="${top}" y2="${top}"/>`);
    const drawn = drawCall(call, top);
    parts.push(...drawn.parts);
    top = drawn.bottom;
  }
  const height = top + 8;
  const summary = calls.map(({ verdict, call, risk }) => `${call}: risk ${risk}, ${verdict}`).join(". ");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title summary">
  <title id="title">Three calls of an agent and what became of them</title>
  <desc id="summary">${escapeXml(summary)}.</desc>
  <style>${STYLE}
  </style>
  <rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="10"/>
  ${parts.join("\n  ")}
</svg>
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await writeFile(PICTURE, drawPicture(await threeOutcomes()));

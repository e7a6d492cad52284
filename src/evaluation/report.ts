import { type Advice, adviceText } from "./advice.js";
import type { FittedCalibration } from "./calibrate.js";
import {
  type Comparison,
  comparisonText,
  type Cost,
  type GroupFigures,
  type Judged,
  distance,
  scoredOf,
  worstMistakes,
} from "./figures.js";
import { reliability, operatingPoints, rocAuc, type Scored } from "./metrics.js";
import {
  calibrationTable,
  comparisonTable,
  costTable,
  figuresTable,
  reliabilityTable,
  type Table,
} from "./terminal.js";

/** All that an evaluation found. */
export interface Findings {
  readonly title: string;
  /** What has to be known to read the figures. */
  readonly notes: readonly string[];
  readonly judged: readonly Judged[];
  readonly threshold: number;
  readonly advice: Advice;
  readonly figures: readonly GroupFigures[];
  readonly tools: readonly GroupFigures[];
  readonly cost: Cost;
  readonly calibration: FittedCalibration | undefined;
  readonly comparison: Comparison | undefined;
}

const WORST = 10;

// Light and dark by the reader's own setting. Wide tables and long words scroll or break inside their box: the page
// itself never scrolls sideways.
const STYLE = `
  :root { color-scheme: light dark; --page: #fff; --text: #1d2025; --faint: #5d6570; --line: #d7dbe0; --box: #f3f5f7;
    --color-0: #2f62c9; --color-1: #c8502d; --color-2: #2b8a57; --color-3: #8a4fc0; --color-4: #96741a; --color-5: #1d8494; }
  @media (prefers-color-scheme: dark) {
    :root { --page: #14171b; --text: #e6e9ed; --faint: #a0a8b3; --line: #363c45; --box: #1f242a;
      --color-0: #7fa8ff; --color-1: #ff9a78; --color-2: #66cc94; --color-3: #c79bf2; --color-4: #d9b657; --color-5: #62c7d8; } }
  * { box-sizing: border-box; }
  body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; background: var(--page);
    color: var(--text); overflow-wrap: anywhere; }
  h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2rem; } h3 { font-size: 1rem; }
  .advice { background: var(--box); border-left: 4px solid var(--color-0); padding: 0.5rem 1rem; }
  .advice p:first-child { font-weight: 600; font-size: 1.1rem; }
  .faint, figcaption { color: var(--faint); }
  .wide { overflow-x: auto; }
  table { border-collapse: collapse; overflow-wrap: normal; }
  th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
  th { white-space: normal; vertical-align: bottom; }
  th:first-child, td:first-child { text-align: left; }
  .plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.5rem; }
  figure { margin: 0; } svg { width: 100%; height: auto; } svg text { fill: var(--faint); font-size: 13px; }
  .grid { stroke: var(--line); } .even { stroke: var(--faint); stroke-dasharray: 4 4; fill: none; }
  .curve { fill: none; stroke: var(--color); stroke-width: 2; } .dot, .bar { fill: var(--color); } .dot { fill-opacity: 0.7; }
  .set { stroke: var(--text); stroke-dasharray: 2 3; }
  .legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1rem; margin: 0; padding: 0; font-size: 0.85rem; }
  .key { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.4em; background: var(--color); }
  .color-0 { --color: var(--color-0); } .color-1 { --color: var(--color-1); } .color-2 { --color: var(--color-2); }
  .color-3 { --color: var(--color-3); } .color-4 { --color: var(--color-4); } .color-5 { --color: var(--color-5); }
  pre { background: var(--box); padding: 0.75rem; white-space: pre-wrap; overflow-wrap: anywhere; }
`;

function tableRow(cells: readonly string[], tag: string): string {
  return `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
}

function htmlTable([head = [], ...rows]: Table): string {
  const body = rows.map((row) => tableRow(row, "td")).join("\n");
  return `<div class="wide"><table><thead>${tableRow(head, "th")}</thead><tbody>${body}</tbody></table></div>`;
}

const paragraphs = (texts: readonly string[], style = ""): string =>
  texts.map((text) => `<p${style === "" ? "" : ` class="${style}"`}>${escapeHtml(text)}</p>`).join("\n");

function mistake(judged: Judged, text: string | undefined): string {
  const truth = judged.risky ? "risky" : "benign";
  const from = [judged.source, judged.kind, judged.tool].filter((part) => part !== undefined).join(" / ");
  return [
    `<h3>${escapeHtml(judged.id)}: ${truth}, risk given ${(judged.risk ?? 0).toFixed(3)}</h3>`,
    `<p class="faint">${escapeHtml(from)}; off by ${distance(judged).toFixed(3)}</p>`,
    text === undefined ? "<p>The line holds no conversation.</p>" : `<pre>${escapeHtml(text)}</pre>`,
  ].join("\n");
}

/**
 * The report as one HTML page that loads nothing and runs nothing.
 *
 * @param textOf what the classifier read of a case; `undefined` if it is not known
 */
export function htmlReport(
  { title, notes, judged, threshold, advice, figures, tools, cost, calibration, comparison }: Findings,
  textOf: (judged: Judged) => string | undefined,
): string {
  const mistakes = worstMistakes(judged, threshold, WORST);
  const scored = scoredOf(judged);
  const curves = [
    { title: "as given", cases: scored },
    ...(calibration ? [{ title: "calibrated, held out", cases: calibration.corrected }] : []),
  ];
  const set = advice.kind === "settings" ? advice.settings.threshold : threshold;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeHtml(title)}</h1>
<div class="advice">
${paragraphs(adviceText(advice))}
</div>
${paragraphs(notes, "faint")}
${comparison ? `<h2>Two classifiers</h2>\n${paragraphs([comparisonText(comparison, threshold)])}\n${htmlTable(comparisonTable(comparison))}` : ""}
<h2>Figures</h2>
<p class="faint">In brackets: 95 % intervals (Wilson).${figures.some((row) => row.title.includes(" / ")) ? " A kind of one label alone is set against its source's cases of the other label." : ""}</p>
${htmlTable(figuresTable(figures, threshold))}
${tools.length === 0 ? "" : `<h2>By tool</h2>\n${htmlTable(figuresTable(tools, threshold))}`}
<h2>Plots</h2>
<div class="plots">
${thresholdPlot(judged, set)}
${rocPlot(groupsOf(judged))}
${reliabilityPlot(curves)}
${histogramPlot(judged)}
</div>
${calibration ? `<h2>Calibration</h2>\n${htmlTable(calibrationTable(calibration.heldOut))}` : ""}
<h2>Reliability</h2>
${htmlTable(reliabilityTable(reliability(scored)))}
<h2>Cost</h2>
${htmlTable(costTable(cost))}
<h2>The worst mistakes at ${threshold}</h2>
${mistakes.length === 0 ? "<p>None.</p>" : mistakes.map((one) => mistake(one, textOf(one))).join("\n")}
</body>
</html>
`;
}

// Drawn here and not by a plot library: three simple plots need about a hundred lines, and a library would
// need a document to draw into. Colors are classes of the page's style sheet, so that dark mode reaches them.

const WIDTH = 480;
const HEIGHT = 360;
const EDGE = { left: 56, right: 12, top: 12, bottom: 48 };
const COLORS = 6;

interface Frame {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly yMost: number;
  readonly inside: string;
  readonly legend: readonly string[];
}

const x = (value: number): number => round(EDGE.left + value * (WIDTH - EDGE.left - EDGE.right));
const y = (value: number): number => round(HEIGHT - EDGE.bottom - value * (HEIGHT - EDGE.top - EDGE.bottom));
const round = (value: number): number => Math.round(value * 10) / 10;

function frame({ title, xLabel, yLabel, yMost, inside, legend }: Frame): string {
  const ticks = [0, 0.25, 0.5, 0.75, 1]
    .map((at) => {
      const count = yMost === 1 ? String(at) : String(round(at * yMost));
      return [
        `<line class="grid" x1="${x(at)}" x2="${x(at)}" y1="${y(0)}" y2="${y(1)}"/>`,
        `<line class="grid" x1="${x(0)}" x2="${x(1)}" y1="${y(at)}" y2="${y(at)}"/>`,
        `<text x="${x(at)}" y="${y(0) + 18}" text-anchor="middle">${at}</text>`,
        `<text x="${x(0) - 6}" y="${y(at) + 4}" text-anchor="end">${count}</text>`,
      ].join("");
    })
    .join("");
  const names = legend
    .map((name, index) => `<li><span class="key color-${index % COLORS}"></span>${escapeHtml(name)}</li>`)
    .join("");
  return [
    `<figure><figcaption>${escapeHtml(title)}</figcaption>`,
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">`,
    ticks,
    `<text x="${x(0.5)}" y="${HEIGHT - 8}" text-anchor="middle">${escapeHtml(xLabel)}</text>`,
    `<text x="14" y="${y(0.5)}" text-anchor="middle" transform="rotate(-90 14 ${y(0.5)})">${escapeHtml(yLabel)}</text>`,
    inside,
    "</svg>",
    legend.length > 1 ? `<ul class="legend">${names}</ul>` : "",
    "</figure>",
  ].join("\n");
}

function path(points: readonly (readonly [number, number])[], name: string): string {
  const places = points.map(([across, up]) => `${x(across)},${y(up)}`);
  return `<polyline class="${name}" points="${places.join(" ")}"/>`;
}

const DIAGONAL = path(
  [
    [0, 0],
    [1, 1],
  ],
  "even",
);

interface Named {
  readonly title: string;
  readonly cases: readonly Scored[];
}

/** All cases, and each source if there are several. */
function groupsOf(judged: readonly Judged[]): Named[] {
  const sources = [...new Set(judged.map(({ source }) => source))].toSorted();
  const groups: Named[] = [{ title: "all", cases: scoredOf(judged) }];
  if (sources.length > 1)
    for (const source of sources)
      groups.push({ title: source, cases: scoredOf(judged.filter((one) => one.source === source)) });
  return groups;
}

/** The ROC curve of each group that has both labels. */
function rocPlot(groups: readonly Named[]): string {
  const curves = groups.filter(({ cases }) => rocAuc(cases) !== undefined);
  const lines = curves.map(({ cases }, index) =>
    path(
      operatingPoints(cases).map(({ falsePositives, misses }) => [falsePositives, 1 - misses]),
      `curve color-${index % COLORS}`,
    ),
  );
  return frame({
    title: "ROC: what is caught for how many false alarms",
    xLabel: "share of benign calls blocked",
    yLabel: "share of risky calls blocked",
    yMost: 1,
    inside: [DIAGONAL, ...lines].join(""),
    legend: curves.map(({ title }) => title),
  });
}

/** How often a call was risky, against the risk that was given. */
function reliabilityPlot(groups: readonly Named[]): string {
  const curves = groups.map(({ cases }, index) => {
    const deciles = reliability(cases);
    const dots = deciles.map(
      ({ predicted, observed, share, count }) =>
        `<circle class="dot color-${index % COLORS}" cx="${x(predicted)}" cy="${y(observed.rate)}" r="${round(3 + 9 * Math.sqrt(share))}"><title>${count} cases</title></circle>`,
    );
    const line = path(
      deciles.map(({ predicted, observed }) => [predicted, observed.rate]),
      `curve color-${index % COLORS}`,
    );
    return line + dots.join("");
  });
  return frame({
    title: "Reliability: how often a call with this risk is risky",
    xLabel: "risk given (mean of a tenth)",
    yLabel: "share that is risky",
    yMost: 1,
    inside: [DIAGONAL, ...curves].join(""),
    legend: groups.map(({ title }) => title),
  });
}

const BINS = 20;

/** How many labels of each kind got which risk. */
function histogramPlot(judged: readonly Judged[]): string {
  const bins = [false, true].map((risky) => {
    const counts = Array.from({ length: BINS }, () => 0);
    for (const one of scoredOf(judged))
      if (one.risky === risky) counts[Math.min(BINS - 1, Math.floor(one.risk * BINS))]! += 1;
    return counts;
  });
  const most = Math.max(1, ...bins.flat());
  const bars = bins.flatMap((counts, kind) =>
    counts.map((count, bin) => {
      // Side by side: one in front of the other would hide it.
      const left = x((bin + kind / 2) / BINS);
      const right = x((bin + (kind + 1) / 2) / BINS);
      const height = round(y(0) - y(count / most));
      return count === 0
        ? ""
        : `<rect class="bar color-${kind}" x="${left}" y="${y(count / most)}" width="${round(right - left)}" height="${height}"/>`;
    }),
  );
  return frame({
    title: "Risks given",
    xLabel: "risk given",
    yLabel: "labeled calls",
    yMost: most,
    inside: bars.join(""),
    legend: ["benign", "risky"],
  });
}

/** What each threshold does: false alarms and misses against it. */
function thresholdPlot(judged: readonly Judged[], set: number | undefined): string {
  const points = operatingPoints(scoredOf(judged)).filter(({ threshold }) => threshold <= 1);
  const line = (of: "falsePositives" | "misses", color: number): string =>
    path(
      points.map((point) => [point.threshold, point[of]]),
      `curve color-${color}`,
    );
  const mark =
    set === undefined ? "" : `<line class="set" x1="${x(set)}" x2="${x(set)}" y1="${y(0)}" y2="${y(1)}"/>`;
  return frame({
    title: "What a threshold does",
    xLabel: "threshold",
    yLabel: "share of calls",
    yMost: 1,
    inside: points.length === 0 ? "" : mark + line("falsePositives", 0) + line("misses", 1),
    legend: ["benign calls blocked", "risky calls not blocked"],
  });
}

/** Text as HTML: anybody may have written what is in a case. */
function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

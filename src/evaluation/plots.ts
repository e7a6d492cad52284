import { escapeHtml } from "./html.js";
import { type Judged, scoredOf } from "./judged.js";
import { operatingPoints, reliability, rocAuc, type Scored } from "./metrics.js";

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
export function groupsOf(judged: readonly Judged[]): Named[] {
  const sources = [...new Set(judged.map(({ source }) => source))].toSorted();
  const groups: Named[] = [{ title: "all", cases: scoredOf(judged) }];
  if (sources.length > 1)
    for (const source of sources)
      groups.push({ title: source, cases: scoredOf(judged.filter((one) => one.source === source)) });
  return groups;
}

/** The ROC curve of each group that has both labels. */
export function rocPlot(groups: readonly Named[]): string {
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
export function reliabilityPlot(groups: readonly Named[]): string {
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
export function histogramPlot(judged: readonly Judged[]): string {
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
export function thresholdPlot(judged: readonly Judged[], set: number | undefined): string {
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

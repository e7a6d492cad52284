import { type Judged, distance, scoredOf, worstMistakes } from "../../src/evaluation/judged.js";
import { reliability } from "../../src/evaluation/metrics.js";
import { histogramPlot, reliabilityPlot, rocPlot } from "./plots.js";
import type { Cost, GroupFigures, Wish } from "./summary.js";
import { costTable, figuresTable, reliabilityTable, type Table, wishesTable } from "./table.js";

/** All that a report shows. */
export interface Report {
  readonly title: string;
  readonly judged: readonly Judged[];
  readonly threshold: number;
  readonly figures: readonly GroupFigures[];
  readonly wishes: readonly Wish[];
  readonly cost: Cost;
  /** What the classifier read of a case, as text. `undefined` if it is not known. */
  readonly textOf: (judged: Judged) => string | undefined;
}

const WORST = 10;

const STYLE = `
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #222; }
  table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
  th, td { padding: 0.2rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right; }
  th:first-child, td:first-child { text-align: left; }
  figure { margin: 0; }
  .plots { display: flex; flex-wrap: wrap; gap: 2rem; }
  pre { background: #f6f6f6; padding: 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
`;

/** Text as HTML: what stands in cases was written by whoever wanted to be read. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

function line(cells: readonly string[], tag: string): string {
  return `<tr>${cells.map((cell) => `<${tag}>${escapeHtml(cell)}</${tag}>`).join("")}</tr>`;
}

function htmlTable([head = [], ...rows]: Table): string {
  return `<table><thead>${line(head, "th")}</thead><tbody>${rows.map((row) => line(row, "td")).join("\n")}</tbody></table>`;
}

function mistake(judged: Judged, text: string | undefined): string {
  const truth = judged.risky ? "risky" : "benign";
  return [
    `<h3>${escapeHtml(judged.id)}: ${truth}, risk given ${(judged.risk ?? 0).toFixed(3)}</h3>`,
    `<p>${escapeHtml(`${judged.source} / ${judged.kind}`)}; off by ${distance(judged).toFixed(3)}</p>`,
    text === undefined ? "<p>The log holds no conversation.</p>" : `<pre>${escapeHtml(text)}</pre>`,
  ].join("\n");
}

/** The report as one HTML page that loads nothing and runs nothing. */
export function htmlReport({ title, judged, threshold, figures, wishes, cost, textOf }: Report): string {
  const mistakes = worstMistakes(judged, threshold, WORST);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeHtml(title)}</h1>
<h2>Figures</h2>
<p>A kind of one label alone is set against its source's cases of the other label.</p>
${htmlTable(figuresTable(figures, threshold))}
<h2>Thresholds</h2>
${htmlTable(wishesTable(wishes))}
<div class="plots">
<div><h2>ROC</h2>${rocPlot(judged)}</div>
<div><h2>Reliability</h2>${reliabilityPlot(judged)}${htmlTable(reliabilityTable(reliability(scoredOf(judged))))}</div>
<div><h2>Risks given</h2>${histogramPlot(judged)}</div>
</div>
<h2>Cost</h2>
${htmlTable(costTable(cost))}
<h2>The worst mistakes at ${threshold}</h2>
${mistakes.length === 0 ? "<p>None.</p>" : mistakes.map((one) => mistake(one, textOf(one))).join("\n")}
</body>
</html>
`;
}

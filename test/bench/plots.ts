import * as Plot from "@observablehq/plot";
import { parseHTML } from "linkedom";
import { type Judged, scoredOf } from "../../src/evaluation/judged.js";
import { operatingPoints, reliability, rocAuc } from "../../src/evaluation/metrics.js";

// A document without a page around it: Plot draws into it, and no browser is needed.
const { document } = parseHTML("<!doctype html><html><body></body></html>");

function svg(options: Plot.PlotOptions): string {
  return Plot.plot({ ...options, document }).outerHTML;
}

/** The ROC curve of each source that has both labels, and of all cases. */
export function rocPlot(judged: readonly Judged[]): string {
  const sources = [...new Set(judged.map(({ source }) => source))].toSorted();
  const groups = [{ title: "all", cases: scoredOf(judged) }];
  if (sources.length > 1)
    for (const source of sources)
      groups.push({ title: source, cases: scoredOf(judged.filter((one) => one.source === source)) });
  const points = groups
    .filter(({ cases }) => rocAuc(cases) !== undefined)
    .flatMap(({ title, cases }) =>
      operatingPoints(cases).map(({ falsePositives, misses }) => ({
        title,
        falsePositives,
        caught: 1 - misses,
      })),
    );
  return svg({
    width: 560,
    height: 460,
    grid: true,
    x: { label: "benign calls blocked, %", domain: [0, 100], percent: true },
    y: { label: "risky calls blocked, %", domain: [0, 100], percent: true },
    // Said outright: of no curves at all a scale of numbers would be guessed, whose legend needs a canvas.
    color: { type: "categorical", legend: true },
    marks: [
      Plot.line(
        [
          [0, 0],
          [1, 1],
        ],
        { stroke: "#bbb", strokeDasharray: "4 4" },
      ),
      Plot.line(points, { x: "falsePositives", y: "caught", stroke: "title" }),
    ],
  });
}

/** How often a call was risky, against the risk that was given. */
export function reliabilityPlot(judged: readonly Judged[]): string {
  const deciles = reliability(scoredOf(judged));
  return svg({
    width: 560,
    height: 460,
    grid: true,
    x: { label: "risk given (mean of the tenth)", domain: [0, 1] },
    y: { label: "share that is risky", domain: [0, 1] },
    r: { range: [3, 14] },
    marks: [
      Plot.line(
        [
          [0, 0],
          [1, 1],
        ],
        { stroke: "#bbb", strokeDasharray: "4 4" },
      ),
      Plot.line(deciles, { x: "predicted", y: "observed" }),
      Plot.dot(deciles, { x: "predicted", y: "observed", r: "count", fill: "currentColor" }),
    ],
  });
}

/** How many calls of each label got which risk. */
export function histogramPlot(judged: readonly Judged[]): string {
  const bars = scoredOf(judged).map(({ risk, risky }) => ({ risk, label: risky ? "risky" : "benign" }));
  const bins: Plot.BinXInputs<Plot.RectYOptions> = { x: "risk", fill: "label", thresholds: 20 };
  return svg({
    width: 560,
    height: 320,
    x: { label: "risk given", domain: [0, 1] },
    y: { label: "calls", grid: true },
    color: { legend: true, domain: ["benign", "risky"], range: ["#4269d0", "#ff725c"] },
    marks: [Plot.rectY(bars, Plot.binX({ y: "count" }, bins)), Plot.ruleY([0])],
  });
}

import { foldsOf, type Grouped } from "./calibrate.js";
import { type Judged, scoredOf } from "./figures.js";
import { operatingPoints, type Rate, rateOf, ratesAt, type Scored, thresholdFor } from "./metrics.js";

/** What is wanted: shares from 0 to 1. */
export interface Goal {
  /** The largest share of the benign calls that may be blocked. */
  readonly falseAlarms: number;
  /** The largest share of all calls that a person may be asked about. */
  readonly questions: number;
}

/** What two settings do to the labeled calls. */
export interface Outlook {
  readonly threshold: number;
  /** Undefined: nobody is asked. */
  readonly askAt: number | undefined;
  readonly falseAlarms: Rate;
  /** Risky calls that run: neither blocked nor asked about. */
  readonly misses: Rate;
  /** Calls of both labels that a person is asked about. */
  readonly questions: Rate;
  /** Risky calls among those asked about. */
  readonly riskyAsked: number;
}

/** A tool that the common threshold does not fit. */
export interface ToolMisfit {
  readonly tool: string;
  readonly problem: "false alarms" | "misses";
  /** What the common threshold does to its calls. */
  readonly rate: Rate;
  /** A threshold of its own that is better and keeps the goal. `undefined`: there is none. */
  readonly own: { readonly threshold: number; readonly falseAlarms: Rate; readonly misses: Rate } | undefined;
}

/** What to set, or why that cannot be said. */
export type Advice =
  | { readonly kind: "too few labels"; readonly risky: number; readonly benign: number }
  | { readonly kind: "no threshold"; readonly goal: Goal }
  | {
      readonly kind: "settings";
      readonly goal: Goal;
      readonly settings: Outlook;
      /** False alarms that the same choice of a threshold gave on cases that it had not seen. */
      readonly heldOutFalseAlarms: Rate | undefined;
      readonly tools: readonly ToolMisfit[];
    };

/**
 * Labels of each kind below which nothing is advised: even if none of 30 is wrong, the true rate may be above a
 * tenth.
 */
const FEWEST_LABELS = 30;
const FEWEST_OF_TOOL = 10;

/** What to set for the goal, judged by these cases. */
export function advise(judged: readonly Judged[], goal: Goal): Advice {
  const scored = scoredOf(judged);
  const risky = scored.filter((one) => one.risky).length;
  const benign = scored.length - risky;
  if (Math.min(risky, benign) < FEWEST_LABELS) return { kind: "too few labels", risky, benign };
  const threshold = thresholdWithin(scored, goal.falseAlarms);
  if (threshold === undefined) return { kind: "no threshold", goal };
  const settings = outlook(scored, threshold, askAtFor(scored, threshold, goal.questions));
  return {
    kind: "settings",
    goal,
    settings,
    heldOutFalseAlarms: heldOutFalseAlarms(scored, goal),
    tools: misfits(judged, settings, goal),
  };
}

function thresholdWithin(scored: readonly Grouped[], falseAlarms: number): number | undefined {
  const point = thresholdFor(scored, falseAlarms);
  return point === undefined || point.threshold === Infinity ? undefined : point.threshold;
}

/** The lowest `askAt` that asks about at most this share of all calls. */
function askAtFor(scored: readonly Grouped[], threshold: number, questions: number): number | undefined {
  const lower = operatingPoints(scored)
    .map((point) => point.threshold)
    .filter((askAt) => askAt < threshold);
  return lower.findLast((askAt) => (questionsOf(scored, threshold, askAt)?.rate ?? 1) <= questions);
}

function questionsOf(scored: readonly Grouped[], threshold: number, askAt: number): Rate | undefined {
  return rateOf(scored, ({ risk }) => risk >= askAt && risk < threshold);
}

const NONE: Rate = { rate: 0, low: 0, high: 1, count: 0, of: 0 };

function outlook(scored: readonly Grouped[], threshold: number, askAt: number | undefined): Outlook {
  const lowest = askAt ?? threshold;
  return {
    threshold,
    askAt,
    falseAlarms: ratesAt(scored, threshold).falseAlarms ?? NONE,
    misses: ratesAt(scored, lowest).misses ?? NONE,
    questions: questionsOf(scored, threshold, lowest) ?? NONE,
    riskyAsked: scored.filter(({ risk, risky }) => risky && risk >= lowest && risk < threshold).length,
  };
}

function heldOutFalseAlarms(scored: readonly Grouped[], goal: Goal): Rate | undefined {
  const held = foldsOf(scored).flatMap(({ held: some, rest }) => {
    const threshold = thresholdWithin(rest, goal.falseAlarms) ?? Infinity;
    return some.filter(({ risky }) => !risky).map((one) => ({ ...one, isBlocked: one.risk >= threshold }));
  });
  const blocked = new Set<Scored>(held.filter(({ isBlocked }) => isBlocked));
  return rateOf(held, (one) => blocked.has(one));
}

/** The tools whose rates differ from what the common threshold promises by more than chance explains. */
function misfits(
  judged: readonly Judged[],
  { threshold, misses: missed }: Outlook,
  goal: Goal,
): ToolMisfit[] {
  const common = ratesAt(scoredOf(judged), threshold).misses ?? missed;
  return [...new Set(judged.map(({ tool }) => tool))].toSorted().flatMap((tool): ToolMisfit[] => {
    const scored = scoredOf(judged.filter((one) => one.tool === tool));
    const { falseAlarms, misses } = ratesAt(scored, threshold);
    const alarming =
      falseAlarms !== undefined && falseAlarms.of >= FEWEST_OF_TOOL && falseAlarms.low > goal.falseAlarms;
    const missing = misses !== undefined && misses.of >= FEWEST_OF_TOOL && misses.low > common.high;
    if (!alarming && !missing) return [];
    const problem = alarming ? "false alarms" : "misses";
    const rate = alarming ? falseAlarms : misses!;
    return [{ tool, problem, rate, own: ownThreshold(scored, problem, rate, goal) }];
  });
}

function ownThreshold(
  scored: readonly Grouped[],
  problem: ToolMisfit["problem"],
  { low }: Rate,
  goal: Goal,
): ToolMisfit["own"] {
  const threshold = thresholdWithin(scored, goal.falseAlarms);
  if (threshold === undefined) return undefined;
  const { falseAlarms = NONE, misses = NONE } = ratesAt(scored, threshold);
  // By more than chance: a little less of the same problem is no other setting.
  const better = problem === "false alarms" ? falseAlarms.rate < low : misses.rate < low;
  return better ? { threshold, falseAlarms, misses } : undefined;
}

const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
const interval = ({ low, high }: Rate): string => `95 % interval ${percent(low)} to ${percent(high)}`;
const counted = ({ rate, count, of }: Rate): string => `${percent(rate)} (${count} of ${of} labels)`;
const calls = (count: number): string => `${count} ${count === 1 ? "label" : "labels"}`;

/** The advice in plain sentences. The first says what to set. */
export function adviceText(advice: Advice): string[] {
  switch (advice.kind) {
    case "too few labels":
      return [
        `No advice yet: there are ${calls(advice.risky)} for risky and ${calls(advice.benign)} for benign calls with a risk, and at least ${FEWEST_LABELS} of each are needed.`,
        "Label more calls with: npx langchain-auto-mode label FILE",
      ];
    case "no threshold":
      return [
        `No threshold keeps false alarms at or below ${percent(advice.goal.falseAlarms)}: benign calls got the risk 1. Use another classifier, or allow more false alarms with --wish.`,
      ];
    case "settings":
      return settingsText(advice);
  }
}

function settingsText({ goal, settings, heldOutFalseAlarms: heldOut, tools }: Advice & { kind: "settings" }) {
  const { threshold, askAt, falseAlarms, misses, questions, riskyAsked } = settings;
  const set = askAt === undefined ? `threshold: ${threshold}` : `threshold: ${threshold}, askAt: ${askAt}`;
  const asked =
    askAt === undefined
      ? "Nobody is asked: no lower limit keeps the questions within what is wanted."
      : `A person is asked about ${counted(questions)} of all calls (${interval(questions)}), of which ${riskyAsked} are risky.`;
  const sure =
    falseAlarms.high > 2 * Math.max(goal.falseAlarms, 0.005)
      ? `With ${falseAlarms.of} benign labels this is a rough estimate: the true rate of false alarms may be as high as ${percent(falseAlarms.high)}. More labels make it surer.`
      : `With ${falseAlarms.of} benign labels the true rate of false alarms is below ${percent(falseAlarms.high)} with 97.5 % confidence.`;
  return [
    `Set ${set}.`,
    `Of the benign calls ${counted(falseAlarms)} are blocked (${interval(falseAlarms)}); wanted is at most ${percent(goal.falseAlarms)}.`,
    `Of the risky calls ${counted(misses)} run unasked (${interval(misses)}).`,
    asked,
    sure,
    ...(heldOut === undefined
      ? []
      : [
          `A threshold chosen in the same way on four fifths of the labels blocked ${counted(heldOut)} of the benign calls of the other fifth (${interval(heldOut)}).`,
        ]),
    ...tools.map(toolText),
  ];
}

function toolText({ tool, problem, rate, own }: ToolMisfit): string {
  const now =
    problem === "false alarms"
      ? `${counted(rate)} of its benign calls are blocked (${interval(rate)})`
      : `${counted(rate)} of its risky calls are not blocked (${interval(rate)})`;
  if (own === undefined)
    return `The classifier does not fit ${tool}: ${now}, and no threshold within what is wanted changes that.`;
  return `One threshold does not fit ${tool}: ${now}. With threshold ${own.threshold} of its own, ${counted(own.falseAlarms)} of its benign calls are blocked (${interval(own.falseAlarms)}) and ${counted(own.misses)} of its risky calls are not (${interval(own.misses)}).`;
}

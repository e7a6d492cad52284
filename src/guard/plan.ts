import type { DecidedBy, Outcome } from "../decision-record.js";
import type { Counters, LimitName } from "../errors.js";
import { type Counted, type Limits, type LimitStatus, StepTally } from "../limits/counters.js";
import type { Malformation } from "./feedback.js";
import type { Answered } from "./classify.js";

/** What is known of one guarded call before the step is planned. */
export type Finding =
  | { readonly kind: "malformed"; readonly malformation: Malformation }
  /** A person approved this very call. */
  | { readonly kind: "approved" }
  /** Let through earlier in this step; a middleware behind the guard made it wait. */
  | { readonly kind: "passed"; readonly outcome: "allowed" | "approved" }
  | { readonly kind: "rule"; readonly answer: "allow" | "block" | "ask" }
  /** Something of the operator's failed before there was a request. */
  | { readonly kind: "failed"; readonly by: "precheck" | "environment" | "guard"; readonly error: unknown }
  /** The classifier blocked this very call earlier in the turn. */
  | { readonly kind: "repeated"; readonly risk: number }
  | {
      readonly kind: "judged";
      readonly answered: Answered;
      readonly threshold: number;
      readonly askAt?: number | undefined;
    };

/** A call as the plan sees it. */
export interface FoundCall {
  readonly finding: Finding;
  /** Whether a person can be asked about it: only if what they are shown is what would run. */
  readonly canWait: boolean;
}

/** What is configured, as far as the plan depends on it. */
export interface StepRules {
  readonly limits: Limits;
  readonly onUnavailable: "throw" | "continue" | "ask";
  readonly siblings: "independent" | "all-or-none";
  readonly mode: "enforce" | "observe";
  /** Whether reaching a limit asks a person. */
  readonly limitAsks: boolean;
}

/** What happens to one call. */
export interface Decision {
  readonly outcome: Outcome;
  readonly by: DecidedBy;
  /** Run the tool, answer with an error ToolMessage, or suspend the call until a person decides. */
  readonly action: "run" | "refuse" | "suspend";
  /** It is blocked because it needs an approval and nobody can be asked about it. */
  readonly lacksApproval: boolean;
  /** The limit that it would reach, for a call that waits because of it. */
  readonly limit?: LimitName | undefined;
  readonly counted: Counted;
  /** Counts after this call. */
  readonly counters: Counters;
}

/** What follows from the classifier's answer to one call. */
export type Verdict = "allowed" | "needs_approval" | "blocked" | "unavailable";

/**
 * At or above the threshold is blocked, from `askAt` on a person decides, and without a risk the call is
 * unavailable.
 */
export function verdictOf(answered: Answered, threshold: number, askAt = threshold): Verdict {
  if ("unavailable" in answered) return "unavailable";
  if (answered.risk >= threshold) return "blocked";
  return answered.risk >= askAt ? "needs_approval" : "allowed";
}

function verdictOn(finding: Finding): Verdict | "malformed" | "approved" {
  switch (finding.kind) {
    case "malformed":
      return "malformed";
    case "approved":
      return "approved";
    case "passed":
      return finding.outcome;
    case "failed":
      return "unavailable";
    case "repeated":
      return "blocked";
    case "rule":
      return ({ allow: "allowed", block: "blocked", ask: "needs_approval" } as const)[finding.answer];
    case "judged":
      return verdictOf(finding.answered, finding.threshold, finding.askAt);
  }
}

function deciderOf(finding: Finding): DecidedBy {
  switch (finding.kind) {
    case "malformed":
      return "guard";
    case "approved":
      return "human";
    case "passed":
      return finding.outcome === "approved" ? "human" : "classifier";
    case "rule":
      return "precheck";
    case "failed":
      return finding.by;
    case "repeated":
    case "judged":
      return "classifier";
  }
}

function judgedOf(finding: Finding): Counted["judged"] {
  switch (finding.kind) {
    case "failed":
      return "unavailable";
    case "judged":
      return "unavailable" in finding.answered ? "unavailable" : "verdict";
    default:
      return "no";
  }
}

/** A block by a fixed rule is final: it is never put to a person. */
const isFinal = (finding: Finding): boolean => finding.kind === "rule" && finding.answer === "block";

function actionOf(outcome: Outcome): Decision["action"] {
  switch (outcome) {
    case "waiting":
      return "suspend";
    case "allowed":
    case "approved":
      return "run";
    default:
      return "refuse";
  }
}

/** What holds the other calls of an all-or-none step back. */
const STOPS: ReadonlySet<Outcome> = new Set(["blocked", "unavailable", "waiting"]);

/**
 * Decides all guarded calls of one step at once. Pure: order, limits, siblings and counts follow from
 * the findings, whatever order the calls arrive or finish in.
 */
export function planStep(
  calls: readonly FoundCall[],
  limitStatus: LimitStatus,
  rules: StepRules,
): Decision[] {
  const verdicts = calls.map(({ finding }) => verdictOn(finding));
  // An error ends the run before anybody is asked: a call that waited would be left behind.
  const fails = rules.onUnavailable === "throw" && verdicts.includes("unavailable");
  const canWait = calls.map((call) => call.canWait && !fails && !isFinal(call.finding));
  const { limitAsks } = rules;
  const reachesUnavailable =
    limitStatus.counters.consecutiveUnavailable + 1 >= rules.limits.consecutiveUnavailable;
  const asksWhenUnavailable =
    rules.onUnavailable === "ask" || (rules.onUnavailable === "continue" && limitAsks && reachesUnavailable);

  const outcomes = verdicts.map((verdict, index): Outcome => {
    if (verdict === "needs_approval") return canWait[index] ? "waiting" : "blocked";
    return verdict === "unavailable" && asksWhenUnavailable && canWait[index] ? "waiting" : verdict;
  });
  const holdsBack = rules.siblings === "all-or-none" && outcomes.some((outcome) => STOPS.has(outcome));

  let tally = new StepTally(limitStatus, rules.limits);
  /** The limit about which an earlier call of the step asks already. */
  let asksAbout: LimitName | undefined;
  return calls.map(({ finding }, index) => {
    let outcome = outcomes[index] as Outcome;
    if (holdsBack && outcome === "allowed") outcome = "held_back";
    const judged = judgedOf(finding);
    const after = tally.copy().add({ outcome, judged });
    const { due, limit = asksAbout } = after.count;
    if (limitAsks && canWait[index] && outcome === "blocked" && (due || asksAbout)) {
      // The call that would reach the limit waits, and counts when it is answered.
      asksAbout = limit;
      outcome = "waiting";
    }
    if (outcome !== "waiting") tally = after;
    return {
      outcome,
      by: outcome === "held_back" ? "guard" : deciderOf(finding),
      action: rules.mode === "observe" ? "run" : actionOf(outcome),
      lacksApproval: outcome === "blocked" && verdicts[index] === "needs_approval",
      ...(outcome === "waiting" && verdicts[index] === "blocked" ? { limit } : {}),
      counted: { outcome, judged },
      counters: tally.count.counters,
    };
  });
}

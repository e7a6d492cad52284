import type { DecidedBy, Outcome } from "../decision-record.js";
import type { Counters } from "../errors.js";
import type { Malformation } from "./feedback.js";
import { type Counted, type Limits, type LimitStatus, countStep } from "../limits/counters.js";
import { type Answered, verdictOf } from "./verdict.js";

/** What is known of one guarded call before the step is planned. */
export type Finding =
  | { readonly kind: "malformed"; readonly malformation: Malformation }
  /** A person approved this very call. */
  | { readonly kind: "approved" }
  | { readonly kind: "rule"; readonly answer: "allow" | "block" }
  | { readonly kind: "judged"; readonly answered: Answered; readonly threshold: number };

/** What is configured, as far as the plan depends on it. */
export interface StepRules {
  readonly limits: Limits;
  readonly onUnavailable: "throw" | "continue" | "ask";
  readonly siblings: "independent" | "all-or-none";
  /** Whether reaching a limit asks a person. */
  readonly limitAsks: boolean;
}

/** What happens to one call. */
export interface Decision {
  readonly outcome: Outcome;
  readonly by: DecidedBy;
  /** Run the tool, answer with an error ToolMessage, or park the call until a person decides. */
  readonly action: "run" | "answer" | "park";
  readonly counted: Counted;
  /** Counts after this call. */
  readonly counters: Counters;
}

function outcomeOf(finding: Finding): Outcome {
  switch (finding.kind) {
    case "malformed":
      return "malformed";
    case "approved":
      return "approved";
    case "rule":
      return finding.answer === "allow" ? "allowed" : "blocked";
    case "judged":
      return verdictOf(finding.answered, finding.threshold);
  }
}

function deciderOf(finding: Finding): DecidedBy {
  return finding.kind === "rule"
    ? "precheck"
    : finding.kind === "approved"
      ? "human"
      : finding.kind === "malformed"
        ? "guard"
        : "classifier";
}

function judgedOf(finding: Finding): Counted["judged"] {
  if (finding.kind !== "judged") return "no";
  return "unavailable" in finding.answered ? "unavailable" : "verdict";
}

/** What holds the other calls of an all-or-none step back. */
const STOPS: ReadonlySet<Outcome> = new Set(["blocked", "unavailable", "waiting"]);

/**
 * Decides all guarded calls of one step at once. Pure: order, limits, siblings and counts follow from
 * the findings, whatever order the calls arrive or finish in.
 */
export function planStep(
  findings: readonly Finding[],
  canWait: readonly boolean[],
  limitStatus: LimitStatus,
  rules: StepRules,
): Decision[] {
  let outcomes = findings.map((finding) => outcomeOf(finding));

  const lastStrawUnavailable =
    rules.limitAsks &&
    rules.onUnavailable === "continue" &&
    limitStatus.counters.consecutiveUnavailable + 1 >= rules.limits.consecutiveUnavailable;
  if (rules.onUnavailable === "ask" || lastStrawUnavailable)
    outcomes = outcomes.map((outcome, index) =>
      outcome === "unavailable" && canWait[index] ? "waiting" : outcome,
    );

  if (rules.siblings === "all-or-none" && outcomes.some((outcome) => STOPS.has(outcome)))
    outcomes = outcomes.map((outcome) => (outcome === "allowed" ? "held_back" : outcome));

  // An error ends the run before any fallback: a call that waited would be left behind.
  const fails = rules.onUnavailable === "throw" && outcomes.includes("unavailable");
  const limitAsks = rules.limitAsks && !fails;
  const counted: Counted[] = [];
  let asking = false;
  return findings.map((finding, index) => {
    let outcome = outcomes[index] as Outcome;
    const judged = judgedOf(finding);
    let after = countStep(limitStatus, [...counted, { outcome, judged }], rules.limits);
    if (limitAsks && canWait[index] && outcome === "blocked" && (asking || after.due)) {
      // The call that would reach the limit waits, and counts when it is answered.
      asking = true;
      outcome = "waiting";
    }
    if (outcome === "waiting") after = countStep(limitStatus, counted, rules.limits);
    else counted.push({ outcome, judged });
    return {
      outcome,
      by: outcome === "held_back" ? "guard" : deciderOf(finding),
      action:
        outcome === "waiting" ? "park" : outcome === "allowed" || outcome === "approved" ? "run" : "answer",
      counted: { outcome, judged },
      counters: after.counters,
    };
  });
}

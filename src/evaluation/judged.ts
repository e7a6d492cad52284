import type { UnavailableReason } from "../errors.js";
import type { Scored } from "./metrics.js";

/** What a classifier said of a case, or why it said nothing. */
export interface Answer {
  readonly risk?: number;
  readonly unavailable?: UnavailableReason;
  readonly latencyMs?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}

/** A labelled case with the answer that it got. */
export interface Judged extends Answer {
  readonly id: string;
  readonly source: string;
  readonly kind: string;
  readonly recorded: boolean;
  readonly risky: boolean;
}

/** The cases that got a risk: only these can be scored. */
export function scoredOf(judged: readonly Judged[]): Scored[] {
  return judged.flatMap(({ risk, risky }) => (risk === undefined ? [] : { risk, risky }));
}

/** How far an answer is from the truth: 0 is right, 1 could not be further off. */
export function distance({ risk, risky }: Judged): number {
  return risk === undefined ? 0 : Math.abs(risk - (risky ? 1 : 0));
}

/** The cases on the wrong side of a threshold, the worst first. */
export function worstMistakes(judged: readonly Judged[], threshold: number, count: number): Judged[] {
  return judged
    .filter(({ risk, risky }) => risk !== undefined && risk >= threshold !== risky)
    .toSorted((a, b) => distance(b) - distance(a))
    .slice(0, count);
}

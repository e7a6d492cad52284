import type { Grouped } from "./calibrate.js";
import type { Answer, EvaluationCase } from "./read-cases.js";

/** A labeled case with the answer that it got. */
export interface Judged extends Answer {
  readonly id: string;
  readonly source: string;
  readonly kind: string | undefined;
  readonly tool: string;
  readonly group: string;
  readonly recorded: boolean;
  readonly risky: boolean;
  readonly weight: number;
}

/** A labeled case together with its answer. */
export function judgedOf(
  { id, source, kind, tool, group, recorded, risky, weight }: EvaluationCase,
  answer: Answer,
): Judged {
  return { id, source, kind, tool, group, recorded, risky: risky === true, weight, ...answer };
}

/** The cases that got a risk: only these can be scored. */
export function scoredOf(judged: readonly Judged[]): Grouped[] {
  return judged.flatMap(({ risk, risky, weight, group }) =>
    risk === undefined ? [] : { risk, risky, weight, group },
  );
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

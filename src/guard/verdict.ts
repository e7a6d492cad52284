import type { UnavailableReason } from "../errors.js";
import { RISK_KINDS, type RiskKind } from "./question.js";

/** What the classifier said of one call. */
export type Answered =
  | { readonly risk: number; readonly kind?: RiskKind; readonly explanation?: string }
  | { readonly unavailable: UnavailableReason };

/** What follows from it at a threshold. */
export type Verdict = "allowed" | "blocked" | "unavailable";

/** At or above the threshold is blocked; without a risk the call is unavailable. */
export function verdictOf(answered: Answered, threshold: number): Verdict {
  if ("unavailable" in answered) return "unavailable";
  return answered.risk >= threshold ? "blocked" : "allowed";
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

/**
 * Reads the answer for one call. Anything but a finite number in 0..1 is no risk at all, so that no
 * odd answer can pass as a low one.
 */
export function readAnswer(answers: unknown, callKey: string, kindKey: string): Answered | undefined {
  const answer = field(answers, callKey);
  const risk = field(answer, "noul");
  if (field(answer, "type") !== "noul" || typeof risk !== "number" || !(risk >= 0 && risk <= 1))
    return undefined;
  const kind = field(field(answers, kindKey), "choice");
  const explanation = field(answer, "explanation");
  return {
    risk,
    ...(typeof kind === "string" && kind !== "none" && Object.hasOwn(RISK_KINDS, kind)
      ? { kind: kind as RiskKind }
      : {}),
    ...(typeof explanation === "string" && explanation.trim() !== "" ? { explanation } : {}),
  };
}

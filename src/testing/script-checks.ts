import { z } from "zod";
import { ClassificationError, UNAVAILABLE_REASONS, type UnavailableReason } from "../errors.js";
import { check } from "../option-problem.js";

// A slip in a script must not be: a test would pass, or fail, for another reason than it tells.

const text = "a text that is not empty";
const delay = "milliseconds, from 0 to 2147483647";
const modelOptions = z.strictObject(
  {
    model: z.string(text).min(1, text).optional(),
    delayMs: z.number(delay).min(0, delay).max(2_147_483_647, delay).optional(),
    usage: z.looseObject({}, "an object with counts of tokens").optional(),
  },
  "an object of options",
);

const isRisk = (value: unknown): boolean => typeof value === "number" && value >= 0 && value <= 1;
const risk = z.custom<number>(isRisk, "a number from 0 to 1");
const respond = z.custom<never>((value) => typeof value === "function", "a function");
const riskOrRespond = z.custom<never>(
  (value) => isRisk(value) || typeof value === "function",
  "a number from 0 to 1, or a function that gives it",
);
const failure = z.custom<UnavailableReason | Error>(
  // Any object: how a guard copes with an odd error may be what is tested.
  (value) =>
    (typeof value === "object" && value !== null) ||
    (UNAVAILABLE_REASONS as readonly unknown[]).includes(value),
  `an error, or one of ${UNAVAILABLE_REASONS.map((reason) => `"${reason}"`).join(", ")}`,
);

/** Checks the options of a fake. */
export const checkModelOptions = (options: unknown): unknown => check(modelOptions, options, "");
/** Checks a scripted risk. */
export const checkRisk = (given: unknown, option: string): unknown => check(risk, given, option);
/** Checks a function that gives answers. What it gives is not checked: that may be what is tested. */
export const checkRespond = (given: unknown, option: string): unknown => check(respond, given, option);
/** Checks a scripted risk, or a function that gives answers. */
export const checkRiskOrRespond = (given: unknown, option: string): unknown =>
  check(riskOrRespond, given, option);
/** Checks a tool's name. */
export const checkToolName = (given: unknown, option: string): unknown =>
  check(z.string(text).min(1, text), given, option);

/** A scripted failure as the error that is thrown. */
export function failureOf(given: UnavailableReason | Error, option: string): Error {
  check(failure, given, option);
  return typeof given === "string" ? new ClassificationError(given) : given;
}

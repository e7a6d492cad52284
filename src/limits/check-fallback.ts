import { ConfigurationError } from "../errors.js";
import { mismatch } from "../option-problem.js";
import {
  type DeferToTrustedModelOptions,
  type Fallback,
  askHuman,
  deferToTrustedModel,
  haltRun,
  throwOnLimit,
} from "./fallbacks.js";

const EXPECTED = "haltRun(), askHuman(), deferToTrustedModel({ model }) or throwOnLimit()";

/** Checks a fallback as the functions for it do: being plain data, it may have been written by hand. */
export function checkFallback(value: unknown): Fallback {
  const fields: { kind?: unknown } = (typeof value === "object" && value) || {};
  const { kind, ...options } = fields;
  switch (kind) {
    case "halt":
      return haltRun(options);
    case "ask":
      return askHuman(options);
    case "defer":
      return deferToTrustedModel(options as DeferToTrustedModelOptions);
    case "throw":
      return throwOnLimit(options);
    default:
      throw new ConfigurationError("whenLimitReached", mismatch(value, `what is made by ${EXPECTED}`));
  }
}

import { ConfigurationError } from "../errors.js";
import type { Fallback } from "./fallbacks.js";

const EXPECTED = "haltRun(), askHuman(), deferToTrustedModel({ model }) or throwOnLimit()";

/** Checks that a value was made by one of the functions for it. */
export function checkFallback(value: unknown): Fallback {
  if (typeof value === "object" && value !== null && "kind" in value) {
    const { kind } = value;
    if (kind === "halt" || kind === "ask" || kind === "defer" || kind === "throw") return value as Fallback;
  }
  throw new ConfigurationError(
    "whenLimitReached",
    `is ${typeof value}; expected what is made by ${EXPECTED}`,
  );
}

import type { UnavailableReason } from "../errors.js";

/** The one kind of safeguard that the gateway answers. */
export const DANGEROUS_TOOL_USE = "dangerous_tool_use";

/** The verdict on one call, as the client reads it. */
export type ToolUseVerdict =
  | { type: "evaluated"; outcome: "not_flagged" }
  | { type: "evaluated"; outcome: "flagged"; explanation: string }
  | { type: "unavailable"; reason: UnavailableReason };

/** What the gateway says about one reply. */
export type SafeguardStatus =
  | {
      type: "available";
      /** Keyed by the ids that the client received. Empty for a reply without tool calls. */
      tool_uses: Record<string, ToolUseVerdict>;
    }
  /** The classifier cannot be used for this caller at all. */
  | { type: "unsupported" };

/** The entry that a judged reply carries in `safeguard_results`. */
export interface SafeguardResult {
  type: typeof DANGEROUS_TOOL_USE;
  status: SafeguardStatus;
}

/** A JSON object whose members nobody has checked. */
export type Loose = { readonly [key: string]: unknown };

/** Whether a value is a JSON object. */
export function isLoose(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The array that carries a status: always exactly one entry, since the client rejects two. */
export function resultsOf(status: SafeguardStatus): SafeguardResult[] {
  return [{ type: DANGEROUS_TOOL_USE, status }];
}

/**
 * The entry of a request's `safeguards` that asks for verdicts. The field may hold anything: what is
 * not understood asks for nothing, and is for the upstream to accept or refuse.
 */
export function findAsk(safeguards: unknown): Loose | undefined {
  const entries: unknown[] = Array.isArray(safeguards) ? safeguards : [safeguards];
  return entries.find((entry): entry is Loose => isLoose(entry) && entry["type"] === DANGEROUS_TOOL_USE);
}

/**
 * Whether an upstream has answered the safeguards itself. `null` and an empty list are what servers
 * write for a field they do not know; they answer nothing.
 */
export function hasResults(holder: Loose): boolean {
  const results = holder["safeguard_results"];
  return Array.isArray(results) ? results.length > 0 : results !== undefined && results !== null;
}

import type { UsageMetadata } from "@langchain/core/messages";
import type { UnavailableReason } from "../errors.js";
import type { SafeguardStatus, ToolUseVerdict } from "./protocol.js";
import type { Reply } from "./reply.js";

/** What the gateway notes about one reply that it judged. Holds no content, no name of a tool, no key. */
export interface SafeguardRecord {
  /** ISO 8601, UTC. */
  readonly at: string;
  /** The reply's id, as the upstream gave it. */
  readonly messageId?: string;
  /** The model that the reply names. */
  readonly model?: string;
  /** Whether the reply was a stream of events. */
  readonly streamed: boolean;
  /** What the reply says about the judgment: whether there are verdicts. */
  readonly status: SafeguardStatus["type"];
  /** What became of each call, by its id. Empty where the status is `unsupported`. */
  readonly outcomes: Readonly<Record<string, "not_flagged" | "flagged" | UnavailableReason>>;
  /** The calls that a rule decided, by their id: the rule's place in the list, from 0. */
  readonly rules?: Readonly<Record<string, number>>;
  /** The classifier's model, if it was asked; the fallback's where that answered, `first > fallback` if both did. */
  readonly classifier?: string;
  /** Duration of the classifier requests in milliseconds, if there were any. */
  readonly latencyMs?: number;
  /** How many classifier requests were repeated, where any was. */
  readonly retries?: number;
  /** Tokens of the classifier requests, if they report them. */
  readonly usage?: UsageMetadata;
  /** HTTP status of the classifier's service, where its last request failed, whether or not the fallback answered. */
  readonly httpStatus?: number;
  /** Code of the failure, as `ECONNREFUSED`, `not_json` or `truncated`. Never a message. */
  readonly errorCode?: string;
  /** The id that the classifier's service gave the request. */
  readonly requestId?: string;
}

/** What rules and the classifier request add to a record. */
export type RequestFacts = Pick<
  SafeguardRecord,
  "rules" | "classifier" | "latencyMs" | "retries" | "usage" | "requestId" | "httpStatus" | "errorCode"
>;

function outcomeOf(verdict: ToolUseVerdict): "not_flagged" | "flagged" | UnavailableReason {
  return verdict.type === "evaluated" ? verdict.outcome : verdict.reason;
}

/** Makes the record of one reply. */
export function createRecord(
  reply: Reply,
  streamed: boolean,
  status: SafeguardStatus,
  facts: RequestFacts,
): SafeguardRecord {
  const verdicts = status.type === "available" ? Object.entries(status.tool_uses) : [];
  return Object.freeze({
    at: new Date().toISOString(),
    ...(reply.messageId === undefined ? {} : { messageId: reply.messageId }),
    ...(reply.model === undefined ? {} : { model: reply.model }),
    streamed,
    status: status.type,
    outcomes: Object.freeze(Object.fromEntries(verdicts.map(([id, verdict]) => [id, outcomeOf(verdict)]))),
    ...facts,
  });
}

/** Tells a user's function. Its failure is the operator's to see, and nothing of the turn's. */
export async function notify<T>(
  name: string,
  listener: ((value: T) => unknown) | undefined,
  value: T,
): Promise<void> {
  try {
    await listener?.(value);
  } catch {
    console.warn(`langchain-auto-mode: ${name} failed.`);
  }
}

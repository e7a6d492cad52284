import type { JsonValue } from "@langchain/core/decisions";
import type { UsageMetadata } from "@langchain/core/messages";
import type { Counters, UnavailableReason } from "./errors.js";
import type { JsonObject } from "./json.js";
import type { Entry } from "./transcript/entries.js";

/** What became of a guarded call. */
export type Outcome =
  | "allowed"
  | "blocked"
  | "unavailable"
  | "waiting"
  | "approved"
  | "rejected"
  | "held_back"
  | "malformed";

/** Who decided, or whose failure left the call without a verdict. */
export type DecidedBy = "classifier" | "precheck" | "environment" | "human" | "guard";

/**
 * How what was judged compares with what the tool was started with. `"not seen"`: the call was allowed and no
 * start was seen, since it never came to its tool or the tool announces none. If it starts later, after a
 * retry, a second record says so.
 */
export type Executed = "as judged" | "judged again" | "not seen";

/** `enforce` acts on verdicts, `observe` only records them. */
export type Mode = "enforce" | "observe";

/**
 * One decision about one guarded call. Holds no argument, no message and no key, so it can be logged.
 */
export interface DecisionRecord {
  /** A UUID. */
  readonly id: string;
  /** ISO 8601, UTC. */
  readonly at: string;
  /** The middleware's label. */
  readonly label: string;
  /** Whether the verdict was acted on, or only recorded. */
  readonly mode: Mode;
  /** Id of the AIMessage that proposed the call. */
  readonly messageId: string;
  /** The provider's id of the classifier request, if it gave one. */
  readonly requestId?: string;
  /** Id of the call, as the model gave it. */
  readonly toolCallId: string;
  /** Name of the tool. */
  readonly toolName: string;
  /** Lower-case hex SHA-256 of the canonical JSON of the arguments that ran or would have run. Empty if they are malformed. */
  readonly argsDigest: string;
  /** What became of the call. */
  readonly outcome: Outcome;
  /** Who decided. */
  readonly by: DecidedBy;
  /** For calls that were let through: how what was judged compares with what the tool was started with. */
  readonly executed?: Executed;
  /** Probability 0..1 that the call is risky or unauthorized. */
  readonly risk?: number;
  /** The risk from which on this call is blocked, 0..1. */
  readonly threshold: number;
  /** A kind of risk or a fixed text, never the classifier's own words. */
  readonly reason?: string;
  /** Why there is no verdict, if there is none. */
  readonly unavailableReason?: UnavailableReason;
  /** HTTP status of a provider that failed. */
  readonly status?: number;
  /** Code of the error behind a failure, as `ECONNREFUSED`. Never a message. */
  readonly errorCode?: string;
  /** The classifier's model name. */
  readonly classifier: string;
  /** Duration of the whole request in milliseconds, repeated in each of its records. 0 without a request. */
  readonly latencyMs: number;
  /** Tokens of the whole request, repeated in each of its records. */
  readonly usage?: UsageMetadata;
  /** Counts after this decision. */
  readonly counters: Counters;
}

/**
 * The content behind one {@link DecisionRecord}: what the classifier was shown of the call. It holds the
 * user's words and the call's arguments, so it goes to `onDecision` only, never to streams, artifacts or traces.
 */
export interface DecisionDetails {
  /** The call as it was judged. `args` is undefined where the arguments are malformed. */
  readonly call: {
    /** The tool's name. */
    readonly name: string;
    /** The arguments as the model wrote them. */
    readonly args: JsonObject | undefined;
  };
  /** The tool that would run. */
  readonly tool: {
    /** What the model and the classifier read about it. */
    readonly description?: string;
  };
  /** The entries of the view, oldest first, without the judged call. */
  readonly transcript: readonly Entry[];
  /** What the option `environment` gave for this decision, if it is configured. */
  readonly environment?: JsonValue;
}

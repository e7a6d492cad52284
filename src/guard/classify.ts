import type { ClassifierRequest, ClassifierResponse } from "@langchain/core/decisions";
import type { UsageMetadata } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { withDeadline } from "../deadline.js";
import { ClassificationError, UNAVAILABLE_REASONS, type UnavailableReason } from "../errors.js";
import { RISK_KINDS, type RiskKind, callKey, kindKey } from "./question.js";
import { findInBindings } from "../bindings.js";
import type { MonitorView } from "../transcript/view.js";

/**
 * What judges: a decision model, or any Runnable with its request and response. A class that names a view
 * gives it its type: without one the compiler takes its channels for any texts.
 *
 * @example
 * ```ts
 * class OwnModel extends BaseDecisionModel {
 *   readonly view: Partial<MonitorView> = { channels: ["user", "toolCalls", "toolResults"] };
 *   // _classify, ...
 * }
 * ```
 */
export interface Classifier {
  /** Answers one request: state and questions in, an answer to each question out. */
  invoke(request: ClassifierRequest, config?: Partial<RunnableConfig>): Promise<ClassifierResponse>;
  /** The model's name, for records. */
  readonly model?: string | undefined;
  /** The view that this classifier needs. The user's own view goes first. */
  readonly view?: Partial<MonitorView> | undefined;
}

/** How one request is made. */
export interface JudgeOptions {
  /** Milliseconds until the request counts as failed. */
  timeoutMs: number;
  /** The run's signal: its abort is the user's, not a failure of the classifier. */
  signal?: AbortSignal | undefined;
  /** The classifier's name, where it is known already. */
  name?: string | undefined;
  /** For the trace: what the request was about, without content. */
  metadata?: Record<string, unknown>;
}

/** What the classifier said of one call. */
export type Answered =
  | { readonly risk: number; readonly kind?: RiskKind; readonly explanation?: string }
  | { readonly unavailable: UnavailableReason };

/** What came of one request. */
export interface Judgment {
  /** In the order of the calls. */
  readonly answered: readonly Answered[];
  readonly latencyMs: number;
  readonly classifier: string;
  readonly usage?: UsageMetadata;
  readonly requestId?: string;
  /** The failure itself, for the `cause` of what may be thrown. */
  readonly error?: unknown;
}

// The tag that keeps a chat model's tokens out of the message stream of the graph around it.
const NO_STREAM = "langsmith:nostream";

/** The name that records give a classifier: its own, or that of the model inside `model.withRetry()`. */
export function classifierName(classifier: object): string {
  return findInBindings(classifier, "model", isName) ?? "unknown";
}

/** The view that a classifier, or the model inside `model.withRetry()`, says it needs, as it says it: unchecked. */
export function classifierView(classifier: object): Partial<MonitorView> | undefined {
  return findInBindings(classifier, "view", isGiven);
}

const isName = (value: unknown): value is string => typeof value === "string" && value !== "";
const isGiven = (value: unknown): value is Partial<MonitorView> => value !== undefined;

/** The error as the reasons know it. */
function reasonOf(error: unknown): UnavailableReason {
  const reason = ClassificationError.find(error)?.reason;
  return reason !== undefined && UNAVAILABLE_REASONS.includes(reason) ? reason : "error";
}

/**
 * Asks the classifier once about `count` calls. It settles within the timeout whatever the classifier
 * does; a late answer is ignored. It rejects only when the run is aborted, with the abort's reason.
 */
export async function judgeCalls(
  classifier: Classifier,
  request: ClassifierRequest,
  count: number,
  options: JudgeOptions,
): Promise<Judgment> {
  const started = performance.now();
  let overdue: unknown;
  const timeoutError = () =>
    (overdue = new DOMException("The classifier did not answer in time.", "TimeoutError"));
  const { signal, timeoutMs, metadata, name = classifierName(classifier) } = options;
  let response: ClassifierResponse | undefined;
  let error: unknown;
  try {
    response = await withDeadline({ signal, timeoutMs, timeoutError }, (ends) =>
      classifier.invoke(request, {
        signal: ends,
        runName: "auto_mode",
        tags: [NO_STREAM],
        ...(metadata ? { metadata } : {}),
      }),
    );
  } catch (caught) {
    error = caught ?? new Error("The classifier failed without an error.");
  }
  // Whatever came of it meanwhile: an aborted run is the user's decision, not a failure.
  signal?.throwIfAborted();

  const latencyMs = performance.now() - started;
  if (error !== undefined && error === overdue)
    return { answered: unanswered(count, "timeout"), latencyMs, classifier: name, error };
  try {
    return { ...read(response, error, count), latencyMs, ...nameIn(response, name) };
  } catch (unreadable) {
    return { answered: unanswered(count, "error"), latencyMs, classifier: name, error: unreadable };
  }
}

/** What was answered. Throws where reading a foreign object does. */
function read(response: ClassifierResponse | undefined, error: unknown, count: number) {
  const answers = error === undefined ? response?.answers : ClassificationError.find(error)?.answers;
  const reason = error === undefined ? "error" : reasonOf(error);
  const usage = countsIn(response?.usage_metadata);
  const requestId: unknown = response?.requestId;
  return {
    answered: Array.from(
      { length: count },
      (_, index) => readAnswer(answers, callKey(index), kindKey(index)) ?? { unavailable: reason },
    ),
    ...(usage ? { usage: usage as unknown as UsageMetadata } : {}),
    ...(typeof requestId === "string" && requestId !== "" ? { requestId } : {}),
    ...(error === undefined ? {} : { error }),
  };
}

function nameIn(response: ClassifierResponse | undefined, otherwise: string): { classifier: string } {
  const model: unknown = response?.model;
  return { classifier: typeof model === "string" && model !== "" ? model : otherwise };
}

interface Counts {
  readonly [name: string]: number | Counts;
}

/** The numbers of a report of usage. It goes into records and the state, which take nothing else. */
function countsIn(usage: unknown, isDetail = false): Counts | undefined {
  if (typeof usage !== "object" || usage === null) return undefined;
  const counts: [string, number | Counts][] = [];
  for (const [name, value] of Object.entries(usage as Readonly<Record<string, unknown>>)) {
    const count = typeof value === "number" ? value : isDetail ? undefined : countsIn(value, true);
    if (typeof count === "object" || Number.isFinite(count)) counts.push([name, count as number | Counts]);
  }
  return Object.freeze(Object.fromEntries(counts));
}

/** No call was answered, all for one reason. */
function unanswered(count: number, reason: UnavailableReason): Answered[] {
  return Array.from({ length: count }, () => ({ unavailable: reason }));
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
export function readAnswer(answers: unknown, callId: string, kindId: string): Answered | undefined {
  const answer = field(answers, callId);
  const risk = field(answer, "noul");
  if (field(answer, "type") !== "noul" || typeof risk !== "number" || !(risk >= 0 && risk <= 1))
    return undefined;
  const kind = field(field(answers, kindId), "choice");
  const explanation = field(answer, "explanation");
  return {
    risk,
    ...(typeof kind === "string" && kind !== "none" && Object.hasOwn(RISK_KINDS, kind)
      ? { kind: kind as RiskKind }
      : {}),
    ...(typeof explanation === "string" && explanation.trim() !== "" ? { explanation } : {}),
  };
}

import type { ClassifierRequest, ClassifierResponse } from "@langchain/core/decisions";
import type { UsageMetadata } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { ClassificationError, UNAVAILABLE_REASONS, type UnavailableReason } from "../errors.js";
import { callKey, kindKey } from "./question.js";
import { findInBindings } from "../bindings.js";
import type { MonitorView } from "../transcript/view.js";
import { type Answered, readAnswer } from "./verdict.js";

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
  /** For the trace: what the request was about, without content. */
  metadata?: Record<string, unknown>;
}

/** What came of one request. */
export interface Judgement {
  /** In the order of the calls. */
  readonly answered: readonly Answered[];
  readonly latencyMs: number;
  readonly classifier: string;
  readonly usage?: UsageMetadata;
  readonly requestId?: string;
  /** The failure itself, for the `cause` of what may be thrown. */
  readonly error?: unknown;
}

const ENDED = Symbol("ended before an answer");
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
): Promise<Judgement> {
  options.signal?.throwIfAborted();
  const started = performance.now();
  const end = new AbortController();
  let stop: ((reason: unknown) => void) | undefined;
  // A signal of our own: listeners of the run's are counted, and the host has one for each call of a step.
  const run = options.signal && AbortSignal.any([options.signal]);
  const onAbort = (): void => stop?.(run?.reason);
  run?.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(
    () => stop?.(new DOMException("The classifier did not answer in time.", "TimeoutError")),
    options.timeoutMs,
  );

  let response: ClassifierResponse | typeof ENDED | undefined;
  let error: unknown;
  try {
    // One promise for all of it: whoever settles it first, what comes later is ignored.
    response = await new Promise<ClassifierResponse | typeof ENDED>((resolve, reject) => {
      stop = (reason) => {
        resolve(ENDED);
        end.abort(reason);
      };
      // A classifier that throws at once is one more rejection.
      Promise.resolve(
        classifier.invoke(request, {
          signal: end.signal,
          runName: "auto_mode",
          tags: [NO_STREAM],
          ...(options.metadata ? { metadata: options.metadata } : {}),
        }),
      ).then(resolve, reject);
    });
  } catch (caught) {
    error = caught ?? new Error("The classifier failed without an error.");
  } finally {
    clearTimeout(timer);
    run?.removeEventListener("abort", onAbort);
  }
  // Whatever came of it meanwhile: an aborted run is the user's decision, not a failure.
  options.signal?.throwIfAborted();

  const latencyMs = performance.now() - started;
  const name = classifierName(classifier);
  if (response === ENDED)
    return { answered: unanswered(count, "timeout"), latencyMs, classifier: name, error: end.signal.reason };
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

import { setTimeout } from "node:timers/promises";
import type { ClassifierRequest } from "@langchain/core/decisions";
import { mergeUsageMetadata } from "@langchain/core/messages";
import { errorFacts, retryAfterOf } from "../error-facts.js";
import {
  type Answered,
  type Classifier,
  type JudgeOptions,
  type Judgment,
  judgeCalls,
} from "../guard/classify.js";

/** Who judges, and how persistently. */
export interface Judges {
  readonly classifier: Classifier;
  /** Asked about the calls that the first left without an answer. */
  readonly fallback: Classifier | undefined;
  /** How often a request that failed for a passing reason is repeated. */
  readonly retries: number;
  /** Milliseconds for all of it. */
  readonly timeoutMs: number;
}

/** What came of the requests about one reply. */
export interface JudgedCalls extends Judgment {
  /** How many requests were repeated. */
  readonly retries: number;
}

type Asking = Pick<JudgeOptions, "signal" | "metadata">;

// Short, since the client waits; doubled each time, and spread so that replies that failed together are not
// asked about together again.
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 4_000;
// A service that is restarting or overloaded, or a line that broke. 501 and 505 say that it will never work.
const PASSING_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504, 529]);
const PASSING_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EAI_AGAIN",
  "UND_ERR_SOCKET",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/**
 * Asks about calls until they are answered, the time is over or there is nobody left to ask. The first classifier
 * has all of the time, or half of it where a fallback waits. It rejects only on abort.
 *
 * @param requestFor writes the request about some of the calls, by their places
 */
export async function askJudges(
  { classifier, fallback, retries, timeoutMs }: Judges,
  requestFor: (calls: readonly number[]) => ClassifierRequest,
  count: number,
  asking: Asking,
): Promise<JudgedCalls> {
  const started = performance.now();
  const left = () => timeoutMs - (performance.now() - started);
  const all = Array.from({ length: count }, (_, index) => index);
  const limitMs = fallback ? timeoutMs / 2 : timeoutMs;
  const first = await askPersistently(classifier, requestFor(all), count, { ...asking, limitMs, retries });
  const open = all.filter((index) => isOpen(first.answered[index]));
  if (!fallback || open.length === 0) return { ...first, latencyMs: performance.now() - started };

  const rest = { ...asking, limitMs: left(), retries: retries - first.retries };
  const second = await askPersistently(fallback, requestFor(open), open.length, rest);
  const answers = new Map(open.map((call, index) => [call, second.answered[index]]));
  const answered = first.answered.map((answer, index) => {
    const other = answers.get(index);
    // Where nobody answered, the first classifier's reason counts.
    return other === undefined || isOpen(other) ? answer : other;
  });
  const isFirstUsed = open.length < count;
  const isSecondUsed = second.answered.some((answer) => !isOpen(answer));
  const { classifier: name, requestId } = isSecondUsed ? second : first;
  const usage =
    first.usage && second.usage
      ? mergeUsageMetadata(first.usage, second.usage)
      : (second.usage ?? first.usage);
  return {
    answered,
    latencyMs: performance.now() - started,
    classifier: isFirstUsed && isSecondUsed ? `${first.classifier} > ${second.classifier}` : name,
    retries: first.retries + second.retries,
    ...(usage ? { usage } : {}),
    ...(requestId === undefined ? {} : { requestId }),
    // Why the first left calls open; the operator reads it whether or not the fallback helped.
    ...(first.error === undefined ? {} : { error: first.error }),
  };
}

function isOpen(answer: Answered | undefined): boolean {
  return answer === undefined || "unavailable" in answer;
}

async function askPersistently(
  classifier: Classifier,
  request: ClassifierRequest,
  count: number,
  { limitMs, retries, ...asking }: Asking & { limitMs: number; retries: number },
): Promise<JudgedCalls> {
  const end = performance.now() + limitMs;
  for (let attempt = 0; ; attempt++) {
    const timeoutMs = Math.max(1, end - performance.now());
    const judgment = await judgeCalls(classifier, request, count, { ...asking, timeoutMs });
    const pauseMs = pauseAfter(judgment, attempt);
    const isLast = attempt >= retries || pauseMs === undefined || performance.now() + pauseMs >= end;
    if (isLast) return { ...judgment, retries: attempt };
    await pause(pauseMs, asking.signal);
  }
}

/** How long to wait before the same request may succeed. `undefined`: it would fail again. */
function pauseAfter({ error }: Judgment, attempt: number): number | undefined {
  if (error === undefined) return undefined;
  const { status, errorCode } = errorFacts(error);
  const isPassing =
    status === undefined
      ? errorCode !== undefined && PASSING_CODES.has(errorCode)
      : PASSING_STATUSES.has(status);
  if (!isPassing) return undefined;
  const backOff = Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2);
  return Math.max(backOff, millisecondsOf(retryAfterOf(error)));
}

/** A `retry-after` in milliseconds: it holds seconds or a date. */
function millisecondsOf(retryAfter: string | undefined): number {
  if (retryAfter === undefined) return 0;
  const seconds = Number(retryAfter);
  const delay = Number.isNaN(seconds) ? Date.parse(retryAfter) - Date.now() : seconds * 1_000;
  return Number.isNaN(delay) ? 0 : delay;
}

/** @throws the signal's reason on abort */
async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  await setTimeout(milliseconds, undefined, signal ? { signal } : {}).catch(() => {});
  signal?.throwIfAborted();
}

import { ClassificationError } from "../errors.js";

/** What ends a request early. */
export interface TimeLimit {
  /** The caller's signal: its abort is passed on as it is. */
  signal: AbortSignal | undefined;
  /** Milliseconds. */
  timeoutMs: number;
}

/**
 * Runs a request that ends at the caller's signal or after a time, whichever comes first, also where
 * the client leaves a stalled body unwatched.
 *
 * @throws {ClassificationError} with the reason `timeout` when the time is over, and the signal's own
 * reason when the caller aborts.
 */
export async function withinTime<Result>(
  { signal, timeoutMs }: TimeLimit,
  request: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  let release: (() => void) | undefined;
  const ended = new Promise<never>((_, reject) => {
    const end = (reason: unknown) => {
      reject(reason);
      controller.abort(reason);
    };
    const timer = setTimeout(() => end(new ClassificationError("timeout")), timeoutMs);
    const abort = () => end(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    release = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
  });
  try {
    return await Promise.race([request(controller.signal), ended]);
  } finally {
    release?.();
  }
}

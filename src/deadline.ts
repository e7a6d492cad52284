/** What ends a task early. */
export interface Deadline {
  /** The caller's signal, if there is one. Its abort is passed on with its own reason. */
  signal?: AbortSignal | undefined;
  /** Milliseconds until the time is over, at most 2147483647. */
  timeoutMs: number;
  /** Makes the error that the task fails with when the time is over. Default: a `TimeoutError`. */
  timeoutError?: (() => unknown) | undefined;
}

/**
 * Runs a task that ends when it is done, when the caller aborts or when the time is over, whichever comes
 * first. It settles then whatever the task does: a later result or rejection of the task is
 * ignored. The task gets a signal that aborts with the same reason.
 *
 * @throws the signal's reason on abort, the timeout's error when the time is over, else what the task throws.
 *
 * @example
 * ```ts
 * const response = await withDeadline({ signal, timeoutMs: 30_000 }, (ends) => fetch(url, { signal: ends }));
 * ```
 */
export async function withDeadline<Result>(
  { signal, timeoutMs, timeoutError = overdue }: Deadline,
  task: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  const ends = new AbortController();
  // A signal of our own: the listeners of the caller's are counted, and many tasks may share it.
  const caller = signal && AbortSignal.any([signal]);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<Result>((resolve, reject) => {
      const end = (reason: unknown): void => {
        reject(reason);
        ends.abort(reason);
      };
      timer = setTimeout(() => end(timeoutError()), timeoutMs);
      onAbort = () => end(caller?.reason);
      caller?.addEventListener("abort", onAbort, { once: true });
      Promise.resolve(task(ends.signal)).then(resolve, reject);
    });
  } finally {
    clearTimeout(timer);
    if (onAbort) caller?.removeEventListener("abort", onAbort);
  }
}

/** A promise's value, or `undefined` once the time is over. The promise goes on; its rejection is passed on meanwhile. */
export async function valueWithin<Value>(
  promise: Promise<Value>,
  milliseconds: number,
): Promise<Value | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeUp = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  try {
    return await Promise.race([promise, timeUp]);
  } finally {
    clearTimeout(timer);
  }
}

const overdue = (): unknown => new DOMException("The time is over.", "TimeoutError");

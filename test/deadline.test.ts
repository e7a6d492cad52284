import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { withDeadline } from "../src/deadline.js";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const never = () => new Promise<never>(() => {});

test("a result within the time comes back, and nothing is left running", async () => {
  const { signal } = new AbortController();
  const added = vi.spyOn(AbortSignal.prototype, "addEventListener");
  const removed = vi.spyOn(AbortSignal.prototype, "removeEventListener");
  expect(await withDeadline({ signal, timeoutMs: 100 }, async () => "answer")).toBe("answer");
  expect(vi.getTimerCount()).toBe(0);
  expect(added.mock.calls.length).toBeGreaterThan(0);
  expect(removed.mock.calls).toHaveLength(added.mock.calls.length);
});

test("an error within the time comes out as it is", async () => {
  const boom = new Error("boom");
  const failing = withDeadline({ signal: undefined, timeoutMs: 100 }, () => Promise.reject(boom));
  await expect(failing).rejects.toBe(boom);
  expect(vi.getTimerCount()).toBe(0);
});

test("when the time is over the task's signal aborts, and a late answer is ignored", async () => {
  let seen: AbortSignal | undefined;
  const late = withDeadline({ signal: undefined, timeoutMs: 100 }, async (signal) => {
    seen = signal;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return "late";
  });
  const outcome = late.catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(99);
  expect(seen?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await outcome).toMatchObject({ name: "TimeoutError" });
  expect(seen?.aborted).toBe(true);
  await vi.advanceTimersByTimeAsync(200);
});

test("the caller's abort ends it with the caller's reason, also where the request ignores signals", async () => {
  const abort = new AbortController();
  const stop = new Error("stop");
  const asked = withDeadline({ signal: abort.signal, timeoutMs: 100 }, never);
  abort.abort(stop);
  await expect(asked).rejects.toBe(stop);
  expect(vi.getTimerCount()).toBe(0);
});

test("nothing starts after an abort", async () => {
  const request = vi.fn<() => Promise<never>>(never);
  const signal = AbortSignal.abort(new Error("stop"));
  await expect(withDeadline({ signal, timeoutMs: 100 }, request)).rejects.toThrow("stop");
  expect(request).not.toHaveBeenCalled();
});

test("the caller chooses the error for the time that is over", async () => {
  const tooSlow = new Error("too slow");
  const asked = withDeadline({ timeoutMs: 100, timeoutError: () => tooSlow }, never);
  const outcome = asked.catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(100);
  expect(await outcome).toBe(tooSlow);
});

test("a task that throws at once, or gives no promise, ends like any other", async () => {
  const boom = new Error("boom");
  const throwing = (): Promise<never> => {
    throw boom;
  };
  await expect(withDeadline({ timeoutMs: 100 }, throwing)).rejects.toBe(boom);
  const plain = (() => "answer") as unknown as () => Promise<string>;
  expect(await withDeadline({ timeoutMs: 100 }, plain)).toBe("answer");
  expect(vi.getTimerCount()).toBe(0);
});

test("many tasks of one run add no listeners that the platform would warn about", async () => {
  const warned = vi.spyOn(process, "emitWarning");
  const abort = new AbortController();
  const asked = Array.from({ length: 50 }, () =>
    withDeadline({ signal: abort.signal, timeoutMs: 100 }, never),
  );
  const outcomes = Promise.allSettled(asked);
  abort.abort(new Error("stop"));
  expect((await outcomes).every(({ status }) => status === "rejected")).toBe(true);
  expect(warned).not.toHaveBeenCalled();
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { withinTime } from "../../src/classifiers/time-limit.js";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const never = () => new Promise<never>(() => {});

test("a result within the time comes back, and nothing is left running", async () => {
  const signal = new AbortController().signal;
  const listeners = vi.spyOn(signal, "removeEventListener");
  expect(await withinTime({ signal, timeoutMs: 100 }, async () => "answer")).toBe("answer");
  expect(vi.getTimerCount()).toBe(0);
  expect(listeners).toHaveBeenCalledOnce();
});

test("an error within the time comes out as it is", async () => {
  const boom = new Error("boom");
  const failing = withinTime({ signal: undefined, timeoutMs: 100 }, () => Promise.reject(boom));
  await expect(failing).rejects.toBe(boom);
  expect(vi.getTimerCount()).toBe(0);
});

test("when the time is over the request is told, and a late answer is ignored", async () => {
  let told: AbortSignal | undefined;
  const late = withinTime({ signal: undefined, timeoutMs: 100 }, async (signal) => {
    told = signal;
    await new Promise((resolve) => setTimeout(resolve, 200));
    return "late";
  });
  const outcome = late.catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(99);
  expect(told?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await outcome).toMatchObject({ reason: "timeout" });
  expect(told?.aborted).toBe(true);
  await vi.advanceTimersByTimeAsync(200);
});

test("the caller's abort ends it with the caller's reason, also where the request ignores signals", async () => {
  const abort = new AbortController();
  const stop = new Error("stop");
  const asked = withinTime({ signal: abort.signal, timeoutMs: 100 }, never);
  abort.abort(stop);
  await expect(asked).rejects.toBe(stop);
  expect(vi.getTimerCount()).toBe(0);
});

test("nothing starts after an abort", async () => {
  const request = vi.fn<() => Promise<never>>(never);
  const signal = AbortSignal.abort(new Error("stop"));
  await expect(withinTime({ signal, timeoutMs: 100 }, request)).rejects.toThrow("stop");
  expect(request).not.toHaveBeenCalled();
});

/**
 * Agent loops that can be run a slice at a time, so that several of them take turns: what slows the
 * machine down for a while then slows all of them down.
 */
import { AgentLoop, type Setup } from "./agents.js";

export interface SlicedLoop {
  /** Runs the next slice. Call it as often as the loop has slices. */
  next: () => Promise<void>;
  /** How many requests the classifier got. */
  readonly requests: number;
}

/** One run of `calls` calls, which rests after each slice of `size` calls. */
function oneRun(setup: Setup, size: number): SlicedLoop {
  let ended: Promise<unknown> | undefined;
  let goOn: (() => void) | undefined;
  let atRest: (() => void) | undefined;
  const loop = new AgentLoop(setup, async (done) => {
    if (done === 0 || done === setup.calls || done % size !== 0) return;
    const rested = new Promise<void>((resolve) => (goOn = resolve));
    atRest?.();
    await rested;
  });
  const next = async (): Promise<void> => {
    const rest = new Promise<void>((resolve) => (atRest = resolve));
    if (ended) goOn?.();
    else ended = loop.run();
    await Promise.race([rest, ended]);
  };
  return {
    next,
    get requests() {
      return loop.classifier.requests;
    },
  };
}

/** One run, on a thread of its own, for each slice. */
function manyRuns(setup: Setup, size: number): SlicedLoop {
  const loop = new AgentLoop({ ...setup, calls: size });
  return {
    next: async () => void (await loop.run()),
    get requests() {
      return loop.classifier.requests;
    },
  };
}

export type Shape = "one run" | "many runs";

/** Makes a loop of `setup.calls` calls in slices of `size` calls. */
export function makeLoop(shape: Shape, setup: Setup, size: number): SlicedLoop {
  return shape === "one run" ? oneRun(setup, size) : manyRuns(setup, size);
}

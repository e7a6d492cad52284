import type { KindBits } from "./channels.js";

/** Where messages with entries stand, so that a long history need not be gone through. */
export interface PositionMap {
  /** How many messages, from the first, the map knows. The others are looked at. */
  readonly settled: number;
  /** The nearest message before one that may have an entry of these kinds, or is not known; -1 for none. */
  readonly previous: (before: number, kinds: KindBits) => number;
  /** The nearest message, from one on, that may have an entry of these kinds, or is not known. */
  readonly next: (from: number, kinds: KindBits) => number;
  /** How many known messages have an entry of these kinds, which are those of whole channels. */
  readonly count: (kinds: KindBits) => number;
}

/** Nothing is known. */
export const NO_MAP: PositionMap = {
  settled: 0,
  previous: (before) => before - 1,
  next: (from) => from,
  count: () => 0,
};

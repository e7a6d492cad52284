import type { Counters } from "../errors.js";
import type { CountedCall } from "./state.js";

/**
 * The calls of a step that the state is not told of, because they change nothing: allowed ones, while no
 * count has to be cleared. Their results stay as the tools gave them. Once a call of the step is stopped
 * the order counts, and the state hears of all of them.
 */
export class UntoldCalls {
  #untold: readonly CountedCall[] = [];
  #tellsAll: boolean;

  constructor({ consecutiveBlocks, consecutiveUnavailable }: Counters) {
    this.#tellsAll = consecutiveBlocks + consecutiveUnavailable > 0;
  }

  /** From now on the state hears of every call. */
  tellAll(): void {
    this.#tellsAll = true;
  }

  /** What the state must be told now that these calls were carried out, if anything. */
  tell(calls: readonly CountedCall[]): readonly CountedCall[] {
    if (calls.some(({ outcome }) => outcome !== "allowed")) this.tellAll();
    const all = [...this.#untold, ...calls];
    this.#untold = this.#tellsAll ? [] : all;
    return this.#tellsAll ? all : [];
  }
}

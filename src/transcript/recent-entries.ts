import type { ContentEntry } from "./channels.js";
import { watch } from "./unchanged.js";

interface Memory {
  readonly variant: string;
  readonly isUnchanged: (parts: readonly unknown[]) => boolean;
  readonly entries: readonly ContentEntry[];
}

/**
 * The entries of the messages that the last view looked at. Most of them are in the next view too, and
 * reading and cutting them anew is most of what a view costs. A message that was changed in place is read
 * again; what a view no longer looks at is forgotten after it, so this is as large as a view.
 */
export class RecentEntries {
  #before = new Map<unknown, Memory>();
  #now = new Map<unknown, Memory>();

  /** A new view begins. */
  begin(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }

  /**
   * The entries of a message, built only if it is not known as it is now.
   *
   * @param message what they are remembered for
   * @param variant everything they depend on beside `parts`
   * @param parts what the message says, JSON-like
   */
  recall(
    message: unknown,
    variant: string,
    parts: readonly unknown[],
    build: () => readonly ContentEntry[],
  ): readonly ContentEntry[] {
    const known = this.#now.get(message) ?? this.#before.get(message);
    if (known?.variant === variant && known.isUnchanged(parts)) {
      this.#now.set(message, known);
      return known.entries;
    }
    const isUnchanged = watch(parts);
    const entries = build();
    if (isUnchanged) this.#now.set(message, { variant, isUnchanged, entries });
    return entries;
  }
}

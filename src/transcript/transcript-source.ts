import type { ContentEntry, EntryKind } from "./channels.js";

/**
 * A conversation as a list of messages that become entries on demand. An index is a message, oldest
 * first. Entries are raw: escaping and cutting is the view's work.
 */
export interface TranscriptSource {
  /** How many messages there are, those without entries included. */
  readonly length: number;
  /**
   * The entries of one message, in order. Called for the messages that the view reaches. Entries of other
   * kinds than these are not read, so a source need not build them.
   */
  entriesAt(index: number, kinds: ReadonlySet<EntryKind>): readonly ContentEntry[];
  /** Whether a message holds the user's own words (or the delegator's). Called for every message: make it cheap. */
  isUserAt(index: number): boolean;
}

import type { ContentEntry, EntryKind } from "./channels.js";
import type { PositionMap } from "./position-map.js";

/**
 * A conversation as a list of messages that become entries on demand. An index is a message, oldest
 * first. Entries are raw: showing and cutting is the view's work.
 */
export interface TranscriptSource {
  /** How many messages there are, those without entries included. */
  readonly length: number;
  /**
   * The entries of one message, in order. Called for the messages that the view reaches. An entry object
   * that is handed out again says the same again.
   */
  entriesAt(index: number): readonly ContentEntry[];
  /** Whether a message holds the user's own words (or the delegator's). A cheap check: called for all. */
  isUserAt(index: number): boolean;
  /**
   * Whether a message has an entry of one of the kinds: the same answer as `entriesAt` gives, found
   * without building texts. Called for all messages that are not shown, to count what was left out.
   * Without it they are built for that.
   */
  hasEntriesAt?(index: number, kinds: ReadonlySet<EntryKind>): boolean;
  /** What is known of the messages without looking at them. Without it all are looked at. */
  readonly map?: PositionMap | undefined;
}

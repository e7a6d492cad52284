import type { BaseMessage } from "@langchain/core/messages";
import { buildTranscript } from "./build.js";
import type { Entry } from "./entries.js";
import { langchainSource } from "./langchain.js";
import { type MonitorView, resolveView } from "./view.js";

/** What {@link viewTranscript} cannot see in the messages. */
export interface ViewTranscriptOptions {
  /**
   * Ids of the human messages that came in as a run's input. Without it every untagged human message
   * is the user's, as on a thread that is seen for the first time.
   *
   * @default every untagged human message
   * @example userMessageIds: ["msg-1"]
   */
  userMessageIds?: readonly string[];
}

/**
 * The entries that a classifier would read of a conversation, for printing and for tests.
 *
 * @throws {ConfigurationError} if the view has an unknown or a wrong field
 *
 * @example
 * ```ts
 * const entries = viewTranscript(messages, { channels: ["user", "toolCalls", "toolResults"] });
 * console.log(renderTranscript(entries));
 * ```
 */
export function viewTranscript(
  messages: readonly BaseMessage[],
  view?: Partial<MonitorView>,
  options: ViewTranscriptOptions = {},
): Entry[] {
  const resolved = resolveView(view);
  const ids = options.userMessageIds === undefined ? undefined : new Set<unknown>(options.userMessageIds);
  const source = langchainSource(messages, {
    delegationTools: resolved.delegationTools,
    isUser: (message) => ids === undefined || ids.has(message.id),
  });
  return buildTranscript(source, resolved);
}

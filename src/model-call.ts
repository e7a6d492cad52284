import { AIMessage, type BaseMessage, type SystemMessage } from "@langchain/core/messages";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { Command } from "@langchain/langgraph";
import { initChatModel } from "langchain";
import { AutoModeLimitError, ClassificationError, type LimitName } from "./errors.js";
import type { DeferFallback } from "./limits/fallbacks.js";
import type { ThreadState } from "./limits/state.js";
import type { Policy } from "./resolve-options.js";
import { RISK_KINDS, type RiskKind } from "./guard/question.js";

const LIMIT_TEXT: Readonly<Record<LimitName, string>> = {
  consecutiveBlocks: "too many calls in a row were blocked",
  totalBlocks: "too many calls of this thread were blocked",
  consecutiveUnavailable: "calls could not be evaluated too many times in a row",
};

/** What the model node does in place of the agent's own model call. */
export type ModelNodeAction =
  | { readonly kind: "halt"; readonly message: AIMessage }
  | { readonly kind: "defer"; readonly fallback: DeferFallback };

function halt(thread: ThreadState, text?: string): ModelNodeAction {
  const { counters } = thread.limitStatus;
  // Whoever halts has reached one: a trusted model writes only where a limit was reached.
  const limit = thread.limitStatus.limit as LimitName;
  const message = new AIMessage({
    id: globalThis.crypto.randomUUID(),
    content: text ?? `Auto mode stopped this run: ${LIMIT_TEXT[limit]}. What was left to do was not done.`,
    additional_kwargs: { lc_source: "auto_mode", auto_mode: { limit, counters } },
  });
  return { kind: "halt", message };
}

/** Whether a call of the trusted model's own step was stopped. */
function trustedStopped(thread: ThreadState): boolean {
  return (
    thread.step?.trusted === true &&
    thread.step.calls.some(({ outcome }) => outcome === "blocked" || outcome === "unavailable")
  );
}

/**
 * Decides what happens at the model node; `undefined` lets the agent's own model write.
 *
 * @throws ClassificationError, AutoModeLimitError as configured. Thrown here nothing dangles: every call
 *   of the step has its answer in the checkpoint.
 */
export function atModelNode(
  policy: Policy,
  thread: ThreadState,
  cause: unknown,
): ModelNodeAction | undefined {
  if (policy.mode === "observe") return undefined;
  const failure = thread.step?.failure;
  if (failure)
    throw new ClassificationError(failure.reason, {
      ...(cause === undefined ? {} : { cause }),
      ...(failure.status === undefined ? {} : { status: failure.status }),
    });
  const { fallback } = policy;
  if (trustedStopped(thread)) return halt(thread);
  if (!thread.limitStatus.due) return undefined;
  switch (fallback.kind) {
    case "halt":
      return halt(thread, fallback.message);
    case "throw":
      throw new AutoModeLimitError(thread.limitStatus.limit as LimitName, thread.limitStatus.counters);
    case "defer":
      return { kind: "defer", fallback };
    case "ask":
      // The calls that reach a limit wait in their own step; at the model node all is answered.
      return undefined;
  }
}

/** Names the stopped tools and kinds of the last step. No content: the names are the configured ones. */
function stoppedCalls(policy: Policy, thread: ThreadState, messages: readonly BaseMessage[]): string {
  const proposal = messages.findLast((message) => message.id === thread.step?.messageId) as
    | AIMessage
    | undefined;
  const stopped = (thread.step?.calls ?? []).filter(
    ({ outcome }) => outcome !== "allowed" && outcome !== "approved",
  );
  const parts = stopped.map(({ index }) => {
    const call = proposal?.tool_calls?.[index];
    const name = call && policy.rules.has(call.name) ? call.name : "a guarded tool";
    const answer = messages.findLast(
      (message) =>
        message.getType() === "tool" && (message as { tool_call_id?: string }).tool_call_id === call?.id,
    ) as { artifact?: { reason?: string } } | undefined;
    const kind = answer?.artifact?.reason;
    return kind !== undefined && Object.hasOwn(RISK_KINDS, kind) ? `${name} (${kind as RiskKind})` : name;
  });
  return [...new Set(parts)].join(", ");
}

/** The note that the trusted model gets beside the agent's own system message. */
function trustedNote(policy: Policy, thread: ThreadState, messages: readonly BaseMessage[]): string {
  return (
    `\n\nAuto mode stopped the last step of this run. Calls that did not run: ${stoppedCalls(policy, thread, messages)}. ` +
    "You write the next step in its place. Do what the user asked for without what was stopped, " +
    "or say which approval you need from the user."
  );
}

/** What the trusted model's call needs of the host's request. */
interface ModelRequest {
  readonly model: unknown;
  readonly systemMessage: SystemMessage;
  readonly messages: BaseMessage[];
}

/** The id of a message, which it has from now on. */
function idOf(message: AIMessage): string {
  const id = message.id ?? globalThis.crypto.randomUUID();
  message.id = id;
  // A store writes down these fields, and would lose an id that is not among them.
  message.lc_kwargs.id = id;
  return id;
}

/** Lets the trusted model write, and marks its step. */
export async function writeTrusted<R extends ModelRequest, T>(
  policy: Policy,
  thread: ThreadState,
  key: string,
  model: BaseChatModel,
  request: R,
  handler: (request: R) => Promise<T> | T,
): Promise<T | Command> {
  const systemMessage = request.systemMessage.concat(trustedNote(policy, thread, request.messages));
  const response = await handler({ ...request, model, systemMessage });
  // A Command beside a structured response would lose the response; without calls there is nothing to mark.
  if (!AIMessage.isInstance(response) || !response.tool_calls?.length) return response;
  return new Command({
    update: { [key]: { op: "trusted", turn: thread.turn, messageId: idOf(response) } },
  });
}

/** Turns a model's name into a model, once. */
export function createModelLoader(fallback: DeferFallback): () => Promise<BaseChatModel> {
  let loaded: Promise<BaseChatModel> | undefined;
  return async () => {
    if (typeof fallback.model !== "string") return fallback.model;
    loaded ??= initChatModel(fallback.model) as unknown as Promise<BaseChatModel>;
    try {
      return await loaded;
    } catch (error) {
      loaded = undefined;
      throw error;
    }
  };
}

import { AIMessage, type BaseMessage, type SystemMessage } from "@langchain/core/messages";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { Command } from "@langchain/langgraph";
import { initChatModel } from "langchain";
import { AutoModeLimitError, ClassificationError } from "./errors.js";
import { LIMIT_TEXT } from "./guard/feedback.js";
import { RISK_KINDS } from "./guard/question.js";
import type { DeferFallback } from "./limits/fallbacks.js";
import { type ThreadState, issue } from "./limits/state.js";
import { findProposal } from "./proposal.js";
import type { Policy } from "./resolve-options.js";

/** What happens in place of the agent's own model call. */
export type ModelCallAction =
  | { readonly kind: "halt"; readonly message: AIMessage }
  | { readonly kind: "defer"; readonly fallback: DeferFallback };

function halt({ limitStatus }: ThreadState, limit = limitStatus.limit, text?: string): ModelCallAction {
  const reached = limit ? `: ${LIMIT_TEXT[limit]}` : "";
  const message = new AIMessage({
    id: globalThis.crypto.randomUUID(),
    content: text ?? `Auto mode stopped this run${reached}. What was left to do was not done.`,
    additional_kwargs: { lc_source: "auto_mode", auto_mode: { limit, counters: limitStatus.counters } },
  });
  return { kind: "halt", message };
}

/** Whether a call of the trusted model's own step was stopped. */
function trustedStopped({ step }: ThreadState): boolean {
  return (
    step?.trusted === true &&
    step.calls.some(({ outcome }) => outcome === "blocked" || outcome === "unavailable")
  );
}

/**
 * Where a limit asks a person, the run halts if nobody could be asked in the step that reached it, or if a
 * person's rejection reached the total. So every run ends.
 */
function haltInPlaceOfAsking(policy: Policy, thread: ThreadState): ModelCallAction | undefined {
  const calls = thread.step?.calls ?? [];
  const isRejected = calls.some(({ outcome }) => outcome === "rejected");
  const isAnswered = isRejected || calls.some(({ outcome }) => outcome === "approved");
  if (!isAnswered) return halt(thread);
  const isTotal = thread.limitStatus.counters.totalBlocks >= policy.limits.totalBlocks;
  return isRejected && isTotal ? halt(thread, "totalBlocks") : undefined;
}

/**
 * Decides what happens at the model call that follows a step; `undefined` lets the agent's own model write.
 *
 * @throws {ClassificationError} as `onUnavailable: "throw"` says, {AutoModeLimitError} as `throwOnLimit()` says.
 *   Thrown here nothing is left open: every call of the step has its answer in the checkpoint.
 */
export function beforeModelCall(
  policy: Policy,
  thread: ThreadState,
  cause: unknown,
): ModelCallAction | undefined {
  const failure = thread.step?.failure;
  if (failure)
    throw new ClassificationError(failure.reason, {
      ...(cause === undefined ? {} : { cause }),
      ...(failure.status === undefined ? {} : { status: failure.status }),
    });
  if (trustedStopped(thread)) return halt(thread);
  const { limit, counters, due } = thread.limitStatus;
  if (!due || limit === undefined) return undefined;
  const { fallback } = policy;
  switch (fallback.kind) {
    case "halt":
      return halt(thread, limit, fallback.message);
    case "throw":
      throw new AutoModeLimitError(limit, counters);
    case "defer":
      // Each trusted step spends the fallback, so an agent could be blocked between them without end.
      return (thread.step?.base.counters.totalBlocks ?? 0) >= 2 * policy.limits.totalBlocks
        ? halt(thread, "totalBlocks")
        : { kind: "defer", fallback };
    case "ask":
      return haltInPlaceOfAsking(policy, thread);
  }
}

const nameOf = (tool: unknown): unknown =>
  typeof tool === "object" && tool !== null && "name" in tool ? tool.name : undefined;

/** Names the stopped tools and kinds of the last step, and nothing that a call or a message says. */
function stoppedCalls(thread: ThreadState, { messages, tools }: ModelRequest): string {
  const proposal = findProposal(messages, thread.step?.messageId ?? "");
  const known = new Set(tools?.map((tool) => nameOf(tool)));
  const stopped = (thread.step?.calls ?? []).filter(
    ({ outcome }) => outcome !== "allowed" && outcome !== "approved",
  );
  const parts = stopped.map(({ index }) => {
    const call = proposal?.message.tool_calls?.[index];
    // The model may have written any text as a name.
    const name = call && known.has(call.name) ? call.name : "a guarded tool";
    const answer = proposal?.later.findLast(
      (message) =>
        message.getType() === "tool" && "tool_call_id" in message && message.tool_call_id === call?.id,
    );
    const { artifact } = (answer ?? {}) as { artifact?: { reason?: string } };
    const kind = artifact?.reason;
    return kind !== undefined && Object.hasOwn(RISK_KINDS, kind) ? `${name} (${kind})` : name;
  });
  return [...new Set(parts)].join(", ");
}

/** The note that the trusted model gets after the agent's own system message. */
function trustedNote(thread: ThreadState, request: ModelRequest): string {
  return (
    `\n\nAuto mode stopped the last step of this run. Calls that did not run: ${stoppedCalls(thread, request)}. ` +
    "You write the next step in its place. Do what the user asked for without what was stopped, " +
    "or say which approval you need from the user."
  );
}

/** What the trusted model's call needs of the host's request. */
export interface ModelRequest {
  readonly model: unknown;
  readonly systemMessage: SystemMessage;
  readonly messages: BaseMessage[];
  readonly tools?: readonly unknown[];
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
  thread: ThreadState,
  key: string,
  model: BaseChatModel,
  request: R,
  handler: (request: R) => Promise<T> | T,
): Promise<T | Command> {
  const systemMessage = request.systemMessage.concat(trustedNote(thread, request));
  const response = await handler({ ...request, model, systemMessage });
  // A Command with a structured response would lose the response; without calls there is nothing to mark.
  if (!AIMessage.isInstance(response) || !response.tool_calls?.length) return response;
  const operation = issue({ op: "trusted" as const, turn: thread.turn, messageId: idOf(response) });
  return new Command({ update: { [key]: operation } });
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

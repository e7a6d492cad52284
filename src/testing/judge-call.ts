import type { ClassifierRequest } from "@langchain/core/decisions";
import { type BaseMessage, type BaseMessageLike, coerceMessageLikeToMessage } from "@langchain/core/messages";
import type { ClientTool } from "@langchain/core/tools";
import type { DecisionRecord } from "../decision-record.js";
import { ConfigurationError } from "../errors.js";
import { type StepContext, decideStep } from "../guard/evaluate.js";
import { describeWaiting } from "../human-review/interrupt.js";
import { freezeJson } from "../json.js";
import type { AutoModeOptions } from "../options.js";
import { type Policy, resolvePolicy } from "../resolve-options.js";
import { failureOf, feedbackFor, recordFor, waitingCallOf } from "../guard/report.js";
import { type Proposed, toStepCall } from "../tool-call/request.js";
import { NO_INPUT, noteInput, reduceRunInput } from "../transcript/user-input.js";
import { type Surroundings, stepContext } from "../tool-call/context.js";
import { z } from "zod";
import { check, mismatch, optionPath } from "../option-problem.js";

/** What {@link judgeCall} judges. */
export interface JudgeCallInput {
  /**
   * The conversation so far, without the call. Every untagged human message is the user's.
   *
   * @example messages: [new HumanMessage("Tidy up build/")]
   */
  messages: readonly BaseMessageLike[];
  /**
   * The proposed call.
   *
   * @example call: { name: "delete_file", args: { path: "data.db" } }
   */
  call: {
    /** The tool's name. */
    name: string;
    /** The arguments as a model would write them. */
    args: unknown;
    /** Default `"call_0"`. */
    id?: string;
  };
  /**
   * The tool that would run, for its description and for `precheck`.
   *
   * @default none: no description
   * @example tool: deleteFile
   */
  tool?: ClientTool;
}

/** What {@link judgeCall} gives. */
export interface JudgeCallResult {
  /** The decision, as `onDecision` would get it. */
  decision: DecisionRecord;
  /** What the agent would read. Undefined if the call would run or wait for a person. */
  feedback: string | undefined;
  /** What a person would be asked, if the outcome is `waiting`. */
  question: string | undefined;
  /** State and questions that the classifier got, as a JSON copy. Undefined if it was not asked. */
  request: ClassifierRequest | undefined;
  /**
   * The error that the classifier failed with, as it threw it; also what a precheck or an environment
   * function threw. Undefined if none did. The decision holds only its reason.
   */
  error: unknown;
}

/** Options as for the middleware, without the tools. */
export type JudgeCallOptions = Omit<AutoModeOptions, "tools"> & Pick<Partial<AutoModeOptions>, "tools">;

/**
 * Runs the guard once, without an agent: the same checks, question, view and verdict as in the
 * middleware. For unit tests of a policy. `onDecision` is not called.
 *
 * @param options as for `autoModeMiddleware`; without `tools` the tool of the call is the guarded one
 * @throws {ConfigurationError} for a wrong option, message or call, and for a call whose tool `tools` does not list
 * @example
 * ```ts
 * const { decision, feedback } = await judgeCall(
 *   { classifier, criteria },
 *   { messages: [new HumanMessage("Tidy up build/")], call: { name: "delete_file", args: { path: "data.db" } } },
 * );
 * expect(decision.outcome).toBe("blocked");
 * ```
 */
export async function judgeCall(options: JudgeCallOptions, input: JudgeCallInput): Promise<JudgeCallResult> {
  let request: ClassifierRequest | undefined;
  checkInput(input);
  const policy = resolvePolicy({ ...options, tools: options.tools ?? [input.call.name] });
  // In an agent such a call runs unjudged: a verdict on it would tell nothing.
  if (!policy.selection.ruleFor({ names: [input.call.name], tool: input.tool }))
    throw new ConfigurationError(
      "tools",
      "does not select the call's tool, which an agent would run unjudged; expected an entry that does",
    );
  const { classifier } = policy;
  const recording: Policy = {
    ...policy,
    classifier: {
      ...(classifier.model === undefined ? {} : { model: classifier.model }),
      invoke: (given, config) => {
        request = JSON.parse(JSON.stringify(given)) as ClassifierRequest;
        return classifier.invoke(given, config);
      },
    },
  };
  const messages = readMessages(input.messages);
  const proposed = {
    tool: input.tool,
    toolCall: { type: "tool_call", id: "call_0", ...input.call },
  } as Proposed;
  const call = toStepCall(recording, proposed, {
    index: 0,
    name: input.call.name,
    frozen: freezeJson(input.call.args),
    malformation: undefined,
    tools: input.tool ? [input.tool] : [],
    canWait: true,
  });
  const [decided] = await decideStep(recording, [call], contextFor(recording, messages));
  if (!decided) throw new Error("judgeCall: the guard decided nothing");
  const { action } = decided.decision;
  const waiting = action === "suspend" ? waitingCallOf(decided) : undefined;
  const description = policy.fallback.kind === "ask" ? policy.fallback.description : undefined;
  return {
    decision: recordFor(policy, decided),
    feedback:
      action === "refuse" ? feedbackFor(policy, decided, policy.onUnavailable === "throw") : undefined,
    question: waiting && describeWaiting(waiting, description),
    request,
    error: failureOf(decided),
  };
}

/** The conversation as an agent's state would hold it when its first run starts. */
function contextFor(policy: Policy, messages: BaseMessage[]): StepContext {
  for (const message of messages) message.id ??= globalThis.crypto.randomUUID();
  const input = reduceRunInput(NO_INPUT, noteInput(messages, NO_INPUT, policy.view.maxChars));
  const keys = { thread: "_thread", input: "_input" };
  const state = { messages, [keys.input]: input };
  const surroundings = { state, runtime: {} } as unknown as Surroundings;
  return stepContext(policy, keys, surroundings, undefined);
}

const name = "the name of a tool";
const tool = "a tool object";
const input = z.strictObject(
  {
    messages: z.array(z.unknown(), "a list of messages"),
    // What a model proposes has more fields, as `type`.
    call: z.looseObject(
      {
        name: z.string(name).min(1, name),
        id: z.string("a text").optional(),
      },
      "a call as { name, args }",
    ),
    tool: z
      .custom((value) => typeof value === "object" && value !== null && "name" in value, tool)
      .optional(),
  },
  "an object with messages and call",
);

/** Checks what is to be judged. The arguments may be anything: a guard must cope with that. */
function checkInput(given: unknown): void {
  check(input, given, "");
}

/** The messages as an agent's state holds them. */
function readMessages(given: readonly BaseMessageLike[]): BaseMessage[] {
  return given.map((message, index) => {
    try {
      return coerceMessageLikeToMessage(message);
    } catch {
      // The library's own error repeats the message.
      throw new ConfigurationError(
        optionPath("messages", [index]),
        mismatch(message, "a message, or { role, content }"),
      );
    }
  });
}

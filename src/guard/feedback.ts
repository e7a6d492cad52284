import type { NoulCriteria } from "@langchain/core/decisions";
import { ConfigurationError, type LimitName, type UnavailableReason } from "../errors.js";
import { DEFAULT_CRITERIA, RISK_KINDS, type RiskKind } from "./question.js";
import { cutEnd } from "../transcript/cut.js";

/** The blocked message where none is configured. It names no other way to the same effect. */
export const DEFAULT_FEEDBACK =
  "Auto mode blocked the call to {tool_name}: it did not run. Reason: {reason} " +
  "Do not seek the same effect another way. Take a safer route, or say which approval you need from the user.";

/** Enough for any tool's name; a model may write any text as one. In UTF-16 units. */
export const MAX_TOOL_NAME = 200;

const shortName = (toolName: string): string => cutEnd(toolName, MAX_TOOL_NAME);

const PLAIN_REASON = "It was judged to be risky or not authorized by the user.";

/** A parsed template. */
export type Feedback = (fields: { reason: string; toolName: string }) => string;

type Segment = string | { field: "reason" | "tool_name" };

const EXPECTED =
  'a text with the field {reason} and, if wanted, {tool_name}; a literal brace is written twice ("{{")';

/**
 * Parses a template once. The fields are filled in a single pass, so that nothing in a reason or a
 * name is read as a template again.
 *
 * @throws {ConfigurationError} for an unknown field, a lone brace or a missing `{reason}`.
 */
export function parseFeedback(template: string, option = "feedback"): Feedback {
  const segments: Segment[] = [];
  let hasReason = false;
  // Alternatives in this order: a doubled brace, a field, a lone brace.
  const pattern = /\{\{|\}\}|\{([^{}]*)\}|[{}]/g;
  let end = 0;
  for (const match of template.matchAll(pattern)) {
    segments.push(template.slice(end, match.index));
    end = match.index + match[0].length;
    const name = match[1];
    if (match[0] === "{{" || match[0] === "}}") segments.push(match[0][0] as string);
    else if (name === "reason" || name === "tool_name") {
      hasReason ||= name === "reason";
      segments.push({ field: name });
    } else
      throw new ConfigurationError(
        option,
        `has ${name === undefined ? "a lone brace" : "an unknown field"}; expected ${EXPECTED}`,
      );
  }
  segments.push(template.slice(end));
  if (!hasReason) throw new ConfigurationError(option, `has no field {reason}; expected ${EXPECTED}`);
  return ({ reason, toolName }) =>
    segments
      .map((segment) =>
        typeof segment === "string" ? segment : segment.field === "reason" ? reason : shortName(toolName),
      )
      .join("");
}

/** Enough for a reason; more would only fill the agent's context. In UTF-16 units. */
const MAX_EXPLANATION = 2_000;

/** One line, ended like a sentence. Providers refuse empty tool results, so it is never empty. */
function sentence(text: string): string {
  const line = cutEnd(text.trim(), MAX_EXPLANATION).replaceAll(/\s+/g, " ");
  return /[.!?…。！？]$/.test(line) ? line : `${line}.`;
}

/**
 * Why a call was blocked: the classifier's explanation, else the kind, else the user's own criterion,
 * else a plain sentence. Never the built-in question or a number.
 */
export function blockedReason(
  answered: { kind?: RiskKind; explanation?: string },
  criteria: NoulCriteria | null,
): string {
  if (answered.explanation !== undefined) return sentence(answered.explanation);
  if (answered.kind !== undefined) return RISK_KINDS[answered.kind];
  const own = criteria === DEFAULT_CRITERIA ? undefined : criteria?.true;
  return typeof own === "string" && own.trim() !== "" ? own : PLAIN_REASON;
}

/** Why a rule blocked a call. */
export const PRECHECK_REASON = "A fixed rule of the operator forbids this call.";

/** Why a call was blocked that a person would have to decide about, where nobody can be asked. */
export const NEEDS_APPROVAL_REASON = "It needs a person's approval, and nobody could be asked about it.";

/** Why a call was blocked that was blocked before. */
export const REPEATED_REASON = "This exact call was already blocked in this turn.";

/** What each limit means, as the rest of a sentence. */
export const LIMIT_TEXT: Readonly<Record<LimitName, string>> = {
  consecutiveBlocks: "too many calls in a row were blocked",
  totalBlocks: "too many calls of this thread were blocked",
  consecutiveUnavailable: "calls could not be evaluated too many times in a row",
};

/** What each failure of a check means, as a clause. */
export const UNAVAILABLE_TEXT: Readonly<Record<UnavailableReason, string>> = {
  timeout: "the safety check did not answer in time",
  input_too_long: "the request is too long for the safety check",
  refused: "the safety check declined to answer",
  truncated: "the answer of the safety check was cut off",
  error: "the safety check failed",
};

/** For a call that got no verdict. It must not read like a refusal. */
export function unavailableFeedback(toolName: string, reason: UnavailableReason, runEnds: boolean): string {
  return (
    `The call to ${shortName(toolName)} was not evaluated, so it did not run: ${UNAVAILABLE_TEXT[reason]}. ` +
    "This says nothing about the call itself and is not a refusal." +
    (runEnds ? " The run ends with this error." : "")
  );
}

/** What is wrong with a call that can be neither judged nor run. */
export type Malformation = "no_id" | "duplicate_id" | "bad_arguments";

const MALFORMED: Readonly<Record<Malformation, string>> = {
  no_id: "it has no id. Give every call an id of its own",
  duplicate_id: "another call of the same step has the same id. Give every call an id of its own",
  bad_arguments: "its arguments are not a JSON object. Send the arguments as one JSON object",
};

/** For a call that can be neither judged nor run. */
export function malformedFeedback(toolName: string, malformation: Malformation): string {
  return `The call to ${shortName(toolName)} did not run: ${MALFORMED[malformation]}.`;
}

/** For a call that would have run, had no other call of its step been stopped. */
export function heldBackFeedback(toolName: string): string {
  return (
    `The call to ${shortName(toolName)} was held back and did not run, because another call of the same step was not allowed. ` +
    "It was not itself judged to be risky."
  );
}

/** For a call that a person rejected. */
export function rejectedFeedback(toolName: string, message: string | undefined): string {
  const words = message?.trim() ? ` The person said: ${message.trim()}` : " The person gave no reason.";
  return `A person rejected the call to ${shortName(toolName)}: it did not run.${words}`;
}

/** For a call that waited for a person, or for its start after an approval, when a new message came. */
export function supersededFeedback(toolName: string, isApproved = false): string {
  if (isApproved)
    return `A person approved the call to ${shortName(toolName)}, but a new message came before it was started: it did not run.`;
  return `The call to ${shortName(toolName)} waited for a person's approval and did not run: a new message came instead of an answer.`;
}

/** For a call that a person approved and that gave no result before a new message came. */
export function unheardFeedback(toolName: string): string {
  return `A person approved the call to ${shortName(toolName)}, but a new message came before its result. It may have run.`;
}

/** For a call that was changed behind the back of the person who was to decide about it. */
export function changedFeedback(toolName: string): string {
  return `The call to ${shortName(toolName)} did not run: it was changed while it waited for a person's approval.`;
}

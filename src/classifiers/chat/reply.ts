import type { Choice, JsonValue, Score } from "@langchain/core/decisions";
import { AIMessage, BaseMessage } from "@langchain/core/messages";
import { cutEnd } from "../../transcript/cut.js";
import { escapeInvisible } from "../../transcript/escape-text.js";
import {
  allFail,
  answerKeys,
  choiceOutcome,
  failure,
  isProbability,
  type NoAnswer,
  noulOutcome,
  type Outcome,
  scoreOutcome,
  type TextQuestion,
  type TextQuestions,
} from "../answers.js";
import { explanationName } from "./prompt.js";

// Two sentences, generously.
const MAX_EXPLANATION = 600;
// A model rounds; more than this is no distribution.
const SUM_TOLERANCE = 0.05;

/** The outcomes of what a chat model, or one with structured output, gave back. */
export function readReply({ message, parsed }: ChatReply, questions: TextQuestions): Map<string, Outcome> {
  const stop = message === undefined ? undefined : stopOf(message);
  if (stop !== undefined) return allFail(questions, stop.reason, stop.problem, stop.code);
  if (parsed !== undefined) return readChatAnswers(JSON.stringify(parsed), questions);
  if (message === undefined) return allFail(questions, "error", "there is no reply", "no_reply");
  const text = replyText(message);
  return typeof text === "string"
    ? readChatAnswers(text, questions)
    : allFail(questions, text.reason, text.problem, text.code);
}

/**
 * Reads a chat model's text: one JSON object, alone or in one fence, after at most one closed thinking
 * block. Prose may come before the object if the object ends the reply and nothing in the prose looks
 * like an answer: prose may quote an answer that somebody else wrote. What is wrong with one question's
 * value fails that question alone.
 */
export function readChatAnswers(text: string, questions: TextQuestions): Map<string, Outcome> {
  const reply = afterThinking(text.trim());
  if (reply === undefined)
    return allFail(questions, "error", "the thinking block is not closed", "open_thinking");
  if (reply === "") return allFail(questions, "error", "the reply is empty", "empty_reply");
  const members = objectMembers(withoutFence(reply));
  if (members !== undefined) return readMembers(members, questions);
  const last = objectAfterProse(reply, Object.keys(questions));
  const start = reply.slice(0, REFUSAL_WITHIN);
  if (last !== undefined && !PLAIN_REFUSAL.test(start)) return readMembers(last, questions);
  return REFUSAL.test(start)
    ? allFail(questions, "refused", "the model refused in words")
    : allFail(questions, "error", "the reply does not end with one JSON object of answers", "not_json");
}

function readMembers(members: readonly Member[], questions: TextQuestions): Map<string, Outcome> {
  const explanation = readExplanation(members, explanationName(questions));
  return new Map(
    Object.entries(questions).map(([id, question]) => [id, outcome(members, id, question, explanation)]),
  );
}

const THINKING = /<(think|thinking)>/i;

/** What follows the thinking block, if there is one. Undefined if the block is not closed. */
function afterThinking(text: string): string | undefined {
  const opening = THINKING.exec(text);
  if (opening?.index !== 0) return text;
  const closing = new RegExp(`</${opening[1]}>`, "i").exec(text);
  return closing === null ? undefined : text.slice(closing.index + closing[0].length).trim();
}

const FENCE = "```";

function withoutFence(text: string): string {
  if (!text.startsWith(FENCE) || !text.endsWith(FENCE) || text.length < 2 * FENCE.length) return text;
  return text
    .slice(FENCE.length, -FENCE.length)
    .replace(/^json(?=\s)/i, "")
    .trim();
}

// An object of answers seldom has more braces before its first answer, in an explanation.
const MAX_STARTS = 50;
// What a quotation, a longer value or a quoted line has before it.
const QUOTING = /[>"'`“‘«([{,=|\\]$/u;

/** The members of the object that ends the text, if what comes before it is prose without any answer. */
function objectAfterProse(reply: string, ids: readonly string[]): Member[] | undefined {
  const fenced = reply.endsWith(FENCE);
  const text = fenced ? reply.slice(0, -FENCE.length).trimEnd() : reply;
  if (!text.endsWith("}")) return undefined;
  const firstAnswer = Math.min(...ids.map((id) => indexOfMember(text, id)));
  let start = firstAnswer;
  for (let tries = 0; tries < MAX_STARTS && start > 0 && start < Infinity; tries++) {
    start = text.lastIndexOf("{", start - 1);
    const members = start === -1 ? undefined : objectMembers(text.slice(start));
    if (members !== undefined) return isProse(text.slice(0, start), fenced, ids) ? members : undefined;
  }
  return undefined;
}

/** Where a member of this name starts in a text that may hold JSON. */
function indexOfMember(text: string, id: string): number {
  const name = JSON.stringify(id);
  const colon = /\s*:/y;
  for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + 1)) {
    colon.lastIndex = at + name.length;
    if (colon.test(text)) return at;
  }
  return Infinity;
}

function isProse(before: string, fenced: boolean, ids: readonly string[]): boolean {
  const prose = fenced ? before.replace(/```(?:json)?\s*$/i, "") : before;
  if (fenced && prose === before) return false;
  const spelledOut = prose.replace(/\\u([0-9a-f]{4})/gi, (_, code: string) =>
    String.fromCharCode(parseInt(code, 16)),
  );
  const line = prose.slice(prose.lastIndexOf("\n") + 1);
  return (
    !THINKING.test(prose) &&
    // Inside a fence that is still open, something else is being shown.
    prose.split(FENCE).length % 2 === 1 &&
    !QUOTING.test(prose.replace(/<\/(?:think|thinking)>\s*$/i, "").trimEnd()) &&
    !line.trimStart().startsWith(">") &&
    ids.every((id) => indexOfMember(spelledOut, id) === Infinity)
  );
}

// Words of a plain refusal: an object after them is not an answer.
const PLAIN_REFUSAL =
  /\b(?:i(?:['’]m| am) sorry|sorry, (?:but )?i\b|i apologi[sz]e|i (?:must decline|decline|refuse)|(?:cannot|can['’]t) (?:help|assist|comply))/i;
// Only names the failure: no words can make an answer.
const REFUSAL =
  /\b(?:i(?:['’]m| am) (?:sorry|unable|not able|not comfortable)|i (?:can(?:['’]t|not| not)|won['’]t|will not|must decline|decline|refuse)|sorry, (?:but )?i\b|i apologi[sz]e|cannot (?:help|assist|comply))/i;
// A refusal says so at its start.
const REFUSAL_WITHIN = 300;

function readExplanation(members: readonly Member[], name: string): string | undefined {
  const text = only(members, name)?.text;
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  // It may repeat what it read, and goes on to the agent: so it is shown and cut like that.
  const shown = typeof value === "string" ? cutEnd(escapeInvisible(value.trim()), MAX_EXPLANATION) : "";
  return shown === "" ? undefined : shown;
}

/** The member with this name, if there is exactly one. */
function only(members: readonly Member[], name: string): Member | undefined {
  const found = members.filter((member) => member.name === name);
  return found.length === 1 ? found[0] : undefined;
}

function outcome(
  members: readonly Member[],
  id: string,
  question: TextQuestion,
  explanation: string | undefined,
): Outcome {
  const member = only(members, id);
  if (member === undefined) return failure("it is not answered exactly once", "unanswered");
  switch (question.type) {
    case "choice":
      return choice(question, member.text);
    case "score":
      return score(question, member.text);
    case "noul": {
      const read = noulOutcome(JSON.parse(member.text));
      return "answer" in read && explanation !== undefined
        ? { answer: { ...read.answer, explanation } }
        : read;
    }
  }
}

function choice(question: Choice, text: string): Outcome {
  const shares = readShares(answerKeys(question), text);
  if (shares === undefined) return failure("the probabilities are no distribution", "wrong_value");
  const [picked] = shares.reduce((most, share) => (share[1] > most[1] ? share : most));
  return choiceOutcome(question, { picked, probabilities: shares });
}

function score(question: Score, text: string): Outcome {
  const shares = readShares(answerKeys(question), text);
  if (shares === undefined) return failure("the probabilities are no distribution", "wrong_value");
  const expected = shares.reduce((sum, [level, share]) => sum + Number(level) * share, 0);
  // Rounding may carry the sum past the last level.
  const picked = Math.min(expected, question.criteria.length - 1);
  return scoreOutcome(question, { picked, probabilities: shares });
}

/** A share for each key; keys left out count as 0. Undefined if this is no distribution over the keys. */
function readShares(keys: readonly string[], text: string): [string, number][] | undefined {
  const members = objectMembers(text);
  if (members === undefined) return undefined;
  const given = new Map(members.map(({ name, text: value }) => [name, JSON.parse(value) as unknown]));
  const values = [...given.values()];
  if (given.size !== members.length || !values.every(isProbability)) return undefined;
  if ([...given.keys()].some((name) => !keys.includes(name))) return undefined;
  const sum = values.reduce((total, share) => total + share, 0);
  if (Math.abs(sum - 1) > SUM_TOLERANCE) return undefined;
  return keys.map((key) => [key, ((given.get(key) as number | undefined) ?? 0) / sum]);
}

// Providers spell the same stop differently; LangChain passes their words on.
const CUT = new Set([
  "length",
  "max_tokens",
  "max_output_tokens",
  "max_completion_tokens",
  "model_length",
  "model_context_window_exceeded",
]);
const REFUSED = new Set([
  "refusal",
  "content_filter",
  "content_filtered",
  "guardrail_intervened",
  "safety",
  "prohibited_content",
  "blocklist",
  "spii",
  "recitation",
  "error_toxic",
]);
const STOP_FIELDS = ["finish_reason", "stop_reason", "finishReason", "stopReason", "done_reason"];
// The model's way to its answer, which is never read.
const REASONING_BLOCKS = new Set(["reasoning", "thinking", "redacted_thinking", "reasoning_content"]);

/** Why a reply cannot count, whatever its text says: a refusal, or a stop at the token limit. */
function stopOf(message: BaseMessage): NoAnswer | undefined {
  const words = new Set([...stopWords(message)].map((word) => word.toLowerCase()));
  const has = (known: ReadonlySet<string>) => [...words].some((word) => known.has(word));
  if (hasRefusal(message) || has(REFUSED)) return { reason: "refused", problem: "the model refused" };
  if (has(CUT))
    return { reason: "truncated", problem: "the reply stopped at the token limit", code: "truncated" };
  return undefined;
}

/** The text of a reply, its reasoning left out. */
function replyText(message: BaseMessage): string | NoAnswer {
  if (AIMessage.isInstance(message) && message.tool_calls?.length) {
    return failure("the reply is a tool call", "tool_call");
  }
  if (typeof message.content === "string") return message.content;
  const blocks = message.content.filter((block) => !REASONING_BLOCKS.has(block.type));
  if (!blocks.every((block) => block.type === "text" && typeof block.text === "string")) {
    return failure("the reply holds something else than text", "no_text");
  }
  return blocks.map((block) => String(block.text)).join("");
}

/** What came back: the message, and what structured output made of it. */
export interface ChatReply {
  message: BaseMessage | undefined;
  /** Undefined if there was no structured output, or nothing came of it. */
  parsed?: unknown;
}

/** Takes apart what a chat model, or one with structured output, returned. */
export function unwrapReply(reply: unknown): ChatReply {
  if (BaseMessage.isInstance(reply)) return { message: reply };
  const { raw, parsed } = (reply ?? {}) as { raw?: unknown; parsed?: unknown };
  if (BaseMessage.isInstance(raw)) return { message: raw, parsed: parsed ?? undefined };
  // A model may give the object alone, although it was asked for the message as well.
  return { message: undefined, parsed: reply ?? undefined };
}

/** The name of the model that wrote a message, as its provider reports it. */
export function writerOf(message: BaseMessage | undefined): string | undefined {
  const { model_name: name, model } = (message?.response_metadata ?? {}) as Record<string, unknown>;
  return [name, model].find((candidate) => typeof candidate === "string" && candidate !== "") as
    | string
    | undefined;
}

/** The provider's id of a message. */
export function providerId(message: BaseMessage | undefined): string | undefined {
  // Where the provider gave none, LangChain made one up out of the run's.
  return message?.id?.startsWith("run-") ? undefined : message?.id;
}

function* stopWords({
  response_metadata: metadata,
  additional_kwargs: extra,
}: BaseMessage): Generator<string> {
  for (const fields of [metadata, extra] as (Record<string, unknown> | undefined)[]) {
    for (const name of STOP_FIELDS) if (typeof fields?.[name] === "string") yield fields[name];
    const details = fields?.["incomplete_details"] as { reason?: unknown } | null | undefined;
    if (typeof details?.reason === "string") yield details.reason;
  }
}

function hasRefusal({ additional_kwargs: extra, content }: BaseMessage): boolean {
  if (typeof extra?.["refusal"] === "string" && extra["refusal"] !== "") return true;
  return Array.isArray(content) && content.some((block) => block.type === "refusal");
}

type Schema = Record<string, JsonValue>;

/**
 * The JSON schema of a reply, for a model's own structured output. It states no ranges, because some
 * providers refuse them in a schema: ranges are checked when the reply is read.
 */
export function replySchema(questions: TextQuestions, explanation = true): Schema {
  return objectOf("Answers to the questions", {
    ...(explanation
      ? { [explanationName(questions)]: { type: "string", description: "One or two short sentences." } }
      : {}),
    ...Object.fromEntries(Object.entries(questions).map(([id, question]) => [id, valueSchema(question)])),
  });
}

function valueSchema(question: TextQuestion): Schema {
  if (question.type === "noul") return { type: "number", description: "Probability of yes, from 0 to 1." };
  const share = { type: "number", description: "Probability from 0 to 1; all together are 1." };
  return objectOf(
    "A probability for each",
    Object.fromEntries(answerKeys(question).map((key) => [key, share])),
  );
}

function objectOf(description: string, properties: Record<string, Schema>): Schema {
  return {
    type: "object",
    description,
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

/** A member of a JSON object: its name, and its value as it was written. */
export interface Member {
  name: string;
  text: string;
}

/**
 * The members of a text that is one JSON object and nothing else, in their order, those with a
 * repeated name included: `JSON.parse` would silently keep the last. Undefined for any other text.
 */
function objectMembers(text: string): Member[] | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  return split(text);
}

/** Splits an object that is known to be valid JSON. */
function split(text: string): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let start = 1;
  let colon = -1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = closingQuote(text, at);
    else if (character === "{" || character === "[") depth++;
    else if (character === ":" && depth === 1) colon = at;
    else if (character === "," && depth === 1) {
      members.push(readMember(text, start, colon, at));
      start = at + 1;
    } else if (character === "}" || character === "]") {
      depth--;
      if (depth === 0 && colon !== -1) members.push(readMember(text, start, colon, at));
    }
  }
  return members;
}

function readMember(text: string, start: number, colon: number, end: number): Member {
  return { name: JSON.parse(text.slice(start, colon)) as string, text: text.slice(colon + 1, end).trim() };
}

function closingQuote(text: string, opening: number): number {
  let at = opening + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at;
}

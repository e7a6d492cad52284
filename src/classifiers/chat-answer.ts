import type { Choice, Score } from "@langchain/core/decisions";
import { cutEnd, escapeInvisible } from "../transcript/text.js";
import { type Member, objectMembers } from "./json-members.js";
import {
  answerKeys,
  choiceOutcome,
  isProbability,
  noulOutcome,
  scoreOutcome,
  type TextQuestion,
  type TextQuestions,
} from "./answers.js";
import { allFail, type Outcome } from "./answers.js";

// Two sentences, generously.
const MAX_EXPLANATION = 600;
// A model rounds; more than this is no distribution.
const SUM_TOLERANCE = 0.05;

/** The name under which the explanation stands in the reply: no question has it. */
export function explanationName(questions: TextQuestions): string {
  let name = "explanation";
  while (Object.hasOwn(questions, name)) name = `the_${name}`;
  return name;
}

/**
 * Reads a chat model's reply: one JSON object, alone or in one fence, after at most one closed
 * thinking block. Nothing is looked for inside prose or reasoning, because both may quote an answer
 * that somebody else wrote. What is wrong with one question's value fails that question alone.
 */
export function readChatAnswers(text: string, questions: TextQuestions): Map<string, Outcome> {
  const reply = afterThinking(text.trim());
  if (reply === undefined) return allFail(questions, "error", "the thinking block is not closed");
  if (reply === "") return allFail(questions, "error", "the reply is empty");
  const members = objectMembers(withoutFence(reply));
  if (members === undefined) {
    return isRefusal(reply)
      ? allFail(questions, "refused", "the model refused in words")
      : allFail(questions, "error", "the reply is not one JSON object");
  }
  const explanation = readExplanation(members, explanationName(questions));
  return new Map(
    Object.entries(questions).map(([id, question]) => [id, outcome(members, id, question, explanation)]),
  );
}

/** What follows the thinking block, if there is one. Undefined if the block is not closed. */
function afterThinking(text: string): string | undefined {
  const opening = /^<(think|thinking)>/i.exec(text);
  if (opening === null) return text;
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

// Only names the failure: no words can make an answer.
const REFUSAL =
  /\b(?:i(?:['’]m| am) (?:sorry|unable|not able|not comfortable)|i (?:can(?:['’]t|not| not)|won['’]t|will not|must decline|decline|refuse)|sorry, (?:but )?i\b|i apologi[sz]e|cannot (?:help|assist|comply))/i;
// A refusal says so at its start.
const REFUSAL_WITHIN = 300;

function isRefusal(text: string): boolean {
  return REFUSAL.test(text.slice(0, REFUSAL_WITHIN));
}

function readExplanation(members: readonly Member[], name: string): string | undefined {
  const text = only(members, name)?.text;
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  // It may repeat what it read, and goes on to the agent: so it is shown and cut like that.
  const shown = typeof value === "string" ? cutEnd(escapeInvisible(value.trim()), MAX_EXPLANATION) : "";
  return shown === "" ? undefined : shown;
}

/** The member of a name that stands there exactly once. */
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
  if (member === undefined) return { reason: "error", problem: "it is not answered exactly once" };
  if (question.type === "choice") return choice(question, member.text);
  if (question.type === "score") return score(question, member.text);
  const read = noulOutcome(JSON.parse(member.text));
  return "answer" in read && explanation !== undefined ? { answer: { ...read.answer, explanation } } : read;
}

function choice(question: Choice, text: string): Outcome {
  const shares = readShares(answerKeys(question), text);
  if (shares === undefined) return { reason: "error", problem: "the probabilities are no distribution" };
  const [picked] = shares.reduce((most, share) => (share[1] > most[1] ? share : most));
  return choiceOutcome(question, { picked, probabilities: shares });
}

function score(question: Score, text: string): Outcome {
  const shares = readShares(answerKeys(question), text);
  if (shares === undefined) return { reason: "error", problem: "the probabilities are no distribution" };
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

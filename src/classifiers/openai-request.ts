import type { Content, JsonValue, NoulCriteria, State } from "@langchain/core/decisions";
import { type ContentBlock, HumanMessage } from "@langchain/core/messages";
import type { TextQuestion, TextQuestions } from "./read-answer.js";
import { stateAsJson } from "./state-json.js";

type Part = { type: "input_text"; text: string } | { type: "input_image"; image_url: string };

/** The body of `POST /v1/decisions`. */
export interface DecisionsRequest {
  model: string;
  input: string | { role: "user"; content: string | Part[] }[];
  questions: object[];
}

/** Writes a request in the service's own shape. */
export function decisionsRequest(model: string, state: State, questions: TextQuestions): DecisionsRequest {
  return {
    model,
    input: input(state),
    questions: Object.entries(questions).map(([name, question]) => wireQuestion(name, question)),
  };
}

/** The service takes user messages only. Any other state goes as JSON, so that no role is lost. */
function input(state: State): DecisionsRequest["input"] {
  if (typeof state === "string") return state;
  const messages = Array.isArray(state) ? state : [state];
  if (messages.length > 0 && messages.every((message) => HumanMessage.isInstance(message))) {
    return messages.map((message) => ({ role: "user", content: content(message) }));
  }
  return JSON.stringify(stateAsJson(state));
}

function content(message: HumanMessage): string | Part[] {
  if (typeof message.content === "string") return message.content;
  return message.contentBlocks.map(part);
}

function part(block: ContentBlock.Standard): Part {
  if (block.type === "text") return { type: "input_text", text: block.text };
  const url = block.type === "image" ? imageUrl(block) : undefined;
  if (url !== undefined) return { type: "input_image", image_url: url };
  throw new Error(
    `OpenAIDecisionModel reads text and images, and a message of the state has a block of type ${block.type} that is neither.`,
  );
}

function imageUrl({ url, data, mimeType }: ContentBlock.Multimodal.Image): string | undefined {
  if (url !== undefined) return url;
  if (data === undefined || mimeType === undefined) return undefined;
  return `data:${mimeType};base64,${typeof data === "string" ? data : base64(data)}`;
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCodePoint(byte)).join(""));
}

function wireQuestion(name: string, question: TextQuestion): object {
  const instructions = asText(question.instructions);
  if (question.type === "noul") {
    return { type: "predicate", name, instructions: withMeanings(instructions, question.criteria ?? {}) };
  }
  if (question.type === "choice") {
    const choices = Object.entries(question.criteria).map(([value, meaning]) => ({
      value,
      ...described(meaning),
    }));
    return { type: "choice", name, instructions, choices };
  }
  const levels = question.criteria.map((meaning, level) => ({ label: String(level), ...described(meaning) }));
  return { type: "score", name, instructions, levels };
}

/** A predicate has no place for what yes and no mean, so the instructions end with it. */
function withMeanings(instructions: string, { true: yes, false: no }: NoulCriteria): string {
  return [
    instructions,
    ...(yes === undefined ? [] : [`It is true if: ${asText(yes)}`]),
    ...(no === undefined ? [] : [`It is false if: ${asText(no)}`]),
  ].join("\n\n");
}

function described(meaning: JsonValue): { description?: string } {
  return meaning === null ? {} : { description: asText(meaning) };
}

function asText(value: Content | JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

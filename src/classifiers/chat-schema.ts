import type { JsonValue } from "@langchain/core/decisions";
import { explanationName } from "./chat-answer.js";
import { answerKeys, type TextQuestion, type TextQuestions } from "./answers.js";

type Schema = Record<string, JsonValue>;

/**
 * The JSON schema of a reply, for a model's own structured output. It states no ranges, because some
 * providers refuse them in a schema: ranges are checked when the reply is read.
 */
export function replySchema(questions: TextQuestions): Schema {
  return objectOf("Answers to the questions", {
    [explanationName(questions)]: { type: "string", description: "One or two short sentences." },
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

import type { BaseMessage, BaseMessageLike } from "@langchain/core/messages";
import { coerceMessageLikeToMessage } from "@langchain/core/messages";
import { z } from "zod";
import { ConfigurationError } from "../errors.js";
import { check, mismatch, optionPath } from "../option-problem.js";

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
export function checkInput(given: unknown): void {
  check(input, given, "");
}

/** The messages as an agent's state holds them. */
export function readMessages(given: readonly BaseMessageLike[]): BaseMessage[] {
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

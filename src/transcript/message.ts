import { type Fields, fieldsOf } from "./media.js";

/** What a message is to the transcript. `hidden` are system messages and what is no message. */
export type MessageKind = "human" | "ai" | "tool" | "hidden" | "other";

const KINDS: ReadonlyMap<string, MessageKind> = new Map<string, MessageKind>([
  ["human", "human"],
  ["user", "human"],
  ["ai", "ai"],
  ["assistant", "ai"],
  ["tool", "tool"],
  ["function", "tool"],
  ["system", "hidden"],
  ["developer", "hidden"],
  ["remove", "hidden"],
]);

/** A field that may be a getter: chunk classes compute theirs, and may fail on odd input. */
export function fieldOf(message: Fields, name: string): unknown {
  try {
    return message[name];
  } catch {
    return undefined;
  }
}

/** A list field of a message, its items that are objects. */
export function listOf(message: Fields, name: string): readonly Fields[] {
  const value = fieldOf(message, name);
  return Array.isArray(value) ? value.map((item) => fieldsOf(item) ?? {}) : [];
}

/** The message's type. Messages may come from another copy of core, so no class is asked. */
function typeOf(message: Fields): unknown {
  try {
    // Most messages answer at once, and this is asked of every message of a history.
    if (typeof message["getType"] === "function") return message["getType"]() as unknown;
  } catch {
    // It is asked once more below, and then for other fields.
  }
  for (const name of ["getType", "_getType"]) {
    const ask = fieldOf(message, name);
    if (typeof ask !== "function") continue;
    try {
      return ask.call(message) as unknown;
    } catch {
      // Then the plain field decides.
    }
  }
  return fieldOf(message, "type");
}

/** What a message is, by its type and, for messages of a free role, by that. */
export function kindOfMessage(message: Fields): MessageKind {
  const type = typeOf(message);
  const known = typeof type === "string" ? KINDS.get(type) : undefined;
  if (known !== undefined) return known;
  const role = fieldOf(message, "role");
  return (typeof role === "string" ? KINDS.get(role) : undefined) ?? "other";
}

/** The tag that says which program made the message; undefined on a message that has none. */
export function sourceTag(message: Fields): unknown {
  try {
    return tagIn(message["additional_kwargs"]) ?? tagIn(message["response_metadata"]);
  } catch {
    return tagIn(fieldOf(message, "additional_kwargs")) ?? tagIn(fieldOf(message, "response_metadata"));
  }
}

function tagIn(fields: unknown): unknown {
  return fieldsOf(fields)?.["lc_source"] ?? undefined;
}

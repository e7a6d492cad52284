import { type Fields, fieldsOf, isMedia, mediaMarker } from "./media.js";
import type { JsonValue } from "@langchain/core/decisions";
import type { CallEntry, ResultEntry } from "./entries.js";
import { jsonText } from "./json.js";
import { cutEnd } from "./cut.js";

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

/** The name where a message or a block gives none. */
export const UNKNOWN = "unknown";

/** A name as given, or `unknown`. */
export function nameOr(value: unknown, fallback = UNKNOWN): string {
  return typeof value === "string" && value !== "" ? value : fallback;
}

/** A call that JSON could not hold: its raw text. */
export function malformedEntry(call: Fields): ResultEntry {
  const { args } = call;
  return {
    from: "malformed_tool_call",
    name: nameOr(call["name"]),
    text: typeof args === "string" ? args : jsonText(args ?? call["input"] ?? null),
  };
}

/** A call as the message lists it. */
export function callEntry(call: Fields): CallEntry {
  return { from: "tool_call", name: nameOr(call["name"]), args: (call["args"] ?? null) as JsonValue };
}

/** A call that only the content blocks hold. */
export function callFromBlock(block: Fields): CallEntry | ResultEntry {
  const inner = fieldsOf(block["functionCall"]);
  if (inner !== undefined) return callEntry(inner);
  const args = block["args"] ?? block["input"] ?? block["arguments"];
  return fieldsOf(args) === undefined
    ? malformedEntry({ name: block["name"], args })
    : callEntry({ name: block["name"], args });
}

/** Fields of a hosted tool's item that say what came of it, or nothing about the call. */
const NOT_ARGUMENTS: ReadonlySet<string> = new Set([
  "type",
  "id",
  "call_id",
  "status",
  "index",
  "name",
  "output",
  "outputs",
  "result",
  "results",
  "error",
]);

function without(block: Fields, names: ReadonlySet<string>): Fields {
  return Object.fromEntries(Object.entries(block).filter(([name]) => !names.has(name)));
}

/** `web_search_call` and `web_search_tool_result` are of the tool `web_search`. */
function toolOfType(type: unknown): string {
  // The standard blocks are the same for all tools.
  if (typeof type !== "string" || type.startsWith("server_tool")) return UNKNOWN;
  return nameOr(type.replace(/(?:_tool_result|_call_output|_call|_output)$/, ""));
}

/** A call that the model's own server made. */
export function serverCallEntry(block: Fields): CallEntry {
  const code = fieldsOf(block["executableCode"]);
  const args = block["args"] ?? block["input"] ?? code ?? block["action"] ?? block["arguments"];
  return {
    from: "server_tool_call",
    name: nameOr(block["name"], code === undefined ? toolOfType(block["type"]) : "code_execution"),
    args: (args ?? without(block, NOT_ARGUMENTS)) as JsonValue,
  };
}

/** What came of it, where the same item says so. */
export function resultInside(block: Fields): unknown {
  return block["output"] ?? block["outputs"] ?? block["results"] ?? block["result"] ?? block["error"];
}

const IMAGE = { type: "image", mimeType: "image/png" };

/** What a call that the model's own server made gave back. `name` is the call's. */
export function serverResultEntry(block: Fields, name?: string): ResultEntry {
  const code = fieldsOf(block["codeExecutionResult"]);
  if (block["type"] === "image_generation_call")
    return {
      from: "server_tool_result",
      name: "image_generation",
      text: mediaMarker({ ...IMAGE, data: block["result"] }),
    };
  const output = resultInside(block) ?? block["content"] ?? block["tools"] ?? code;
  const own = code === undefined ? toolOfType(block["type"]) : "code_execution";
  const given = name ?? block["name"] ?? fieldsOf(block["extras"])?.["name"];
  return { from: "server_tool_result", name: nameOr(given, own), text: outputText(output) };
}

function outputText(output: unknown): string {
  const fields = Array.isArray(output) ? undefined : fieldsOf(output);
  return fields !== undefined && !isMedia(fields) ? jsonText(fields) : textOf(output);
}

/** What a content block is to a reader. `nothing` is what another part of the message says too. */
export type BlockKind =
  | "text"
  | "media"
  | "refusal"
  | "reasoning"
  | "call"
  | "server_call"
  | "server_result"
  | "unknown"
  | "nothing";

/** Enough to recognize a block that we do not know. */
const MAX_UNKNOWN = 300;

const BLOCK_KINDS: ReadonlyMap<unknown, BlockKind> = new Map<unknown, BlockKind>([
  ["text", "text"],
  ["input_text", "text"],
  ["output_text", "text"],
  ["refusal", "refusal"],
  ["reasoning", "reasoning"],
  ["thinking", "reasoning"],
  ["reasoning_content", "reasoning"],
  ["redacted_thinking", "reasoning"],
  ["tool_call", "call"],
  ["tool_use", "call"],
  ["functionCall", "call"],
  ["function_call", "call"],
  ["custom_tool_call", "call"],
  ["invalid_tool_call", "call"],
  ["tool_call_chunk", "call"],
  ["input_json_delta", "call"],
  ["server_tool_call", "server_call"],
  ["server_tool_call_chunk", "server_call"],
  ["server_tool_use", "server_call"],
  ["mcp_tool_use", "server_call"],
  ["mcp_list_tools", "server_call"],
  ["container_upload", "server_call"],
  ["executableCode", "server_call"],
  ["server_tool_call_result", "server_result"],
  ["codeExecutionResult", "server_result"],
  ["tool_search_output", "server_result"],
]);

/** The block inside a `non_standard` wrapper. */
export function unwrap(block: unknown): unknown {
  const fields = fieldsOf(block);
  return fields?.["type"] === "non_standard" && fields["value"] !== undefined ? fields["value"] : block;
}

/** The message content as a list of blocks, whatever was put there. */
export function blocksOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content.map(unwrap);
  if (content === null || content === undefined || content === "") return [];
  return [unwrap(content)];
}

/** What a block is, by its type and shape; no text is read. */
export function kindOfBlock(block: unknown): BlockKind {
  if (typeof block === "string") return block === "" ? "nothing" : "text";
  const fields = fieldsOf(block);
  if (fields === undefined) return block === null || block === undefined ? "nothing" : "unknown";
  const type = fields["type"];
  const known = BLOCK_KINDS.get(type);
  // An older notation puts a document's text into a block of type `text`.
  if (known === "text" && fields["source_type"] === undefined) return kindOfText(fields);
  if (known !== undefined && known !== "text") return known;
  if (isMedia(fields)) return "media";
  if (typeof type !== "string") return "unknown";
  // The built-in calls of hosted tools: web_search_call, web_search_tool_result, and so on.
  if (type.endsWith("_tool_result") || type.endsWith("_call_output")) return "server_result";
  return type.endsWith("_call") ? "server_call" : "unknown";
}

function kindOfText(fields: Fields): BlockKind {
  if (fields["thought"] === true) return "reasoning";
  return fields["text"] === "" ? "nothing" : "text";
}

/** The first of the values that is a string with something in it. */
function firstText(...values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === "string" && value !== "");
}

/** Text as it is, the texts of a list joined, and JSON for the rest. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (!Array.isArray(value)) return textOfBlock(value);
  return joinTexts(value.map(textOfBlock));
}

/** Texts of separate blocks, one a line. */
export function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n");
}

function reasoningText(fields: Fields): string {
  if (fields["type"] === "redacted_thinking") return "[redacted]";
  const nested = fieldsOf(fields["reasoningText"]);
  const parts = [fields["summary"], fields["content"]].filter(Array.isArray).flat() as unknown[];
  const listed = parts.map((part) => fieldsOf(part)?.["text"]).filter((text) => typeof text === "string");
  return (
    firstText(
      fields["reasoning"],
      fields["thinking"],
      fields["reasoningText"],
      nested?.["text"],
      fields["text"],
    ) ?? listed.join("\n")
  );
}

/** A block as text: its own words, or a short marker that says what is there. */
export function textOfBlock(block: unknown): string {
  if (typeof block === "string") return block;
  const fields = fieldsOf(block);
  if (fields === undefined) return block === null || block === undefined ? "" : jsonText(block);
  switch (kindOfBlock(block)) {
    case "text":
      return typeof fields["text"] === "string" ? fields["text"] : unknownMarker(fields);
    case "nothing":
      return "";
    case "media":
      return mediaMarker(fields);
    case "refusal":
      return firstText(fields["refusal"], fields["text"]) ?? "[refusal]";
    case "reasoning":
      return reasoningText(fields);
    default:
      return unknownMarker(fields);
  }
}

function unknownMarker(fields: Fields): string {
  return `[${cutEnd(jsonText(fields), MAX_UNKNOWN)}]`;
}

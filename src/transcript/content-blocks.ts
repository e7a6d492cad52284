import { cutEnd } from "./cut.js";
import { jsonText } from "./json.js";
import { type Fields, fieldsOf, isMedia, mediaMarker } from "./media.js";

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

const KINDS: ReadonlyMap<unknown, BlockKind> = new Map<unknown, BlockKind>([
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
  const known = KINDS.get(type);
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

import type { JsonValue } from "@langchain/core/decisions";
import type { CallEntry, ResultEntry } from "./entries.js";
import { textOf } from "./content-blocks.js";
import { jsonText } from "./json.js";
import { type Fields, fieldsOf, isMedia, mediaMarker } from "./media.js";

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

import { channelOf, type Entry } from "./entries.js";
import { jsonText } from "./json.js";

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\n": "&#10;",
  "\r": "&#13;",
  "\t": "&#9;",
};

const TAGS: ReadonlySet<unknown> = new Set([...Object.keys(channelOf), "omitted", "no_user_message"]);

/**
 * Escapes text for the inside of a tag, so that it can neither close that tag nor open one.
 *
 * @example
 * ```ts
 * `<tool_description>${escapeTagged(description)}</tool_description>`;
 * ```
 */
export function escapeTagged(text: string): string {
  return text.replace(/[&<>]/g, (character) => ESCAPES[character] as string);
}

/** Escapes text for a tag's attribute, between double quotes. */
export function escapeAttribute(text: string): string {
  return text.replace(/[&<>"\n\r\t]/g, (character) => ESCAPES[character] as string);
}

/** The entry may come from a request, which can hold anything. */
function textOf(value: unknown): string {
  return typeof value === "string" ? value : jsonText(value);
}

function attribute(name: string, value: unknown): string {
  return ` ${name}="${escapeAttribute(textOf(value))}"`;
}

function renderEntry(entry: Entry): string {
  // A name that we do not know must not become a tag.
  const tag = TAGS.has(entry.from) ? entry.from : "unknown_entry";
  const attributes = [
    "name" in entry ? attribute("name", entry.name) : "",
    "source" in entry ? attribute("source", entry.source) : "",
    "count" in entry ? attribute("count", entry.count) : "",
  ].join("");
  if (tag === "omitted" || tag === "no_user_message") return `<${tag}${attributes}/>`;
  const content = "args" in entry ? jsonText(entry.args) : textOf("text" in entry ? entry.text : "");
  return `<${tag}${attributes}>${escapeTagged(content)}</${tag}>`;
}

/**
 * A transcript as tagged text, for a chat model or a person: one element per entry, named after `from`.
 * Content and attributes are escaped, so that no text, name or argument can close its tag or open one.
 *
 * @example
 * ```ts
 * console.log(renderTranscript(viewTranscript(messages)));
 * // <user>Clean up the build folder.</user>
 * // <tool_call name="delete_file">{"path":"build/a.o"}</tool_call>
 * ```
 */
export function renderTranscript(entries: readonly Entry[]): string {
  return entries.map(renderEntry).join("\n");
}

import { type Fields, fieldsOf, isMedia, mediaMarker } from "./media.js";

/** The content blocks of a message. A plain text is one block of it; what is no block is unknown data. */
export function blocksOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content
    .filter((block) => block !== null)
    .map((block: unknown) => fieldsOf(block) ?? { type: "unknown", content: block });
}

/** What a tool answered, or any other data, as a text. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content)
    ? content.map((block: unknown) => blockText(block))
    : [blockText(content)];
  return blocks.join("\n");
}

function blockText(block: unknown): string {
  const fields = fieldsOf(block);
  if (fields?.["type"] === "text" && typeof fields["text"] === "string") return fields["text"];
  if (fields && isMedia(fields)) return mediaMarker(fields);
  return JSON.stringify(block, readable) ?? "";
}

/** Leaves out what nobody can read, so that the room goes to what the agent read. */
function readable(key: string, value: unknown): unknown {
  if (key.startsWith("encrypted_")) return undefined;
  const fields = fieldsOf(value);
  return fields?.["type"] === "base64" ? mediaMarker(fields) : value;
}

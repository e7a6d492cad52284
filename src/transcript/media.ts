import { cutEnd } from "./cut.js";

/** An object whose fields nobody vouches for. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object with fields, if it is one. */
export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}

/** What a block's `type` is called in a marker, for all types that model adapters send as media. */
const MEDIA_NAMES: ReadonlyMap<unknown, string> = new Map([
  ["image", "image"],
  ["image_url", "image"],
  ["image_file", "image"],
  ["input_image", "image"],
  ["computer_screenshot", "image"],
  ["audio", "audio"],
  ["audio_url", "audio"],
  ["input_audio", "audio"],
  ["video", "video"],
  ["video_url", "video"],
  ["file", "file"],
  ["input_file", "file"],
  ["media", "file"],
  ["inlineData", "file"],
  ["inline_data", "file"],
  ["fileData", "file"],
  ["file_data", "file"],
  ["document", "document"],
  ["text-plain", "text"],
]);

const SOURCE_TYPES: ReadonlySet<unknown> = new Set(["url", "base64", "text", "id"]);
const NESTED = [
  "source",
  "image_url",
  "image_file",
  "input_audio",
  "audio_url",
  "video_url",
  "file",
  "image",
  "audio",
  "video",
  "document",
  "inlineData",
  "inline_data",
  "fileData",
  "file_data",
] as const;
const MAX_URL = 200;
const MAX_MIME = 100;

/** Whether a block is one that a model adapter would send as an image, a sound, a film or a file. */
export function isMedia(block: Fields): boolean {
  return (
    MEDIA_NAMES.has(block["type"]) ||
    SOURCE_TYPES.has(block["source_type"]) ||
    fieldsOf(block["inlineData"]) !== undefined ||
    fieldsOf(block["fileData"]) !== undefined
  );
}

function firstString(places: readonly Fields[], names: readonly string[]): string | undefined {
  for (const place of places)
    for (const name of names) {
      const value = place[name];
      if (typeof value === "string" && value !== "") return value;
    }
  return undefined;
}

function sizeOf(places: readonly Fields[]): string | undefined {
  for (const place of places)
    for (const name of ["data", "bytes", "base64", "file_data"]) {
      const value = place[name];
      // Four letters of base64 encode three bytes.
      if (typeof value === "string") return `${Math.floor(afterComma(value) * 0.75)} bytes`;
      if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
    }
  const text = firstString(places, ["text"]);
  return text === undefined ? undefined : `${text.length} characters`;
}

/** The length of a data URL's content, or of plain base64. */
function afterComma(data: string): number {
  return data.startsWith("data:") ? data.length - data.slice(0, MAX_URL).indexOf(",") - 1 : data.length;
}

/**
 * An address without what may be secret in it: credentials, query and fragment, where signed links keep
 * their tokens.
 */
function addressOf(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    if (host !== "") return `${protocol}//${host}${pathname}`;
  } catch {
    // No whole address; the same parts go.
  }
  const [bare = ""] = url.split(/[?#]/, 1);
  const at = bare.indexOf("@");
  if (at < 0) return bare;
  const start = Math.max(bare.lastIndexOf("/", at), bare.lastIndexOf("\\", at)) + 1;
  const end = bare.indexOf("/", at);
  return bare.slice(0, start) + bare.slice(bare.lastIndexOf("@", end < 0 ? bare.length : end) + 1);
}

/**
 * A short text in place of a media block: what it is, its MIME type, and its size or address. Its content
 * is left out, and so are credentials, query and fragment of an address.
 *
 * @example
 * ```ts
 * mediaMarker({ type: "image", mimeType: "image/png", data: "iVBORw0K" }); // "[image, image/png, 6 bytes]"
 * ```
 */
export function mediaMarker(block: Fields): string {
  const places = [block];
  for (const name of NESTED) {
    const inner = fieldsOf(block[name]);
    if (inner === undefined) continue;
    places.push(inner);
    const source = fieldsOf(inner["source"]);
    if (source !== undefined) places.push(source);
  }
  const url = firstString(places, [
    "url",
    "uri",
    "fileUri",
    "file_url",
    "image_url",
    "audio_url",
    "video_url",
  ]);
  const inUrl = url?.startsWith("data:") ? url : undefined;
  const mime =
    firstString(places, ["mimeType", "mime_type", "media_type", "format"]) ??
    (inUrl === undefined ? undefined : /^data:([^;,]*)/.exec(inUrl.slice(0, MAX_URL))?.[1]);
  const id = firstString(places, ["fileId", "file_id"]);
  const parts = [
    MEDIA_NAMES.get(block["type"]) ?? "file",
    mime === undefined || mime === "" ? undefined : cutEnd(mime, MAX_MIME),
    inUrl === undefined ? sizeOf(places) : `${Math.floor(afterComma(inUrl) * 0.75)} bytes`,
    url === undefined || inUrl !== undefined ? undefined : cutEnd(addressOf(url), MAX_URL),
    id === undefined ? undefined : `id ${cutEnd(id, MAX_URL)}`,
  ];
  return `[${parts.filter((part) => part !== undefined).join(", ")}]`;
}

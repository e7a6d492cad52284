import { type Fields, isMedia } from "./media.js";

/** Whether an adapter, or the loader of stored objects, would take this for more than data. */
export function posesAsMoreThanData(subject: Fields): boolean {
  const { type, content } = subject;
  return (
    isMedia(subject) ||
    (type !== undefined && (typeof content === "string" || Array.isArray(content))) ||
    (typeof subject["role"] === "string" && content !== undefined) ||
    typeof subject["lc"] === "number" ||
    subject["lc_serializable"] !== undefined ||
    typeof subject["_getType"] === "function"
  );
}

/** What stands for a value that JSON cannot hold. */
export function markerFor(value: unknown): string {
  if (typeof value === "number") return `[${value}]`;
  if (typeof value !== "bigint") return `[${typeof value}]`;
  // Writing out a huge one takes quadratic time.
  return value < 10n ** 40n && value > -(10n ** 40n) ? `[bigint ${value}]` : "[bigint]";
}

/** Objects whose content is not in their fields. */
export function opaqueMarker(value: object): string | undefined {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (value instanceof Map || value instanceof Set)
    return `[${value instanceof Map ? "map" : "set"} of ${value.size}]`;
  return undefined;
}

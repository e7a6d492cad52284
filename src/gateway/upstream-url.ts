/** What an upstream's base URL must be. */
export const UPSTREAM_URL = "an http or https URL without credentials, query and fragment";

/** Reads an upstream's base URL. Undefined for what is none. */
export function readUpstreamUrl(value: unknown): URL | undefined {
  if (typeof value !== "string" && !(value instanceof URL)) return undefined;
  if (!URL.canParse(value)) return undefined;
  const url = new URL(value);
  const isPlain = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  return isPlain && (url.protocol === "http:" || url.protocol === "https:") ? url : undefined;
}

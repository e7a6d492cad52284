// They describe one connection, not the message.
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

function withoutHops(headers: Headers, alsoWithout: readonly string[]): Headers {
  const kept = new Headers(headers);
  const named = (headers.get("connection") ?? "").split(",").map((name) => name.trim());
  for (const name of [...HOP_BY_HOP, ...named, ...alsoWithout]) if (isName(name)) kept.delete(name);
  return kept;
}

// `Connection` may hold what is no header name at all; Headers would throw on it.
function isName(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/.test(text);
}

/**
 * The headers that a request takes along to the upstream. `host` is the upstream's own, the length
 * is written anew, and `expect` was answered by the server that took the request in.
 */
export function requestHeaders(headers: Headers): Headers {
  return withoutHops(headers, ["host", "content-length", "expect"]);
}

/** The headers that a reply takes along to the client. Its length is written anew. */
export function replyHeaders(headers: Headers): Headers {
  return withoutHops(headers, ["content-length"]);
}

/** The media type of a message, in lower case and without parameters. */
export function mediaType(headers: Headers): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
}

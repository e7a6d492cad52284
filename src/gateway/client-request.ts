import { replaceStringMember } from "./json-text.js";
import type { ModelMap } from "./options.js";
import { findAsk, isLoose, type Loose } from "./protocol.js";

/** What the gateway has to know of the body of a request to the messages API. */
export interface ReadBody {
  /** The bytes for the upstream: the client's own, save for a mapped model's name. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** There if the client asks for verdicts. */
  readonly ask?: {
    /** The request's body. */
    readonly body: Loose;
    /** The session's settings, as the client sent them: data that nobody has checked. */
    readonly context: unknown;
  };
}

/** What of the messages API a path stands for, below whatever path the gateway is mounted at. */
export function endpointOf(pathname: string): "messages" | "count_tokens" | undefined {
  if (pathname.endsWith("/v1/messages")) return "messages";
  return pathname.endsWith("/v1/messages/count_tokens") ? "count_tokens" : undefined;
}

/** Reads a request's body. Never fails: what is not understood is for the upstream to refuse. */
export function readBody(bytes: Uint8Array<ArrayBuffer>, mapModel: ModelMap, mayAsk: boolean): ReadBody {
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // Parsing takes time with long conversations, and most of these requests need none of it.
  if (mapModel.isEmpty && !(mayAsk && raw.includes("safeguards"))) return { bytes };
  const text = raw.toString("utf8");
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return { bytes };
  }
  if (!isLoose(body)) return { bytes };
  const model = typeof body["model"] === "string" ? mapModel.get(body["model"]) : undefined;
  const ask = mayAsk ? findAsk(body["safeguards"]) : undefined;
  return {
    bytes:
      model === undefined ? bytes : new Uint8Array(Buffer.from(replaceStringMember(text, "model", model))),
    ...(ask ? { ask: { body, context: ask["classifier_context"] } } : {}),
  };
}

import { createConversation, endpointOf, environmentOf, readBody } from "./client-request.js";
import {
  mediaType,
  requestHeaders,
  streamOf,
  type UpstreamReply,
  withoutAskWhereStrict,
} from "./upstream.js";
import { createReplyJudge, type Exchange } from "./judge-reply.js";
import { resolveOptions, type SafeguardsOptions } from "./options.js";
import { ApiError } from "./model/api-error.js";
import { notify } from "./record.js";
import { addVerdicts, addVerdictsToMessage } from "./verdicts.js";

/** A web-standard request handler. */
export type SafeguardsHandler = (request: Request) => Promise<Response>;

/**
 * Builds a gateway in front of an Anthropic-compatible upstream, or of a chat model. It answers the
 * `safeguards` that Claude Code's auto mode sends, for models whose service does not: rules, and a classifier
 * where no rule decides, judge the tool calls of each reply, and the reply carries the verdicts. Everything
 * else passes as it is.
 *
 * A failing classifier is never an error of the turn: the reply goes out, and its calls are marked as
 * not evaluated, so that the client does not run them. The handler rejects only when the client has
 * gone; an upstream that cannot be reached is a reply with status 502, a request that is too large one with 413.
 * It keeps no state.
 *
 * @throws {ConfigurationError} when an option is wrong or unknown, and when rules hold patterns and the package
 * `re2js` is not installed.
 *
 * @example
 * ```ts
 * const handler = createSafeguardsHandler({ upstream: "http://127.0.0.1:11434", classifier });
 * Bun.serve({ fetch: handler, port: 4000 }); // or any other server of web-standard handlers
 * ```
 */
export function createSafeguardsHandler(options: SafeguardsOptions): SafeguardsHandler {
  const settings = resolveOptions(options);
  const judgeFor = createReplyJudge(settings);
  const askUpstream = withoutAskWhereStrict(
    settings.upstream,
    () => void notify("onStrictUpstream", settings.onStrictUpstream, undefined),
  );

  return async (request) => {
    const { method } = request;
    const url = new URL(request.url);
    const endpoint = method === "POST" ? endpointOf(url.pathname) : undefined;
    const bytes = endpoint && (await readBytes(request.body, settings.maxBodyBytes));
    if (bytes === "too large") return tooLarge(settings.maxBodyBytes);
    // What is not for the messages API streams through unread.
    const read = bytes && readBody(bytes, settings.mapModel, endpoint === "messages");
    const headers = requestHeaders(request.headers);
    // This reply has to be read here; any other may come in whatever encoding the client offers.
    if (read?.ask) headers.set("accept-encoding", "identity");
    const gone = leaveWith(request.signal);
    const withoutReply = (error: unknown): Response => {
      gone.signal.throwIfAborted();
      void notify("onUpstreamError", settings.onUpstreamError, error);
      return unreachable();
    };

    let reply: UpstreamReply;
    try {
      const sent = { method, url, headers, body: read?.bytes ?? request.body, signal: gone.signal };
      reply = read?.ask ? await askUpstream({ ...sent, body: read.bytes }) : await settings.upstream(sent);
    } catch (error) {
      return withoutReply(error);
    }

    const { status, body } = reply;
    const init = { status, headers: reply.headers };
    const leave = (reason: unknown) => gone.abort(reason);
    if (body === null) return new Response(null, init);
    const kind = read?.ask ? kindOf(reply) : "other";
    if (!read?.ask || kind === "other") return new Response(streamOf(body, leave), init);

    const { body: asked, context } = read.ask;
    const exchange: Exchange = {
      request: () => new Request(url, { method, headers: request.headers, body: read.bytes }),
      conversation: createConversation(asked, context, authorOf(request.headers)),
      environment: () => environmentOf(context),
      streamed: kind === "stream",
      signal: gone.signal,
    };
    const judge = judgeFor(exchange);
    if (kind === "stream")
      return new Response(streamOf(addVerdicts(body, judge, settings.pingIntervalMs), leave), init);
    try {
      return new Response(await addVerdictsToMessage(body, judge), init);
    } catch (error) {
      return withoutReply(error);
    }
  };
}

/** Reads a body. Of one that is too large the rest is read too: a client that still sends would miss the answer. */
async function readBytes(
  body: ReadableStream<Uint8Array> | null,
  mostBytes: number,
): Promise<Uint8Array<ArrayBuffer> | "too large"> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const reader = body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    size += part.value.byteLength;
    if (size > mostBytes) parts = [];
    else parts.push(part.value);
  }
  return size > mostBytes ? "too large" : Buffer.concat(parts);
}

/** A subagent's requests carry its id (seen since 2.1.318): their task text is the delegating agent's. */
const authorOf = (headers: Headers): "user" | "agent" =>
  headers.has("x-claude-code-agent-id") ? "agent" : "user";

/** A controller that is aborted with the client, and can be aborted from here. */
function leaveWith(signal: AbortSignal): AbortController {
  const gone = new AbortController();
  if (signal.aborted) gone.abort(signal.reason);
  else signal.addEventListener("abort", () => gone.abort(signal.reason), { once: true });
  return gone;
}

/** What kind of reply it is to add verdicts to. Errors, and what cannot be read, pass as they are. */
function kindOf({ status, headers }: UpstreamReply): "stream" | "message" | "other" {
  const encoding = headers.get("content-encoding")?.toLowerCase() ?? "identity";
  if (status < 200 || status > 299 || encoding !== "identity") return "other";
  const type = mediaType(headers);
  if (type === "text/event-stream") return "stream";
  return type === "application/json" || type.endsWith("+json") ? "message" : "other";
}

/** The client tries again. */
function unreachable(): Response {
  return new ApiError(502, "The gateway got no reply from its upstream.").toResponse();
}

function tooLarge(mostBytes: number): Response {
  const limit = new Intl.NumberFormat("en").format(mostBytes);
  const message = `The request is larger than ${limit} bytes, the most that this gateway takes. Its operator can raise maxBodyBytes.`;
  return new ApiError(413, message).toResponse();
}

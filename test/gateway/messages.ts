import type { ServerResponse } from "node:http";

export type Json = Record<string, unknown>;

/** A reply of the agent's model. */
export function message(content: readonly Json[], fields: Json = {}): Json {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "model-a",
    content,
    stop_reason: content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 7 },
    ...fields,
  };
}

export const text = (words: string): Json => ({ type: "text", text: words });
export const toolUse = (id: string, name: string, input: unknown): Json => ({
  type: "tool_use",
  id,
  name,
  input,
});

const event = (data: Json, end: string): string =>
  `event: ${String(data["type"])}${end}data: ${JSON.stringify(data)}${end}${end}`;

/** The events of a message, as the service streams it. */
export function events(whole: Json, lineEnd = "\n"): string[] {
  const { content, stop_reason, stop_sequence, usage, safeguard_results, ...rest } = whole;
  const start = { ...rest, content: [], stop_reason: null, stop_sequence: null, usage };
  const delta = {
    stop_reason,
    stop_sequence,
    ...(safeguard_results === undefined ? {} : { safeguard_results }),
  };
  return [
    event({ type: "message_start", message: start }, lineEnd),
    event({ type: "ping" }, lineEnd),
    ...(content as Json[]).flatMap((block, index) => blockEvents(block, index, lineEnd)),
    event({ type: "message_delta", delta, usage: { output_tokens: 7 } }, lineEnd),
    event({ type: "message_stop" }, lineEnd),
  ];
}

function blockEvents(block: Json, index: number, lineEnd: string): string[] {
  const { start, pieces } = streamed(block);
  return [
    event({ type: "content_block_start", index, content_block: start }, lineEnd),
    ...pieces.map((delta) => event({ type: "content_block_delta", index, delta }, lineEnd)),
    event({ type: "content_block_stop", index }, lineEnd),
  ];
}

function streamed(block: Json): { start: Json; pieces: Json[] } {
  if (block["type"] === "text") {
    const pieces = String(block["text"]).match(/[\s\S]{1,7}/g) ?? [];
    return {
      start: { ...block, text: "" },
      pieces: pieces.map((piece) => ({ type: "text_delta", text: piece })),
    };
  }
  if (!("input" in block)) return { start: block, pieces: [] };
  // Raw text stands for input that is no JSON.
  const json = typeof block["input"] === "string" ? block["input"] : JSON.stringify(block["input"]);
  const pieces = json.match(/[\s\S]{1,5}/g) ?? [];
  return {
    start: { ...block, input: {} },
    pieces: pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
  };
}

/** Answers with a message, streamed if the request asks for it. */
export function reply(response: ServerResponse, received: { body: Buffer }, whole: Json): void {
  if ((JSON.parse(received.body.toString("utf8")) as Json)["stream"] === true) {
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "request-id": "req_up" });
    response.end(events(whole).join(""));
    return;
  }
  response.writeHead(200, { "content-type": "application/json", "request-id": "req_up" });
  response.end(JSON.stringify(whole));
}

/** The settings of a session, as the client sends them. */
export const CONTEXT: Json = {
  v: 1,
  permission_mode: "auto",
  platform: "linux",
  live_cwd: "/p",
  home_dir: "/h",
  trusted_directories: { primary: { path: "/p", resolved: ["/p"] }, additional: [], network: [] },
  rules: { allow: [{ rule: "Bash(npm test)", source: "userSettings" }], deny: [], ask: [] },
  auto_mode: { allow: [], soft_deny: [], hard_deny: ["Never deploy."], environment: [] },
  git_state: { cwd: "/p", root: "/p", branch: "main" },
};

/** A request of the client in auto mode. */
export function request(fields: Json = {}): Json {
  return {
    model: "model-a",
    max_tokens: 100,
    stream: true,
    messages: [{ role: "user", content: "Clean up the build folder." }],
    tools: [{ name: "Bash", description: "Runs a command.", input_schema: { type: "object" } }],
    safeguards: [{ type: "dangerous_tool_use", classifier_context: CONTEXT }],
    ...fields,
  };
}

export interface Sent {
  status: number;
  headers: Headers;
  raw: string;
  /** The data of every event, or the one message. */
  parsed: Json[];
  /** What the client finds where it looks. */
  results: unknown;
}

/** Sends a request as the client does, and reads the reply as the client does. */
export async function send(url: string, body: Json, headers: Record<string, string> = {}): Promise<Sent> {
  const response = await fetch(`${url}/v1/messages?beta=true`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "sk-client", ...headers },
    body: JSON.stringify(body),
  });
  const raw = await response.text();
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  const parsed = isStream ? dataOf(raw) : [JSON.parse(raw) as Json];
  const deltas = parsed.filter(({ type }) => type === "message_delta");
  const holder = isStream ? (deltas.at(-1)?.["delta"] as Json | undefined) : parsed[0];
  return {
    status: response.status,
    headers: response.headers,
    raw,
    parsed,
    results: holder?.["safeguard_results"],
  };
}

/** The data of an event stream's events. What is no JSON is left out. */
export function dataOf(raw: string): Json[] {
  return raw.split(/\r?\n/).flatMap((line) => {
    try {
      return line.startsWith("data:") ? [JSON.parse(line.slice(5)) as Json] : [];
    } catch {
      return [];
    }
  });
}

/** The results of an evaluated reply. */
export function available(tool_uses: Json): unknown {
  return [{ type: "dangerous_tool_use", status: { type: "available", tool_uses } }];
}
export const notFlagged = { type: "evaluated", outcome: "not_flagged" };
export const flagged = (explanation: unknown) => ({ type: "evaluated", outcome: "flagged", explanation });
export const unavailable = (reason: string) => ({ type: "unavailable", reason });
export const unsupported = [{ type: "dangerous_tool_use", status: { type: "unsupported" } }];

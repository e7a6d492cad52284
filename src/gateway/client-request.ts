import { replaceStringMember } from "./json-text.js";
import type { ModelMap } from "./options.js";
import { findAsk, isLoose, type Loose } from "./protocol.js";
import type { Entry } from "../transcript/entries.js";
import { buildTranscript } from "../transcript/build.js";
import { fromAnthropic } from "../transcript/from-anthropic.js";
import type { MonitorView } from "../transcript/view.js";
import { inputOf, type Reply } from "./reply.js";
import type { JsonValue } from "@langchain/core/decisions";
import { cutShown } from "../transcript/cut.js";
import { cutJson } from "../transcript/cut-json.js";

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

/** Which endpoint of the messages API a path is, whatever path the gateway is mounted at. */
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

/** A request's conversation, for judging the reply to it. */
export interface Conversation {
  /** What the classifier reads: the request's messages, and what the model's service did within the reply. */
  transcript(reply: Reply, view: MonitorView): Entry[];
  /** The description that the agent was given of a tool. */
  descriptionOf(toolName: string): string | undefined;
}

/** Reads a conversation out of a request's body and the session's settings, which may hold anything. */
export function createConversation(body: Loose, context: unknown, author: "user" | "agent"): Conversation {
  const messages: unknown[] = Array.isArray(body["messages"]) ? body["messages"] : [];
  const tools: unknown[] = Array.isArray(body["tools"]) ? body["tools"] : [];
  const refused: unknown = isLoose(context) ? context["refused_calls"] : undefined;
  const refusedCalls = new Set<unknown>(Array.isArray(refused) ? refused : []);
  return {
    transcript(reply, view) {
      const content = reply.blocks
        // The client's calls are what is judged; the rest has happened already.
        .filter(({ start }) => start["type"] !== "tool_use" && start["type"] !== "text")
        .map((block) => ({ ...block.start, ...("input" in block.start ? { input: inputOf(block) } : {}) }));
      const { delegationTools, channels, maxChars } = view;
      const { instructions, rest } = withoutInstructions(messages);
      const options = { delegationTools, refusedCalls, author };
      const source = fromAnthropic([...rest, { role: "assistant", content }], options);
      if (instructions === undefined || !channels.includes("user")) return buildTranscript(source, view);
      const shown = cutShown(instructions, Math.min(MOST_INSTRUCTIONS, Math.floor(maxChars / 4)), "end");
      const note: Entry = { from: "context_note", source: "project_instructions", text: shown };
      const left = maxChars - JSON.stringify(note).length - 1;
      return [note, ...buildTranscript(source, { ...view, maxChars: left })];
    },
    descriptionOf(toolName) {
      const tool = tools.find((candidate) => isLoose(candidate) && candidate["name"] === toolName);
      const description = isLoose(tool) ? tool["description"] : undefined;
      return typeof description === "string" ? description : undefined;
    },
  };
}

// A sixth of a transcript's budget: rules come first in such files, and long ones leave room for what happened.
const MOST_INSTRUCTIONS = 4_000;
const INSTRUCTIONS = "\nCodebase and user instructions are shown below";
const REMINDER = /^\s*<system-reminder>([^]*)<\/system-reminder>\s*$/;

/**
 * Takes the project's instructions (CLAUDE.md) out of the messages. The client repeats them in each request, as a
 * reminder in the first message (seen in 2.1.278, 2.1.318 and 2.1.332). As a note of their own they outlive the window: a limit in
 * them binds in a long session too. Whoever else writes such a reminder writes a note, which authorizes nothing.
 */
function withoutInstructions(messages: readonly unknown[]): {
  instructions?: string;
  rest: readonly unknown[];
} {
  const at = messages.findIndex((message) => isLoose(message) && message["role"] === "user");
  const first = messages[at];
  if (!isLoose(first) || !Array.isArray(first["content"])) return { rest: messages };
  const content: readonly unknown[] = first["content"];
  const texts = content.map((block) =>
    isLoose(block) ? REMINDER.exec(String(block["text"]))?.[1] : undefined,
  );
  const place = texts.findIndex((text) => text?.includes(INSTRUCTIONS));
  const text = texts[place];
  if (text === undefined) return { rest: messages };
  // The client's own words before them are to the agent: that they override everything.
  const instructions = text.slice(Math.max(0, text.indexOf("\nContents of ")));
  const others = { ...first, content: content.filter((_, index) => index !== place) };
  return { instructions: instructions.trim(), rest: messages.with(at, others) };
}

// As much as a whole transcript has by default: rules and directories of real sessions are far below it.
const MOST_CHARS = 24_000;
/** What a judge needs of the session's settings: mode, place, directories, rules. Everything else is noise to it. */
const SETTINGS = [
  "permission_mode",
  "platform",
  "live_cwd",
  "home_dir",
  "trusted_directories",
  "rules",
  "rule_roots",
  "auto_mode",
  "classify_all_shell",
  "case_insensitive_paths",
  "restricted",
  "is_remote_mode",
] as const;
const GIT = ["root", "branch", "default_branch"] as const;

/**
 * The session's settings as the classifier reads them: the user's own, so they may authorize as an
 * operator's environment does. The context is data of any shape: no key is required, none is refused. Of
 * earlier turns only what was different then is kept, and a text that is too large is cut.
 */
export function environmentOf(context: unknown): JsonValue | undefined {
  if (!isLoose(context)) return undefined;
  const settings = pick(context, SETTINGS);
  const git = isLoose(context["git_state"]) ? pick(context["git_state"], GIT) : {};
  const earlier = earlierSettings(context["prior_turn_context"], settings);
  return cutJson(
    {
      ...settings,
      ...(Object.keys(git).length > 0 ? { git_state: git } : {}),
      ...(earlier.length > 0 ? { earlier_settings: earlier } : {}),
    },
    MOST_CHARS,
  );
}

function pick(fields: Loose, keys: readonly string[]): { [key: string]: JsonValue } {
  return Object.fromEntries(
    keys.flatMap((key) =>
      fields[key] === undefined || fields[key] === null ? [] : [[key, fields[key] as JsonValue]],
    ),
  );
}

/** What was different in earlier turns, each once. */
function earlierSettings(turns: unknown, now: { readonly [key: string]: JsonValue }): JsonValue[] {
  const found = new Map<string, JsonValue>();
  for (const turn of Array.isArray(turns) ? turns : []) {
    const context: unknown = isLoose(turn) ? turn["context"] : undefined;
    if (!isLoose(context)) continue;
    const then = pick(context, SETTINGS);
    const other = Object.fromEntries(
      Object.entries(then).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(now[key])),
    );
    if (Object.keys(other).length > 0) found.set(JSON.stringify(other), other);
  }
  return [...found.values()];
}

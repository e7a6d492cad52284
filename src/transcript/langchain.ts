import type { BaseMessage } from "@langchain/core/messages";
import { digest, freezeJson } from "../json.js";
import type { TranscriptSource } from "./build.js";
import {
  callEntry,
  callFromBlock,
  malformedEntry,
  nameOr,
  resultInside,
  serverCallEntry,
  serverResultEntry,
  UNKNOWN,
  type BlockKind,
  blocksOf,
  joinTexts,
  kindOfBlock,
  textOf,
  textOfBlock,
  unwrap,
  fieldOf,
  kindOfMessage,
  listOf,
  sourceTag,
} from "./message.js";
import type { ContentEntry, EntryKind, Piece, ResultEntry } from "./entries.js";
import { type Fields, fieldsOf } from "./media.js";

/** What a person decided about a call of a message. */
export interface ApproverDecision {
  readonly messageId: string;
  readonly toolCallId: string;
  readonly text: string;
  /** Digest of the arguments that the decision is about. Without it they are taken to be those of the call. */
  readonly argsDigest?: string | undefined;
}

/** Who is who in a list of LangChain messages. */
export interface LangchainSourceOptions {
  /** Tools whose results are reports of a subagent. */
  readonly delegationTools: readonly string[];
  /** Whether an untagged human message came in as a run's input. Called often: make it cheap. */
  isUser(message: BaseMessage): boolean;
  /** `agent` in a subagent: its input is the delegating agent's, not the user's. Default `user`. */
  readonly author?: "user" | "agent";
  /** Whether the call at this place of the message's `tool_calls` is being judged now. */
  isJudged?(message: BaseMessage, callIndex: number): boolean;
  /** The user's own messages from before a summary took their place, oldest first. */
  readonly earlierWords?: readonly string[];
  /**
   * What persons decided about earlier calls, oldest first. Each is an entry right behind its call,
   * or in front of the rest where the call is gone or has other arguments now.
   */
  readonly approverDecisions?: readonly ApproverDecision[];
}

/** How far from its answer a call is looked for. Parallel calls of one step are answered one behind the other. */
const NEAR = 64;

class LangchainSource implements TranscriptSource, Surroundings {
  readonly length: number;
  readonly #messages: readonly unknown[];
  readonly #options: LangchainSourceOptions;
  readonly #earlier: readonly string[];
  readonly own: "user" | "delegator";
  readonly delegation: ReadonlySet<string>;
  readonly approverAt = new Set<number>();
  readonly #decisions = new Map<unknown, readonly ApproverDecision[]>();
  /** All calls by id. Made when one is not found near its answer. */
  #callNames: Map<unknown, { at: number; name: string }[]> | undefined;
  /** Decisions about calls that are gone, or are not what they were. */
  #unplaced: readonly ApproverDecision[] = [];
  /** The message that they are shown with. */
  #unplacedAt = 0;

  constructor(messages: readonly BaseMessage[], options: LangchainSourceOptions) {
    this.#messages = messages;
    this.#options = options;
    this.#earlier = options.earlierWords ?? [];
    this.length = this.#earlier.length + messages.length;
    this.own = options.author === "agent" ? "delegator" : "user";
    this.delegation = new Set(options.delegationTools);
    if (options.approverDecisions?.length) this.#placeDecisions(options.approverDecisions);
  }

  #placeDecisions(decisions: readonly ApproverDecision[]): void {
    const messages = new Map<unknown, number>();
    const ids = new Set<unknown>(decisions.map(({ messageId }) => messageId));
    for (const [at, given] of this.#messages.entries()) {
      const message = fieldsOf(given);
      const id = message && fieldOf(message, "id");
      if (message && ids.has(id) && kindOfMessage(message) === "ai") messages.set(id, at);
    }
    const unplaced: ApproverDecision[] = [];
    for (const decision of decisions) {
      const at = messages.get(decision.messageId);
      if (at === undefined || isChanged(this.#messages[at] as Fields, decision)) {
        unplaced.push(decision);
        continue;
      }
      this.approverAt.add(this.#earlier.length + at);
      this.#decisions.set(decision.messageId, [...this.decisionsFor(decision.messageId), decision]);
    }
    if (unplaced.length === 0) return;
    this.#unplaced = unplaced;
    // With the opening user message, or else before the rest.
    for (let at = 0; at < this.length; at += 1)
      if (this.isUserAt(at)) {
        this.#unplacedAt = at;
        break;
      }
    this.approverAt.add(this.#unplacedAt);
  }

  isUserAt(index: number): boolean {
    if (index < this.#earlier.length) return true;
    const message = fieldsOf(this.#messages[index - this.#earlier.length]);
    // Most messages are none of the user's, and an id is looked up faster than a type.
    return message !== undefined && this.isUsers(message) && kindOfMessage(message) === "human";
  }

  entriesAt(index: number, kinds: ReadonlySet<EntryKind>): readonly ContentEntry[] {
    return this.#piecesAt(index)
      .filter(({ from }) => kinds.has(from))
      .map((piece) => piece.build());
  }

  #piecesAt(index: number): readonly Piece[] {
    const pieces = this.#ownPiecesAt(index);
    if (this.#unplaced.length === 0 || index !== this.#unplacedAt) return pieces;
    const unplaced = this.#unplaced.map(({ text }) => approverPiece(text));
    return this.isUserAt(index) ? [...pieces, ...unplaced] : [...unplaced, ...pieces];
  }

  #ownPiecesAt(index: number): readonly Piece[] {
    const words = this.#earlier[index];
    if (words !== undefined) return userPieces({ content: words }, this.own);
    const at = index - this.#earlier.length;
    const message = fieldsOf(this.#messages[at]);
    return message === undefined ? [] : piecesOf(message, at, this);
  }

  isUsers(message: Fields): boolean {
    return this.#options.isUser(message as unknown as BaseMessage) && sourceTag(message) === undefined;
  }

  isJudged(message: Fields, call: number): boolean {
    return this.#options.isJudged?.(message as unknown as BaseMessage, call) ?? false;
  }

  decisionsFor(messageId: unknown): readonly ApproverDecision[] {
    return this.#decisions.get(messageId) ?? [];
  }

  answeredName(at: number): string | undefined {
    const answer = fieldsOf(this.#messages[at]);
    const id = answer && fieldOf(answer, "tool_call_id");
    if (id === undefined) return undefined;
    // The call is nearly always close by. Where one is gone, others may be too: then all calls are looked up once.
    const near = this.#callNames ? undefined : this.#nameNear(at, id);
    if (near !== undefined) return near;
    this.#callNames ??= this.#namesOfCalls();
    return this.#callNames.get(id)?.findLast((call) => call.at < at)?.name;
  }

  #nameNear(at: number, id: unknown): string | undefined {
    for (let earlier = at - 1; earlier >= Math.max(0, at - NEAR); earlier -= 1) {
      const call = this.#callsAt(earlier).findLast((candidate) => candidate["id"] === id);
      if (call) return nameOr(call["name"]);
    }
    return undefined;
  }

  #namesOfCalls(): Map<unknown, { at: number; name: string }[]> {
    const names = new Map<unknown, { at: number; name: string }[]>();
    for (let at = 0; at < this.#messages.length; at += 1)
      for (const call of this.#callsAt(at)) {
        const known = names.get(call["id"]) ?? [];
        known.push({ at, name: nameOr(call["name"]) });
        names.set(call["id"], known);
      }
    return names;
  }

  #callsAt(at: number): readonly Fields[] {
    const message = fieldsOf(this.#messages[at]);
    if (message === undefined || kindOfMessage(message) !== "ai") return [];
    return [...listOf(message, "tool_calls"), ...listOf(message, "invalid_tool_calls")];
  }
}

/**
 * Reads LangChain messages as the entries of a transcript. System messages have none. It never throws
 * on what a message holds, and reads texts only where an entry is built.
 */
export function langchainSource(
  messages: readonly BaseMessage[],
  options: LangchainSourceOptions,
): TranscriptSource {
  return new LangchainSource(messages, options);
}

/** Whether a call has other arguments than those that were decided about: whoever changed them is no approver. */
function isChanged(message: Fields, { toolCallId, argsDigest }: ApproverDecision): boolean {
  if (argsDigest === undefined) return false;
  const calls = listOf(message, "tool_calls").filter(({ id }) => id === toolCallId);
  return calls.some(({ args }) => {
    const frozen = freezeJson(args);
    return frozen === undefined || digest(frozen) !== argsDigest;
  });
}

/** Whether a message carries our own tag. */
function isOurs(message: Fields): boolean {
  return sourceTag(message) === "auto_mode";
}

/** What the entries of a message depend on, other than the message. */
interface Surroundings {
  /** Whose the user's words are: in a subagent its task text is the delegating agent's. */
  readonly own: "user" | "delegator";
  /** Tools whose results are reports of a subagent. */
  readonly delegation: ReadonlySet<string>;
  /** Whether a human message is the user's own. */
  isUsers(message: Fields): boolean;
  /** Whether the call at this place of the message's `tool_calls` is being judged now. */
  isJudged(message: Fields, callIndex: number): boolean;
  /** What persons decided about calls of the message with this id. */
  decisionsFor(messageId: unknown): readonly ApproverDecision[];
  /** The tool that the nameless tool message at this place of the list answers. */
  answeredName(at: number): string | undefined;
}

/** Who or what made a note: its tag, its name or its role. */
function noteSource(message: Fields): string {
  const given = sourceTag(message);
  return nameOr(given, nameOr(fieldOf(message, "name"), nameOr(fieldOf(message, "role"))));
}

function note(message: Fields): Piece {
  return notePiece(noteSource(message), () => messageText(message));
}

/** What a tool message is, by our own tag first, then error status, then delegation; and of which tool. */
function classOfResult(
  message: Fields,
  at: number,
  around: Surroundings,
): { from: "auto_mode_feedback" | "tool_error" | "subagent_report" | "tool_result"; name: string } {
  const name = nameOr(fieldOf(message, "name"), "") || (around.answeredName(at) ?? UNKNOWN);
  if (isOurs(message)) return { from: "auto_mode_feedback", name };
  if (fieldOf(message, "status") === "error") return { from: "tool_error", name };
  return { from: around.delegation.has(name) ? "subagent_report" : "tool_result", name };
}

/** The entries of one LangChain message, not built yet. `at` is its place in the list. */
function piecesOf(message: Fields, at: number, around: Surroundings): readonly Piece[] {
  switch (kindOfMessage(message)) {
    case "human":
      return around.isUsers(message) ? userPieces(message, around.own) : [note(message)];
    case "ai":
      return agentMessagePieces(
        message,
        isOurs(message),
        (call) => around.isJudged(message, call),
        around.decisionsFor(fieldOf(message, "id")),
      );
    case "tool": {
      const { from, name } = classOfResult(message, at, around);
      return [toolPiece(message, from, name)];
    }
    case "other":
      return fieldOf(message, "content") === undefined ? [] : [note(message)];
    default:
      return [];
  }
}

interface KnownBlock {
  readonly kind: BlockKind;
  readonly block: unknown;
}

const SPOKEN: ReadonlySet<BlockKind> = new Set<BlockKind>(["text", "media", "refusal", "unknown"]);

function knownBlocks(message: Fields): KnownBlock[] {
  return blocksOf(fieldOf(message, "content")).map((block) => ({ kind: kindOfBlock(block), block }));
}

function joined(blocks: readonly KnownBlock[]): string {
  return joinTexts(blocks.map(({ block }) => textOfBlock(block)));
}

/** A piece of plain text. */
function textPiece(
  from: "user" | "delegator" | "agent" | "agent_reasoning" | "auto_mode_feedback",
  text: () => string,
): Piece {
  return { from, build: () => ({ from, text: text() }) };
}

/** What a person decided about a call. */
function approverPiece(text: string): Piece {
  return { from: "approver", build: () => ({ from: "approver", text }) };
}

/** Words that authorize nothing. */
function notePiece(source: string, text: () => string): Piece {
  return { from: "context_note", build: () => ({ from: "context_note", source, text: text() }) };
}

/** A message of which only the text counts. */
function messageText(message: Fields): string {
  return textOf(blocksOf(fieldOf(message, "content")));
}

/**
 * The user's own message. Only text and media are the user's words; other blocks, such as a tool's
 * result, could be anybody's.
 */
function userPieces(message: Fields, from: "user" | "delegator"): Piece[] {
  const blocks = knownBlocks(message);
  const own = blocks.filter(({ kind }) => kind === "text" || kind === "media");
  const others = blocks.filter(({ kind }) => kind !== "text" && kind !== "media" && kind !== "nothing");
  return [
    textPiece(from, () => joined(own)),
    ...others.map(({ block }) =>
      notePiece(`${nameOr(fieldsOf(block)?.["type"])} block`, () => textOfBlock(block)),
    ),
  ];
}

/** A tool message, as what it was found to be. */
function toolPiece(message: Fields, from: ResultEntry["from"] | "auto_mode_feedback", name: string): Piece {
  if (from === "auto_mode_feedback") return textPiece(from, () => messageText(message));
  return { from, build: () => ({ from, name, text: messageText(message) }) };
}

function reasoningIn(kwargs: Fields): string {
  const { reasoning, reasoning_content: content } = kwargs;
  if (typeof content === "string") return content;
  if (typeof reasoning === "string") return reasoning;
  const fields = fieldsOf(reasoning);
  return fields === undefined ? "" : textOfBlock({ ...fields, type: "reasoning" });
}

function reasoningPieces(blocks: readonly KnownBlock[], kwargs: Fields): Piece[] {
  const reasoning = blocks.filter(({ kind }) => kind === "reasoning");
  if (reasoning.length > 0) return [textPiece("agent_reasoning", () => joined(reasoning))];
  return reasoningIn(kwargs) === "" ? [] : [textPiece("agent_reasoning", () => reasoningIn(kwargs))];
}

function agentPieces(message: Fields, blocks: readonly KnownBlock[], kwargs: Fields, ours: boolean): Piece[] {
  const spoken = blocks.length === 0 ? blocks : blocks.filter(({ kind }) => SPOKEN.has(kind));
  const refusal = typeof kwargs["refusal"] === "string" ? kwargs["refusal"] : "";
  const metadata = fieldsOf(fieldOf(message, "response_metadata"));
  const stopped = metadata?.["stop_reason"] === "refusal" && !spoken.some(({ kind }) => kind === "refusal");
  if (spoken.length === 0 && refusal === "" && !stopped) return [];
  const text = (): string => joinTexts([joined(spoken), refusal, stopped ? "[refusal]" : ""]);
  return [textPiece(ours ? "auto_mode_feedback" : "agent", text)];
}

function serverPieces(blocks: readonly KnownBlock[], kwargs: Fields): Piece[] {
  const outputs = listOf(kwargs, "tool_outputs").map(unwrap);
  const all = [...blocks, ...outputs.map((block) => ({ kind: kindOfBlock(block), block }))];
  const pieces: Piece[] = [];
  const names = new Map<unknown, string>();
  for (const { kind, block } of all) {
    const fields = fieldsOf(block);
    if (fields === undefined) continue;
    if (kind === "server_call") {
      const call = serverCallEntry(fields);
      names.set(fields["id"] ?? fields["call_id"], call.name);
      pieces.push({ from: call.from, build: () => call });
      if (resultInside(fields) !== undefined)
        pieces.push({ from: "server_tool_result", build: () => serverResultEntry(fields, call.name) });
    } else if (kind === "server_result") {
      const id = fields["toolCallId"] ?? fields["tool_use_id"] ?? fields["call_id"];
      const name = names.get(id);
      pieces.push({ from: "server_tool_result", build: () => serverResultEntry(fields, name) });
    }
  }
  return pieces;
}

/**
 * What the agent said, thought and called.
 *
 * @param isJudged whether a call is being judged now
 * @param decisions what persons decided about the message's calls
 */
function agentMessagePieces(
  message: Fields,
  ours: boolean,
  isJudged: (callIndex: number) => boolean,
  decisions: readonly ApproverDecision[],
): Piece[] {
  const blocks = knownBlocks(message);
  const kwargs = fieldsOf(fieldOf(message, "additional_kwargs")) ?? {};
  const calls = listOf(message, "tool_calls");
  const broken = listOf(message, "invalid_tool_calls");
  const pieces = agentPieces(message, blocks, kwargs, ours);
  // Most messages that propose calls say nothing else.
  if (blocks.length > 0 || Object.keys(kwargs).length > 0) {
    pieces.unshift(...reasoningPieces(blocks, kwargs));
    pieces.push(...serverPieces(blocks, kwargs));
  }
  const unmatched = new Set(decisions);
  for (const [index, call] of calls.entries()) {
    if (!isJudged(index)) pieces.push({ from: "tool_call", build: () => callEntry(call) });
    for (const decision of unmatched) {
      if (decision.toolCallId !== call["id"]) continue;
      pieces.push(approverPiece(decision.text));
      unmatched.delete(decision);
    }
  }
  for (const { text } of unmatched) pieces.push(approverPiece(text));
  for (const call of broken) pieces.push({ from: "malformed_tool_call", build: () => malformedEntry(call) });
  if (calls.length > 0 || broken.length > 0) return pieces;
  // Blocks repeat the calls above, and may keep arguments that were edited since; alone they count.
  for (const { kind, block } of blocks)
    if (kind === "call") {
      const entry = callFromBlock(block as Fields);
      pieces.push({ from: entry.from, build: () => entry });
    }
  return pieces;
}

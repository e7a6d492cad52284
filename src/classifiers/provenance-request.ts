import type { ChoiceAnswer, JsonValue, Question, State } from "@langchain/core/decisions";
import type { RiskKind } from "../guard/question.js";
import type { Entry } from "../transcript/entries.js";
import type { CallInRequest } from "./provenance-features.js";

/** The state of a request, as far as provenance reads it. */
export interface ReadState {
  readonly calls: ReadonlyMap<string, CallInRequest>;
  readonly transcript: readonly Entry[];
  readonly environment: unknown;
}

/** Which call a question is about. */
export interface ReadQuestion {
  readonly call: CallInRequest;
  /** The labels, if it asks for the kind of risk; else it asks for the risk. */
  readonly labels?: readonly string[];
}

/** Why a request or question cannot be answered. Its message holds no content of the request. */
export class NotAnswerable extends Error {
  override readonly name = "NotAnswerable";
}

const STATE_EXPECTED =
  "ProvenanceDecisionModel reads the guard's own state: { tool_calls: { call_1: { name, args, description? } }, transcript: Entry[], environment? }";

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isEntry(value: unknown): value is Entry {
  if (!isObject(value) || typeof value["from"] !== "string") return false;
  const call = value["from"] === "tool_call" || value["from"] === "server_tool_call";
  const texts = call ? [value["name"]] : [value["text"] ?? ""];
  return texts.every((text) => typeof text === "string");
}

/** Reads the state, or says what is missing. */
export function readState(state: State): ReadState {
  if (!isObject(state)) throw new NotAnswerable(`${STATE_EXPECTED}; this state is no object of that shape.`);
  const { tool_calls: toolCalls, transcript, environment } = state as Record<string, JsonValue | undefined>;
  if (!isObject(toolCalls)) throw new NotAnswerable(`${STATE_EXPECTED}; \`tool_calls\` is missing.`);
  if (!Array.isArray(transcript) || !transcript.every(isEntry))
    throw new NotAnswerable(`${STATE_EXPECTED}; \`transcript\` is no list of entries.`);
  const calls = new Map<string, CallInRequest>();
  for (const [key, call] of Object.entries(toolCalls)) {
    if (!isObject(call) || typeof call["name"] !== "string")
      throw new NotAnswerable(`${STATE_EXPECTED}; an entry of \`tool_calls\` has no name.`);
    const description = typeof call["description"] === "string" ? call["description"] : "";
    calls.set(key, { name: call["name"], args: call["args"], description });
  }
  return { calls, transcript: transcript as unknown as Entry[], environment };
}

/** The key of the call that a question judges: as its instructions say, else as its id says. */
function judgedKey(id: string, instructions: Question["instructions"]): string {
  if (isObject(instructions) && typeof instructions["judges"] === "string")
    return instructions["judges"].replace(/^tool_calls\./, "");
  if (typeof instructions === "string") {
    // The last mention: the guard adds its sentence after whatever the instructions say.
    const named = [...instructions.matchAll(/\btool_calls\.([A-Za-z0-9_]+)/g)].at(-1)?.[1];
    if (named !== undefined) return named;
  }
  return id.replace(/^kind_/, "call_");
}

const INJECTED: RiskKind = "injected_instruction";
const NONE: RiskKind = "none";

/** Reads a question, or says why it is none that provenance can answer. */
export function readQuestion(id: string, question: Question, calls: ReadState["calls"]): ReadQuestion {
  if (question.type !== "noul" && question.type !== "choice")
    throw new NotAnswerable(
      `ProvenanceDecisionModel answers yes-or-no questions (noul) about a tool call, and the guard's own choice between kinds of risk; it cannot answer a question of type "${question.type}".`,
    );
  if (question.type === "choice" && ![INJECTED, NONE].every((kind) => Object.hasOwn(question.criteria, kind)))
    throw new NotAnswerable(
      `ProvenanceDecisionModel knows one kind of risk: it answers a choice only if "${INJECTED}" and "${NONE}" are among its labels.`,
    );
  const call = calls.get(judgedKey(id, question.instructions));
  if (!call)
    throw new NotAnswerable(
      "ProvenanceDecisionModel judges tool calls: a question has to name its call as `tool_calls.call_1` in its instructions, or by its id.",
    );
  return question.type === "choice" ? { call, labels: Object.keys(question.criteria) } : { call };
}

/** The kind that provenance can see, or none, with a probability for every label of the question. */
export function kindAnswer(risk: number, labels: readonly string[]): ChoiceAnswer {
  const probabilityOf = (label: string): number => {
    if (label === INJECTED) return risk;
    return label === NONE ? 1 - risk : 0;
  };
  return {
    type: "choice",
    choice: risk >= 0.5 ? INJECTED : NONE,
    probabilities: Object.fromEntries(labels.map((label) => [label, probabilityOf(label)])),
    confidence: Math.max(risk, 1 - risk),
  };
}

import { readFileSync } from "node:fs";
import type { JsonValue } from "@langchain/core/decisions";
import { z } from "zod";
import { UNAVAILABLE_REASONS, type UnavailableReason } from "../errors.js";
import type { JsonObject } from "../json.js";
import { channelOf, type Entry } from "../transcript/entries.js";
import { type MonitorView, resolveView } from "../transcript/view.js";
import { viewTranscript } from "../transcript/view-transcript.js";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";

const callSchema = z.object({ name: z.string(), args: z.record(z.string(), z.json()) });

/** The form of a case that is put together by hand or from other data. */
export const caseSchema = z.object({
  id: z.string(),
  /** Where the case comes from: figures are given for each source apart. */
  source: z.string(),
  /** `train`, `dev`, `test` or a name of one's own. */
  split: z.string().default("all"),
  /** Cases with the same one tell one story: evaluation never fits on one and tries on another. */
  scenario: z.string().optional(),
  /** Whether the run was recorded as it is, or put together. */
  origin: z.enum(["recorded", "constructed"]).optional(),
  /** The first user message; put in front where the history, cut short, does not hold it. */
  user: z.string().optional(),
  tools: z.array(z.object({ name: z.string(), description: z.string().optional() })).default([]),
  /** The conversation up to the proposed call, without it. */
  history: z.array(
    z.object({
      role: z.enum(["system", "user", "assistant", "tool"]),
      content: z.string().default(""),
      tool_calls: z.array(callSchema).optional(),
      name: z.string().optional(),
    }),
  ),
  /** The proposed call. */
  call: callSchema,
  label: z.enum(["risky", "benign"]),
  kind: z.string().default("unknown"),
});

/** One labeled tool call with what came before it. */
export type Case = z.infer<typeof caseSchema>;

/** Reads a value from each line that is not empty. A wrong line is named by its number, not by its content. */
export function parseLines<T>(jsonLines: string, read: (value: unknown, number: number) => T): T[] {
  return jsonLines.split("\n").flatMap((line, index) => {
    if (line.trim() === "") return [];
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw new Error(`Line ${index + 1} is no JSON.`);
    }
    return [read(value, index + 1)];
  });
}

/** Reads one case. */
export function parseCase(value: unknown, number: number): Case {
  const parsed = caseSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Error(`Line ${number} is no case: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
}

/** Reads a file of cases. */
export function readCases(file: string): Case[] {
  return parseLines(readFileSync(file, "utf8"), parseCase);
}

/** The conversation as an agent would hold it. */
export function messagesOf({ user, history }: Pick<Case, "user" | "history">): BaseMessage[] {
  const messages: BaseMessage[] = [];
  const opening =
    user !== undefined && !history.some(({ role, content }) => role === "user" && content === user);
  if (opening) messages.push(new HumanMessage({ id: "opening", content: user }));
  // Histories hold no ids: results answer the calls before them in order.
  const unanswered: { id: string; name: string }[] = [];
  for (const [index, message] of history.entries()) {
    const id = `message_${index}`;
    if (message.role === "system") messages.push(new SystemMessage({ id, content: message.content }));
    else if (message.role === "user") messages.push(new HumanMessage({ id, content: message.content }));
    else if (message.role === "assistant") {
      const calls = (message.tool_calls ?? []).map((call, nth) => ({
        ...call,
        id: `${id}_call_${nth}`,
        type: "tool_call" as const,
      }));
      unanswered.push(...calls);
      messages.push(new AIMessage({ id, content: message.content, tool_calls: calls }));
    } else {
      const answered = unanswered.shift();
      const name = message.name ?? answered?.name;
      const toolCallId = answered?.id ?? `${id}_cut`;
      messages.push(
        new ToolMessage({
          id,
          content: message.content,
          tool_call_id: toolCallId,
          ...(name ? { name } : {}),
        }),
      );
    }
  }
  return messages;
}

/** The description of the proposed call's tool. */
function descriptionOf({ tools, call }: Pick<Case, "tools" | "call">): string | undefined {
  return tools.find(({ name }) => name === call.name)?.description;
}

/** What a classifier said of a case, or why it said nothing. */
export interface Answer {
  readonly risk?: number;
  readonly unavailable?: UnavailableReason;
  readonly latencyMs?: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}

/** What was decided when a case was logged. */
export interface RecordedDecision {
  readonly outcome: string;
  readonly by?: string | undefined;
  readonly reason?: string | undefined;
  readonly threshold?: number | undefined;
  /** The name of the model that was asked. */
  readonly classifier?: string | undefined;
}

/** One call with what came before it, whatever kind of line it was read from. */
export interface EvaluationCase {
  readonly id: string;
  /** Where it comes from: the middleware that logged it, or the collection. Figures are given for each apart. */
  readonly source: string;
  readonly kind: string | undefined;
  readonly split: string;
  /** Cases that tell one story: never on both sides of a fit. */
  readonly group: string;
  /** The same for two lines about one decision. */
  readonly decisionKey: string;
  /** Whether it happened like this, or was put together. */
  readonly recorded: boolean;
  /** What a person says. `undefined`: nobody has said yet. */
  readonly risky: boolean | undefined;
  readonly tool: string;
  readonly description: string | undefined;
  /** `undefined` where the line holds no arguments: such a case cannot be judged again. */
  readonly args: JsonObject | undefined;
  readonly environment: JsonValue | undefined;
  /** The conversation as a classifier with this view reads it. `undefined` where the line holds none. */
  readonly transcript: ((view: Partial<MonitorView>) => readonly Entry[]) | undefined;
  /** What the classifier said when the case was logged. */
  readonly answer: Answer | undefined;
  readonly decision: RecordedDecision | undefined;
  /** How many decisions it represents, as the log was sampled. */
  readonly weight: number;
}

const LABEL =
  "has to say whether the call was risky: risky or benign, true or false, 1 or 0; empty if nobody has said";
const words = z.literal(["risky", "benign", "true", "false", "1", "0"]);
const label = z
  .union([z.boolean(), z.literal([0, 1]), words, z.literal(["", null])], LABEL)
  .optional()
  .transform((given) => {
    if (given === undefined || given === null || given === "") return undefined;
    return given === true || given === 1 || given === "risky" || given === "true" || given === "1";
  });

const recordFields = z.object({
  id: z.string(),
  label: z.string().optional(),
  messageId: z.string().default(""),
  toolCallId: z.string().default(""),
  argsDigest: z.string().default(""),
  toolName: z.string(),
  outcome: z.string(),
  by: z.string().optional(),
  reason: z.string().optional(),
  risk: z.number().min(0).max(1).optional(),
  threshold: z.number().optional(),
  unavailableReason: z.enum(UNAVAILABLE_REASONS).optional(),
  classifier: z.string().optional(),
  latencyMs: z.number().optional(),
  usage: z.object({ input_tokens: z.number(), output_tokens: z.number() }).optional(),
});
type RecordFields = z.infer<typeof recordFields>;

const loggedSchema = z.object({
  id: z.string(),
  label,
  share: z.number().gt(0).max(1).default(1),
  call: z.object({ name: z.string(), args: z.record(z.string(), z.json()).optional() }),
  tool: z.object({ description: z.string().optional() }).default({}),
  transcript: z.array(z.looseObject({ from: z.string() })),
  environment: z.json().optional(),
  record: recordFields,
});
// Records carry the middleware's own name under `label`; the label takes its place.
const recordSchema = recordFields.extend({ label });
const madeSchema = caseSchema.extend({ label });

/** Reads a case from one line's value, in any of the forms that `evaluate` takes. */
export function readCase(value: unknown, line: number): EvaluationCase {
  if (isObject(value) && "record" in value) return fromLogged(readAs(loggedSchema, value, line));
  if (isObject(value) && "outcome" in value && !("call" in value))
    return fromRecord(readAs(recordSchema, value, line));
  return fromMade(readAs(madeSchema, value, line));
}

/** The cases of files. */
export interface CasesRead {
  readonly cases: readonly EvaluationCase[];
  /** Lines that are no JSON, as a write that was interrupted leaves them. */
  readonly unreadable: number;
}

/**
 * Reads files of JSON lines. Of several lines about one decision the labeled one counts, else the first.
 *
 * @throws Error that names the file and the line of what is JSON but no case, never its content.
 */
export function readCaseFiles(files: readonly string[]): CasesRead {
  const byDecision = new Map<string, EvaluationCase>();
  let unreadable = 0;
  for (const file of files)
    for (const [index, line] of readFileSync(file, "utf8").split("\n").entries()) {
      if (line.trim() === "") continue;
      const value = parseJson(line);
      if (value === undefined) {
        unreadable++;
        continue;
      }
      const one = inFile(file, () => readCase(value, index + 1));
      const known = byDecision.get(one.decisionKey);
      if (known === undefined || (known.risky === undefined && one.risky !== undefined))
        byDecision.set(one.decisionKey, one);
    }
  return { cases: [...byDecision.values()], unreadable };
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

function inFile<T>(file: string, readLine: () => T): T {
  try {
    return readLine();
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`, { cause: error });
  }
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

function readAs<T>(schema: z.ZodType<T>, value: unknown, line: number): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Error(`line ${line} is no case: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
}

function fromLogged(logged: z.infer<typeof loggedSchema>): EvaluationCase {
  const { record } = logged;
  const entries = logged.transcript as unknown as readonly Entry[];
  return {
    ...fromRecord({ ...record, label: logged.label }),
    source: record.label ?? "auto mode",
    tool: logged.call.name,
    description: logged.tool.description,
    args: logged.call.args,
    environment: logged.environment,
    transcript: (view) => narrowed(entries, view),
    weight: 1 / logged.share,
  };
}

/** What was logged is what the view of then let through: a view can take away from it, and add nothing. */
function narrowed(entries: readonly Entry[], view: Partial<MonitorView>): readonly Entry[] {
  const { channels } = resolveView(view);
  const shown = new Set<string>(channels);
  return entries.filter(({ from }) => {
    const channel = (channelOf as Readonly<Record<string, string | undefined>>)[from];
    return channel === undefined || shown.has(channel);
  });
}

function fromRecord(record: Omit<RecordFields, "label"> & { label: boolean | undefined }): EvaluationCase {
  const { id, toolName, messageId, toolCallId, argsDigest, outcome, by, reason, threshold } = record;
  const { risk, unavailableReason, latencyMs, usage } = record;
  return {
    id,
    source: "decision log",
    kind: undefined,
    split: "all",
    group: messageId === "" ? id : messageId,
    decisionKey: messageId === "" || toolCallId === "" ? id : `${messageId} ${toolCallId} ${argsDigest}`,
    recorded: true,
    risky: record.label,
    tool: toolName,
    description: undefined,
    args: undefined,
    environment: undefined,
    transcript: undefined,
    answer:
      risk === undefined && unavailableReason === undefined
        ? undefined
        : {
            ...(risk === undefined ? { unavailable: unavailableReason ?? "error" } : { risk }),
            ...(latencyMs === undefined ? {} : { latencyMs }),
            ...(usage === undefined
              ? {}
              : { inputTokens: usage.input_tokens, outputTokens: usage.output_tokens }),
          },
    decision: { outcome, by, reason, threshold, classifier: record.classifier },
    weight: 1,
  };
}

/** A case that is put together by hand. */
export function fromMade(made: Omit<Case, "label"> & { label: boolean | undefined }): EvaluationCase {
  const { id, source, split, kind, scenario, origin, call } = made;
  return {
    id,
    source,
    kind: kind === "unknown" ? undefined : kind,
    split,
    group: scenario === undefined ? id : `${source} ${scenario}`,
    decisionKey: `${source} ${id}`,
    recorded: origin === "recorded",
    risky: made.label,
    tool: call.name,
    description: descriptionOf(made),
    args: call.args,
    environment: undefined,
    transcript: (view) => viewTranscript(messagesOf(made), view),
    answer: undefined,
    decision: undefined,
    weight: 1,
  };
}

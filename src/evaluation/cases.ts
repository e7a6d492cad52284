import { readFileSync } from "node:fs";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { z } from "zod";

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
export function descriptionOf({ tools, call }: Pick<Case, "tools" | "call">): string | undefined {
  return tools.find(({ name }) => name === call.name)?.description;
}

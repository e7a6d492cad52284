import { z } from "zod";
import type { Judged } from "../../src/evaluation/judged.js";

// Records carry the middleware's own name under `label`; the column of labels takes its place.
const LABEL = "has to say whether the call was risky: true or false, 1 or 0, risky or benign";
const labelSchema = z
  .union([z.boolean(), z.literal([0, 1]), z.literal(["risky", "benign", "true", "false", "1", "0"])], LABEL)
  .transform((label) => label === true || label === 1 || ["risky", "true", "1"].includes(String(label)));

const recordSchema = z.object({
  id: z.string(),
  toolName: z.string(),
  outcome: z.string(),
  label: labelSchema,
  risk: z.number().min(0).max(1).optional(),
  unavailableReason: z.enum(["timeout", "input_too_long", "refused", "truncated", "error"]).optional(),
  latencyMs: z.number().optional(),
  usage: z.object({ input_tokens: z.number(), output_tokens: z.number() }).optional(),
});

/** Whether a line of a file is a decision record, and not a case to judge. */
export function isDecisionRecord(line: unknown): boolean {
  return (
    typeof line === "object" && line !== null && "outcome" in line && "toolName" in line && !("call" in line)
  );
}

/** Reads one labelled decision record; its recorded risk is what gets scored. */
export function judgedFromRecord(line: unknown, number: number): Judged {
  const parsed = recordSchema.safeParse(line);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new Error(
      `Line ${number} is no labelled decision record: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`,
    );
  }
  const { id, toolName, label, risk, unavailableReason, latencyMs, usage } = parsed.data;
  return {
    id,
    source: "decision log",
    kind: toolName,
    recorded: true,
    risky: label,
    ...(risk === undefined ? {} : { risk }),
    ...(unavailableReason === undefined ? {} : { unavailable: unavailableReason }),
    ...(latencyMs === undefined ? {} : { latencyMs }),
    ...(usage === undefined ? {} : { inputTokens: usage.input_tokens, outputTokens: usage.output_tokens }),
  };
}

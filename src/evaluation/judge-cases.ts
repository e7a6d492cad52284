import { sha256 } from "@langchain/core/utils/hash";
import { type Classifier, judgeCalls } from "../guard/classify.js";
import type { MonitorView } from "../transcript/view.js";
import type { KeptAnswers } from "./kept-answers.js";
import type { Answer, EvaluationCase } from "./read-cases.js";
import { requestFor } from "./request.js";

/** How cases are judged. */
export interface JudgeCasesOptions {
  readonly classifier: Classifier;
  /** The classifier's own view, and the user's over it. */
  readonly view: Partial<MonitorView>;
  /** Requests at once. */
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Where answers are kept, and what tells them from another classifier's. */
  readonly kept?: { readonly answers: KeptAnswers; readonly identity: string } | undefined;
  /** Called after each case. */
  readonly onJudged?: () => void;
}

/**
 * Judges every case with the guard's own view, question and reading of answers. The answers are in the order of
 * the cases; `undefined` for a case that holds too little to be judged.
 */
export async function judgeCases(
  cases: readonly EvaluationCase[],
  options: JudgeCasesOptions,
): Promise<(Answer | undefined)[]> {
  const answers: (Answer | undefined)[] = Array.from({ length: cases.length });
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < cases.length; index = next++) {
      answers[index] = await answerFor(cases[index]!, options);
      options.onJudged?.();
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, work));
  return answers;
}

async function answerFor(one: EvaluationCase, options: JudgeCasesOptions): Promise<Answer | undefined> {
  const { classifier, view, timeoutMs, kept } = options;
  const request = requestFor(one, view);
  if (request === undefined) return undefined;
  // The whole request is in the key: another view or question makes another answer.
  const key = kept ? sha256(JSON.stringify([kept.identity, request])) : "";
  const known = kept?.answers.get(key);
  if (known) return known;
  const { answered, latencyMs, usage } = await judgeCalls(classifier, request, 1, { timeoutMs });
  const [first = { unavailable: "error" as const }] = answered;
  const answer: Answer = {
    ...("risk" in first ? { risk: first.risk } : { unavailable: first.unavailable }),
    latencyMs,
    ...(usage ? { inputTokens: usage.input_tokens, outputTokens: usage.output_tokens } : {}),
  };
  kept?.answers.add(key, answer);
  return answer;
}

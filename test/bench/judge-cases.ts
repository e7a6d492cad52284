import { sha256 } from "@langchain/core/utils/hash";
import { type Classifier, judgeCalls } from "../../src/guard/classify.js";
import type { MonitorView } from "../../src/transcript/view.js";
import type { Case } from "../../src/evaluation/cases.js";
import type { Answer, Judged } from "../../src/evaluation/judged.js";
import { requestOf } from "../../src/evaluation/request.js";
import type { Results } from "./results.js";

/** How cases are judged. */
export interface JudgeCasesOptions {
  readonly classifier: Classifier;
  /** The classifier's own wishes, and the user's over them. */
  readonly view: Partial<MonitorView>;
  /** Requests at once. */
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Where answers are kept, and what tells them from another classifier's. */
  readonly kept?: { readonly results: Results; readonly identity: string } | undefined;
  /** Called after each case. */
  readonly onJudged?: () => void;
}

/** Judges every case with the guard's own view, question and reading of answers. */
export async function judgeCases(cases: readonly Case[], options: JudgeCasesOptions): Promise<Judged[]> {
  const judged: Judged[] = Array.from({ length: cases.length });
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < cases.length; index = next++) {
      const labelled = cases[index];
      if (!labelled) continue;
      judged[index] = { ...aboutCase(labelled), ...(await answerFor(labelled, options)) };
      options.onJudged?.();
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, work));
  return judged;
}

function aboutCase({ id, source, kind, origin, label }: Case): Omit<Judged, keyof Answer> {
  return { id, source, kind, recorded: origin === "recorded", risky: label === "risky" };
}

async function answerFor(labelled: Case, options: JudgeCasesOptions): Promise<Answer> {
  const { classifier, view, timeoutMs, kept } = options;
  const request = requestOf(labelled, view);
  // The whole request is in the key: another view or question makes another answer.
  const key = kept ? sha256(JSON.stringify([kept.identity, request])) : "";
  const known = kept?.results.get(key);
  if (known) return known;
  const { answered, latencyMs, usage } = await judgeCalls(classifier, request, 1, { timeoutMs });
  const answer: Answer = {
    ...pick(answered[0] ?? { unavailable: "error" }),
    latencyMs,
    ...(usage ? { inputTokens: usage.input_tokens, outputTokens: usage.output_tokens } : {}),
  };
  kept?.results.add(key, answer);
  return answer;
}

function pick(answered: Answer): Answer {
  return answered.risk === undefined
    ? { unavailable: answered.unavailable ?? "error" }
    : { risk: answered.risk };
}

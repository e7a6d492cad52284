import { sha256 } from "@langchain/core/utils/hash";
import { type Classifier, judgeCalls } from "../guard/classify.js";
import type { MonitorView } from "../transcript/view.js";
import { type Answer, type EvaluationCase, fromMade, type Case } from "./read-cases.js";
import type { ClassifierRequest } from "@langchain/core/decisions";
import { buildRequest, DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "../guard/question.js";
import { renderTranscript } from "../transcript/render.js";
import { toDisplayJson } from "../transcript/json.js";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chooseClassifier } from "../classifiers/classifier-choice.js";
import { ProvenanceDecisionModel } from "../classifiers/index.js";
import { ConfigurationError } from "../errors.js";

/** How cases are judged. */
export interface JudgeCasesOptions {
  readonly classifier: Classifier;
  /** The classifier's own view, and the user's over it. */
  readonly view: Partial<MonitorView>;
  /** Requests at once. */
  readonly concurrency: number;
  readonly timeoutMs: number;
  /** Where answers are kept, and what identifies the classifier. */
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

/** What a classifier is sent for a case, through the guard's own view and question. `undefined`: the case holds too little. */
function requestFor(
  { tool, args, description, environment, transcript }: EvaluationCase,
  view: Partial<MonitorView> = {},
): ClassifierRequest | undefined {
  if (args === undefined || transcript === undefined) return undefined;
  const question = { instructions: DEFAULT_INSTRUCTIONS, criteria: DEFAULT_CRITERIA };
  return buildRequest([{ name: tool, args, description, ...question }], {
    transcript: transcript(view),
    environment,
  });
}

/** The same for a case that is put together by hand. */
export function requestOf(labeled: Case, view: Partial<MonitorView> = {}): ClassifierRequest {
  const request = requestFor(fromMade({ ...labeled, label: labeled.label === "risky" }), view);
  if (request === undefined) throw new Error("The case holds no call.");
  return request;
}

/** The same for a person. `undefined`: the case holds no conversation. */
export function readable(
  { tool, args, description, transcript }: EvaluationCase,
  view: Partial<MonitorView> = {},
): string | undefined {
  if (transcript === undefined) return undefined;
  return [
    renderTranscript(transcript(view)),
    `Proposed call: ${tool}\n${args === undefined ? "(malformed)" : JSON.stringify(toDisplayJson(args), undefined, 2)}`,
    `Description: ${description ?? "none"}`,
  ].join("\n\n");
}

/**
 * Answers kept in a file, so that a run that was stopped goes on where it was. The file is only appended
 * to: whatever ends the process, at most the last line is lost. It holds numbers and hashes, no content.
 */
export class KeptAnswers {
  readonly #file: string;
  readonly #answers = new Map<string, Answer>();

  /** With `fresh`, what was answered before is asked again; the newer answer counts from then on. */
  constructor(file: string, { fresh = false }: { readonly fresh?: boolean } = {}) {
    this.#file = file;
    const kept = existsSync(file) ? readFileSync(file, "utf8") : "";
    if (!fresh) for (const line of kept.split("\n")) this.#remember(line);
    // A line that was cut off must not swallow the next one.
    if (kept !== "" && !kept.endsWith("\n")) appendFileSync(file, "\n");
  }

  #remember(line: string): void {
    try {
      const { key, ...answer } = JSON.parse(line) as Answer & { key: string };
      // What failed once is asked again.
      if (typeof answer.risk === "number") this.#answers.set(key, answer);
    } catch {
      // Empty, or cut off when an earlier run ended.
    }
  }

  get(key: string): Answer | undefined {
    return this.#answers.get(key);
  }

  add(key: string, answer: Answer): void {
    appendFileSync(this.#file, `${JSON.stringify({ key, ...answer })}\n`, { mode: 0o600 });
    this.#answers.set(key, answer);
  }
}

/** A classifier to measure. */
export interface LoadedClassifier {
  readonly classifier: Classifier;
  /** Identifies its answers in a file of answers. `undefined`: they are not kept. */
  readonly identity: string | undefined;
}

/**
 * Makes the classifier that a command line names, or loads it from a module. Keys come from the environment.
 *
 * @throws {ConfigurationError} that says what is missing
 */
export async function loadClassifier(which: string): Promise<LoadedClassifier> {
  if (/[/\\]|\.[cm]?[jt]s$/.test(which) && !/^[a-z-]+:/.test(which)) return loadModule(which);
  const classifier = await chooseClassifier(which);
  // The offline model's answers cost nothing, and change with the package's version.
  return { classifier, identity: classifier instanceof ProvenanceDecisionModel ? undefined : which };
}

async function loadModule(path: string): Promise<LoadedClassifier> {
  const file = resolve(path);
  let code: string;
  try {
    code = readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigurationError("classifier", "names a module that cannot be read", { cause: error });
  }
  const { default: classifier } = (await import(pathToFileURL(file).href)) as { default?: Classifier };
  if (typeof classifier?.invoke !== "function")
    throw new ConfigurationError("classifier", "names a module that default-exports no decision model");
  return { classifier, identity: `${path}\n${code}` };
}

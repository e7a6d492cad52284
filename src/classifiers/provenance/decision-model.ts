import {
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
  type ChoiceAnswer,
} from "@langchain/core/decisions";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { MonitorView } from "../../transcript/view.js";
import { type Sources, featuresOf, sourcesOf } from "./features.js";
import { explanationOf, riskOf } from "./risk.js";
import { allFail, type Outcome, settle } from "../answers.js";
import {
  type RequestedCall,
  type RequestState,
  type RiskKind,
  readBoundQuestion,
  readRequestState,
} from "../../guard/question.js";

/**
 * A decision model that needs no key, no network and no download. It takes about 0.2 ms for an ordinary
 * request, and 9 ms where its view of 48,000 characters is full (two shared cores).
 * It asks where a call comes from: the user's words, what tools brought in, or nowhere. A logistic regression
 * over 17 features (see `FEATURES`) gives the risk.
 *
 * **What it catches:** indirect injection, where text in tool output gets the agent to do what the user never
 * asked for. **What it does not:** a harmful request by the user, a right action on the wrong target, an
 * instruction that the user told the agent to follow ("do what the ticket says" looks like an injection to
 * it), a permission in a summary, or one that was lifted later, sense and consequences of any kind. It
 * compares words and knows no meaning: an injected text that names neither the action nor its values passes,
 * and so does one in another script than the tools' names if no value gives it away. So use it as a second,
 * independent check next to a better judge (an `autoModeMiddleware` of its own, with a `label`), together with
 * fixed rules, or as a last resort. Do not use it as the only judge.
 *
 * **Not first in a cascade:** it clears calls that are dangerous in themselves. `rm -rf` that nobody asked for
 * gets a low risk as long as no tool output is involved, and with `CascadeDecisionModel`'s default `escalate`
 * no other model is asked then.
 *
 * Measured on cases that took no part in fitting (`test` split; at the default threshold of 0.5):
 *
 * | source | what it holds | cases | ROC AUC | benign blocked | risky passed |
 * | --- | --- | --- | --- | --- | --- |
 * | all but BFCL | | 504 | 0.90 | 3 % | 29 % |
 * | InjecAgent | indirect injection, and the same calls asked for by the user | 239 | 0.993 | 0 % | 4 % |
 * | ASB | injected calls, recognizable by their names | 111 | 0.99 | 0 % | 8 % |
 * | ToolEmu (recorded) | vague requests with harmful effects | 112 | 0.78 | 6 % | 92 % |
 * | tau-bench airline | wrong targets, unconfirmed writes | 42 | 0.72 | 24 % | 57 % |
 * | BFCL (recorded) | ordinary single calls, nothing read before | 200 | | 0 % | |
 * | all recorded but BFCL | | 133 | 0.70 | 11 % | 92 % |
 *
 * Fitted without the source it is measured on (`train` and `dev`): AUC 0.98 on InjecAgent, 0.96 on ASB, 0.79
 * on tau-bench, 0.69 on ToolEmu. Reproduce with
 * `npx tsx test/bench/train-provenance.ts --cases FILE --report-test`. Features were chosen on `train` and
 * `dev`. All cases are English; InjecAgent's attack texts are word for word in its outputs, which flatters
 * word overlap. Of 33 steps of four plain coding sessions none is blocked, and all of their 9 injected calls
 * are; two of the sessions took part in fitting.
 *
 * **What an attacker can and cannot do:** more text in tool output, more earlier calls and more arguments can
 * only raise the risk, never lower it; repeating the user's words changes nothing. Mixing the user's words
 * into an argument lowers it a little. What the view leaves out cannot be compared: an instruction beyond
 * `maxCharsPerToolResult`, or in an output older than `mostRecent` entries, is seen by its new values alone.
 * With a view that has no `toolResults` it is nearly blind.
 *
 * It reads the guard's own state (`tool_calls`, `transcript`, `environment`) and answers questions of type
 * `noul` about one of its calls, with a short fixed `explanation` that names the kind of evidence and never
 * its content. Of choices it answers the guard's own (`explain`): `injected_instruction` or `none`, as it
 * knows no other kind. `delegator` entries and `environment` explain where a value comes from, but ask for
 * nothing; notes and reports count as tool output.
 *
 * @throws {ClassificationError} from `invoke` with reason `error` for another state or question; its `cause`
 * says what can be answered, its `answers` hold the answers to the other questions.
 *
 * @example
 * ```ts
 * autoModeMiddleware({ tools: [sendMail], classifier: new ProvenanceDecisionModel() });
 * ```
 */
export class ProvenanceDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "classifiers"];
  /** Tool results have to be read, and far into them: instructions hide in long pages. */
  readonly view: Partial<MonitorView> = {
    channels: ["user", "toolCalls", "subagentReports", "toolResults"],
    maxChars: 48_000,
    maxCharsPerEntry: 12_000,
    maxCharsPerToolResult: 12_000,
  };

  constructor() {
    super({ model: "provenance-2" });
  }

  get _provider(): string {
    return "langchain-auto-mode";
  }

  async _classify(
    state: State,
    questions: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    config?.signal?.throwIfAborted();
    return settle(questions, { model: this.model, outcomes: outcomesOf(state, questions) });
  }
}

function outcomesOf(
  state: State,
  questions: Readonly<Record<string, Question>>,
): ReadonlyMap<string, Outcome> {
  try {
    const read = readState(state);
    const sources = sourcesOf(read.transcript, read.environment);
    return new Map(
      Object.entries(questions).map(([id, question]) => [id, outcomeOf(id, question, read, sources)]),
    );
  } catch (error) {
    if (error instanceof NotAnswerable) return allFail(questions, "error", error.message);
    throw error;
  }
}

function outcomeOf(id: string, question: Question, read: RequestState, sources: Sources): Outcome {
  try {
    const { call, labels } = readQuestion(id, question, read.calls);
    const values = featuresOf(call, sources);
    const risk = riskOf(values);
    if (labels !== undefined) return { answer: kindAnswer(risk, labels) };
    const explanation = explanationOf(values);
    return { answer: { type: "noul", noul: risk, ...(explanation === undefined ? {} : { explanation }) } };
  } catch (error) {
    if (error instanceof NotAnswerable) return { reason: "error", problem: error.message };
    throw error;
  }
}

/** Which call a question is about. */
interface ReadQuestion {
  readonly call: RequestedCall;
  /** The labels, if it asks for the kind of risk; else it asks for the risk. */
  readonly labels?: readonly string[];
}

/** Why a request or question cannot be answered. Its message holds no content of the request. */
class NotAnswerable extends Error {
  override readonly name = "NotAnswerable";
}

/** Reads the state, or says what is expected. */
function readState(state: State): RequestState {
  const read = readRequestState(state);
  if (read) return read;
  throw new NotAnswerable(
    "ProvenanceDecisionModel reads the guard's own state: { tool_calls: { call_1: { name, args, description? } }, transcript: Entry[], environment? }",
  );
}

const INJECTED: RiskKind = "injected_instruction";
const NONE: RiskKind = "none";

/** Reads a question, or says why it is none that provenance can answer. */
function readQuestion(id: string, question: Question, calls: RequestState["calls"]): ReadQuestion {
  if (question.type !== "noul" && question.type !== "choice")
    throw new NotAnswerable(
      `ProvenanceDecisionModel answers yes-or-no questions (noul) about a tool call, and the guard's own choice between kinds of risk; it cannot answer a question of type "${question.type}".`,
    );
  if (question.type === "choice" && ![INJECTED, NONE].every((kind) => Object.hasOwn(question.criteria, kind)))
    throw new NotAnswerable(
      `ProvenanceDecisionModel knows one kind of risk: it answers a choice only if "${INJECTED}" and "${NONE}" are among its labels.`,
    );
  const call = calls.get(readBoundQuestion(question.instructions)?.call ?? id.replace(/^kind_/, "call_"));
  if (!call)
    throw new NotAnswerable(
      "ProvenanceDecisionModel judges tool calls: a question has to name its call as `tool_calls.call_1` in its instructions, or by its id.",
    );
  return question.type === "choice" ? { call, labels: Object.keys(question.criteria) } : { call };
}

/** The kind that provenance can see, or none, with a probability for every label of the question. */
function kindAnswer(risk: number, labels: readonly string[]): ChoiceAnswer {
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

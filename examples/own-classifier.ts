/**
 * How to write your own classifier: a decision model is a class with one method. This one applies a few
 * fixed rules. It shows the shape; a real one would ask a model.
 */
import {
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
  parseClassifierResponse,
} from "@langchain/core/decisions";

interface Entry {
  from: string;
  text?: string;
}

interface Request {
  tool_calls: Record<string, { name: string; args: Record<string, unknown> }>;
  transcript: Entry[];
}

export class RuleBasedClassifier extends BaseDecisionModel {
  lc_namespace = ["example", "decisions"];

  constructor() {
    super({ model: "example-rules" });
  }

  get _provider(): string {
    return "example";
  }

  // `state` is what the guard shows: the proposed calls and the conversation, all of it data.
  // Each question is named after its call and wants a probability from 0 (fine) to 1 (risky).
  async _classify(state: State, questions: Record<string, Question>): Promise<ClassifierResponse> {
    const { tool_calls, transcript } = state as unknown as Request;
    // Only entries from `user` are the user's own words. A file or a web page never shows up as one.
    const asked = transcript.filter(({ from }) => from === "user").map(({ text }) => text ?? "");
    const answers = Object.fromEntries(
      Object.keys(questions).map((id) => [id, { type: "noul", noul: riskOf(tool_calls[id]?.args, asked) }]),
    );
    // Checks the shape of what we answer, so that a mistake here is a failure and not a verdict.
    const response = parseClassifierResponse({ model: this.model, answers });
    // A sentence for the agent, if you have one. Added after the check, which knows no such field.
    for (const answer of Object.values(response.answers))
      Object.assign(answer, { explanation: "The user never named this target." });
    return response;
  }
}

/** Every path and every address of a call must be one that the user named. */
function riskOf(args: Record<string, unknown> | undefined, asked: readonly string[]): number {
  if (!args) return 1;
  const targets = [args.path, args.url].filter((value) => typeof value === "string");
  const named = targets.every((target) => asked.some((words) => words.includes(target)));
  return targets.length > 0 && named ? 0.05 : 0.95;
}

import {
  BaseDecisionModel,
  type ClassifierRequest,
  type ClassifierResponse,
  parseClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import type { RunnableConfig } from "@langchain/core/runnables";

/** A call as the request shows it. */
export interface ShownCall {
  name: string;
  args: Record<string, unknown>;
  description?: string;
}

export interface ShownState {
  tool_calls: Record<string, ShownCall>;
  transcript: { from: string; [key: string]: unknown }[];
  environment?: Record<string, unknown>;
}

export type Judge = (
  call: ShownCall,
  signal: AbortSignal | undefined,
) => number | Said | Promise<number | Said>;
export interface Said {
  risk: number;
  explanation?: string;
}

/** A decision model that answers each call by a function, and keeps what it was asked. */
export class ScriptedClassifier extends BaseDecisionModel {
  lc_namespace = ["test"];
  readonly requests: ClassifierRequest[] = [];
  readonly #judge: Judge;

  constructor(judge: Judge = () => 0) {
    super({ model: "scripted-1" });
    this.#judge = judge;
  }

  get _provider(): string {
    return "test";
  }

  get states(): ShownState[] {
    return this.requests.map(({ state }) => state as unknown as ShownState);
  }

  async _classify(
    state: State,
    questions: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    this.requests.push({ state, questions });
    const calls = (state as unknown as ShownState).tool_calls;
    const said = new Map<string, Said>();
    for (const [id, call] of Object.entries(calls)) {
      const answer = await this.#judge(call, config?.signal);
      said.set(id, typeof answer === "number" ? { risk: answer } : answer);
    }
    const response = parseClassifierResponse({
      model: "scripted-1",
      answers: Object.fromEntries([...said].map(([id, { risk }]) => [id, { type: "noul", noul: risk }])),
      usage_metadata: { input_tokens: 10, output_tokens: 2 },
      requestId: "req_1",
    });
    for (const [id, { explanation }] of said)
      if (explanation !== undefined) Object.assign(response.answers[id] as object, { explanation });
    return response;
  }
}

/** The agents that the benchmarks compare: the same loop, the same tool, another middleware. */
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import {
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
  parseClassifierResponse,
} from "@langchain/core/decisions";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { MemorySaver, ReducedValue, StateSchema } from "@langchain/langgraph";
import { type AgentMiddleware, type ReactAgent, createAgent, createMiddleware, tool } from "langchain";
import { autoModeMiddleware } from "langchain-auto-mode";
import { z } from "zod";

/** Is told before each step how many calls were made. The step waits for it. */
export type BeforeStep = (done: number) => Promise<void>;

/** Proposes `parallel` calls a step until it has proposed `total`, then ends. Takes no time of its own. */
class LoopModel extends BaseChatModel {
  readonly #total: number;
  readonly #parallel: number;
  readonly #beforeStep: BeforeStep | undefined;

  constructor(total: number, parallel: number, beforeStep?: BeforeStep) {
    super({});
    this.#total = total;
    this.#parallel = parallel;
    this.#beforeStep = beforeStep;
  }

  _llmType(): string {
    return "loop";
  }

  override bindTools(): this {
    return this;
  }

  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const done = messages.filter((message) => message.getType() === "tool").length;
    await this.#beforeStep?.(done);
    const count = Math.min(this.#parallel, this.#total - done);
    const message = new AIMessage({
      content: count > 0 ? "" : "done",
      tool_calls: Array.from({ length: count }, (_, index) => ({
        type: "tool_call" as const,
        id: `call_${done + index}`,
        name: "work",
        args: { path: `src/file-${done + index}.ts`, lines: 20 },
      })),
    });
    return { generations: [{ text: "", message }] };
  }
}

/**
 * Answers every question with 0.1, at once or after a delay; or every few questions with 0.9. Counts its
 * requests.
 */
export class SteadyClassifier extends BaseDecisionModel {
  lc_namespace = ["bench", "decisions"];
  requests = 0;
  /** The last request. */
  last: { state: State; questions: Record<string, Question> } | undefined;
  readonly #delayMs: number;
  readonly #blockEvery: number;
  #questions = 0;

  constructor(delayMs = 0, blockEvery = Number.POSITIVE_INFINITY) {
    super({ model: "steady" });
    this.#delayMs = delayMs;
    this.#blockEvery = blockEvery;
  }

  get _provider(): string {
    return "bench";
  }

  async _classify(state: State, questions: Record<string, Question>): Promise<ClassifierResponse> {
    this.requests += 1;
    this.last = { state, questions };
    if (this.#delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.#delayMs));
    const answers = Object.fromEntries(
      Object.keys(questions).map((id) => {
        this.#questions += 1;
        return [id, { type: "noul", noul: this.#questions % this.#blockEvery === 0 ? 0.9 : 0.1 }];
      }),
    );
    return parseClassifierResponse({ model: this.model, answers });
  }
}

function toJson(message: BaseMessage) {
  const { tool_calls } = message as AIMessage;
  return { role: message.getType(), content: message.content, ...(tool_calls ? { tool_calls } : {}) };
}

/**
 * What a user would write: the last 30 messages, one request for each call, nothing else. It keeps no
 * state, knows no limits, and what an inner middleware changes runs unjudged.
 */
export function plainGuard(names: readonly string[], classifier: BaseDecisionModel): AgentMiddleware {
  return createMiddleware({
    name: "plainGuard",
    wrapToolCall: async (request, handler) => {
      const { toolCall, tool: given, state, runtime } = request;
      if (!names.includes(toolCall.name)) return handler(request);
      const description = (given as { description?: string } | undefined)?.description ?? "";
      const response = await classifier.invoke(
        {
          state: {
            messages: state.messages.slice(-30).map(toJson) as never,
            call: { name: toolCall.name, args: toolCall.args as never, description },
          },
          questions: {
            risky: {
              type: "noul",
              instructions: "Is this tool call risky or not authorized by the user?",
              criteria: { true: "It is harmful or goes beyond the request.", false: "It is what was asked." },
            },
          },
        },
        { signal: runtime.signal },
      );
      if (response.nouls.risky.noul < 0.5) return handler(request);
      const content = "This call was blocked.";
      return new ToolMessage({
        content,
        status: "error",
        tool_call_id: toolCall.id ?? "",
        name: toolCall.name,
      });
    },
  });
}

export const noOp = (): AgentMiddleware =>
  createMiddleware({ name: "noOp", wrapToolCall: (request, handler) => handler(request) });

/** What the host takes for a middleware that keeps a state and sees the model node, and does nothing. */
function noOpWithState(): AgentMiddleware {
  const value = z.custom<object>(() => true);
  const field = () =>
    new ReducedValue(
      value.default(() => ({})),
      { inputSchema: z.custom<unknown>(() => true), reducer: (kept: object) => kept },
    );
  return createMiddleware({
    name: "noOpWithState",
    stateSchema: new StateSchema({ _noOp: field(), _noOp_input: field() }),
    wrapModelCall: (request, handler) => handler(request),
    wrapToolCall: (request, handler) => handler(request),
  });
}

export type Kind =
  | "none"
  | "no-op"
  | "no-op with state"
  | "plain guard"
  | "auto mode"
  | "auto mode, unlisted";

const UNLIMITED = {
  consecutiveBlocks: Number.POSITIVE_INFINITY,
  totalBlocks: Number.POSITIVE_INFINITY,
};

function middlewareOf(kind: Kind, classifier: SteadyClassifier): AgentMiddleware[] {
  switch (kind) {
    case "none":
      return [];
    case "no-op":
      return [noOp()];
    case "no-op with state":
      return [noOpWithState()];
    case "plain guard":
      return [plainGuard(["work"], classifier)];
    case "auto mode":
      return [autoModeMiddleware({ tools: ["work"], classifier, limits: UNLIMITED }) as AgentMiddleware];
    case "auto mode, unlisted":
      return [
        autoModeMiddleware({ tools: ["other"], classifier, onUnknownTool: "ignore" }) as AgentMiddleware,
      ];
  }
}

export interface Setup {
  kind: Kind;
  version: "v1" | "v2";
  calls: number;
  parallel: number;
  checkpointer: boolean | MemorySaver;
  delayMs?: number;
  /** Blocks each so many-th call. */
  blockEvery?: number;
}

/** An agent that makes `calls` tool calls in one turn. Each run is a thread of its own. */
export class AgentLoop {
  readonly classifier: SteadyClassifier;
  readonly #setup: Setup;
  readonly #agent: ReactAgent;
  #thread = 0;

  constructor(setup: Setup, beforeStep?: BeforeStep) {
    const { kind, version, calls, parallel, checkpointer, delayMs, blockEvery } = setup;
    this.#setup = setup;
    this.classifier = new SteadyClassifier(delayMs, blockEvery);
    const work = tool(async ({ path }) => `done ${path}`, {
      name: "work",
      description: "Formats one file.",
      schema: z.object({ path: z.string(), lines: z.number() }),
    });
    this.#agent = createAgent({
      model: new LoopModel(calls, parallel, beforeStep),
      tools: [work],
      middleware: middlewareOf(kind, this.classifier),
      version,
      ...(checkpointer ? { checkpointer: checkpointer === true ? new MemorySaver() : checkpointer } : {}),
    });
  }

  /** Runs it on a new thread, and gives the thread's id. */
  async run(): Promise<string> {
    this.#thread += 1;
    const thread = `thread-${this.#thread}`;
    const { calls, kind, blockEvery = Number.POSITIVE_INFINITY } = this.#setup;
    const result = await this.#agent.invoke(
      { messages: [{ role: "user", content: "Please format all files." }] },
      { recursionLimit: calls * 4 + 20, configurable: { thread_id: thread } },
    );
    const answers = (result.messages as BaseMessage[]).filter((message) => message.getType() === "tool");
    // A benchmark of work that did not happen would measure nothing.
    const ran = answers.filter((message) => message.text.startsWith("done")).length;
    if (answers.length !== calls || ran !== calls - Math.floor(calls / blockEvery))
      throw new Error(`${kind}: of ${calls} calls ${answers.length} were answered and ${ran} ran`);
    return thread;
  }
}

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
import { MemorySaver } from "@langchain/langgraph";
import { type AgentMiddleware, createAgent, createMiddleware, tool } from "langchain";
import { autoModeMiddleware } from "langchain-auto-mode";
import { z } from "zod";

/** Proposes `parallel` calls a step until it has proposed `total`, then ends. Takes no time of its own. */
export class LoopModel extends BaseChatModel {
  readonly #total: number;
  readonly #parallel: number;

  constructor(total: number, parallel: number) {
    super({});
    this.#total = total;
    this.#parallel = parallel;
  }

  _llmType(): string {
    return "loop";
  }

  override bindTools(): this {
    return this;
  }

  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const done = messages.filter((message) => message.getType() === "tool").length;
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

/** Answers every question with 0.1, at once or after a delay. Counts its requests. */
export class SteadyClassifier extends BaseDecisionModel {
  lc_namespace = ["bench", "decisions"];
  requests = 0;
  /** Length of the last request as JSON. */
  size = 0;
  readonly #delayMs: number;

  constructor(delayMs = 0) {
    super({ model: "steady" });
    this.#delayMs = delayMs;
  }

  get _provider(): string {
    return "bench";
  }

  async _classify(state: State, questions: Record<string, Question>): Promise<ClassifierResponse> {
    this.requests += 1;
    if (this.measured) this.size = JSON.stringify({ state, questions }).length;
    if (this.#delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.#delayMs));
    const answers = Object.fromEntries(Object.keys(questions).map((id) => [id, { type: "noul", noul: 0.1 }]));
    return parseClassifierResponse({ model: this.model, answers });
  }

  /** Whether sizes are measured, which costs time of its own. */
  measured = false;
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
            messages: state.messages.slice(-30),
            call: { name: toolCall.name, args: toolCall.args as never, description },
          },
          questions: {
            risky: {
              type: "noul",
              instructions: "Is this tool call risky or not authorised by the user?",
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

export type Kind = "none" | "no-op" | "plain guard" | "auto mode" | "auto mode, unlisted";

function middlewareOf(kind: Kind, classifier: SteadyClassifier): AgentMiddleware[] {
  switch (kind) {
    case "none":
      return [];
    case "no-op":
      return [noOp()];
    case "plain guard":
      return [plainGuard(["work"], classifier)];
    case "auto mode":
      return [autoModeMiddleware({ tools: ["work"], classifier }) as AgentMiddleware];
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
  checkpointer: boolean;
  delayMs?: number;
}

/** Makes an agent; running it makes `calls` tool calls in one turn. */
export function makeAgent({ kind, version, calls, parallel, checkpointer, delayMs }: Setup) {
  const classifier = new SteadyClassifier(delayMs);
  const work = tool(async ({ path }) => `done ${path}`, {
    name: "work",
    description: "Formats one file.",
    schema: z.object({ path: z.string(), lines: z.number() }),
  });
  const agent = createAgent({
    model: new LoopModel(calls, parallel),
    tools: [work],
    middleware: middlewareOf(kind, classifier),
    version,
    ...(checkpointer ? { checkpointer: new MemorySaver() } : {}),
  });
  let thread = 0;
  const run = async (): Promise<void> => {
    thread += 1;
    const result = await agent.invoke(
      { messages: [{ role: "user", content: "Please format all files." }] },
      { recursionLimit: calls * 4 + 20, configurable: { thread_id: `thread-${thread}` } },
    );
    const answers = (result.messages as BaseMessage[]).filter((message) => message.getType() === "tool");
    // A benchmark of work that did not happen would measure nothing.
    if (answers.length !== calls || answers.some((message) => !message.text.startsWith("done")))
      throw new Error(`${kind}: expected ${calls} results, got ${answers.length}`);
  };
  return { run, classifier };
}

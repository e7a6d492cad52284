/** A thread of an agent whose calls are judged by a chat model: what the agent read, and what the judge read. */
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { type AgentMiddleware, createAgent, summarizationMiddleware, tool } from "langchain";
import { autoModeMiddleware, type MonitorView } from "langchain-auto-mode";
import { CascadeDecisionModel, ChatDecisionModel } from "langchain-auto-mode/classifiers";
import { z } from "zod";

/** How a thread runs. */
export interface ThreadOptions {
  steps: number;
  /** How many calls each step proposes. */
  calls: number;
  /** The tools that the steps call, in turn. */
  tools: readonly ToolName[];
  view?: Partial<MonitorView>;
  /** Whether the conversation is summarized on the way. */
  summarize?: boolean;
  /** Whether numbers alone are asked for first, and then the same model with an explanation. */
  twoStages?: boolean;
}

/** One step, as it was when its calls were judged. */
export interface Step {
  /** What the agent's model was sent, and its reply. */
  messages: readonly BaseMessage[];
  calls: readonly { name: string; args: Record<string, unknown> }[];
  /** What the operator says of the agent's surroundings. */
  environment?: Record<string, unknown>;
}

export interface Thread {
  steps: readonly Step[];
  /** Each request of the judge as one text: one for each step, or two in two stages. */
  prompts: readonly string[];
}

// An operator's session of an hour: a turn every 15 steps.
const STEPS_PER_TURN = 15;
const TASKS = [
  "Please bring the date handling of the billing service in order: all modules under src/billing should use the helpers in src/shared/dates.ts, with tests. Leave the migration files alone, and do not touch anything outside this repository.",
  "Good. Now the same for the reports, please. The quarterly ones are the most urgent.",
  "Thanks. The invoices next; keep the public names as they are.",
  "Please go through what is left in one more round, and say when you are done.",
];
const WORDS =
  "module helper parses the date once and keeps its zone so that callers need no conversion of their own while tests cover leap years month ends and the change to summer time in both directions".split(
    " ",
  );

/** The same words for the same numbers, in every run. */
export function words(seed: number, count: number): string {
  return Array.from(
    { length: count },
    (_, index) => WORDS[(seed * 7 + index * 5 + ((seed * index) % 11)) % WORDS.length],
  ).join(" ");
}

const DESCRIPTIONS = {
  edit_file: "Replaces one piece of text in a file of the repository. The piece must occur exactly once.",
  run_command:
    "Runs a shell command in the repository and gives back what it printed, at most 30,000 characters.",
  write_file: "Writes a whole file of the repository. A file of the same name is overwritten.",
} as const;
export type ToolName = keyof typeof DESCRIPTIONS;

function argsOf(name: ToolName, nth: number): Record<string, unknown> {
  const path = `src/billing/part-${nth}/dates.ts`;
  switch (name) {
    case "edit_file":
      return { path, find: `new Date(${words(nth, 3)})`, replace: `parseDate("${words(nth, 8)}")` };
    case "run_command":
      return { command: `npx vitest run ${path.replace(".ts", ".test.ts")} --reporter=dot` };
    case "write_file":
      return { path, content: `// ${words(nth, 30)}\nexport const part = ${nth};\n` };
  }
}

/** Answers every question with 0 and keeps what it was asked. */
export class RecordingJudge extends BaseChatModel {
  readonly prompts: string[] = [];
  readonly #reply = JSON.stringify({
    explanation: "It is part of the task.",
    ...Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`call_${index + 1}`, 0])),
  });

  constructor() {
    super({});
  }
  _llmType(): string {
    return "recording";
  }
  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    this.prompts.push(messages.map(({ text }) => text).join("\n"));
    return { generations: [{ text: this.#reply, message: new AIMessage(this.#reply) }] };
  }
}

/** Proposes the steps of the thread, one after the other, and keeps what it was sent. */
class ThreadModel extends BaseChatModel {
  readonly steps: Step[] = [];
  readonly #options: ThreadOptions;

  constructor(options: ThreadOptions) {
    super({});
    this.#options = options;
  }
  _llmType(): string {
    return "thread";
  }
  override bindTools(): this {
    return this;
  }
  async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const { steps, calls: width, tools } = this.#options;
    const step = this.steps.length;
    const isTurnOver = step === steps || (step % STEPS_PER_TURN === 0 && messages.at(-1)?.type !== "human");
    const calls = Array.from({ length: isTurnOver ? 0 : width }, (_, index) => {
      const name = tools[step % tools.length]!;
      return { name, args: argsOf(name, step * width + index) };
    });
    const message = new AIMessage({
      content: isTurnOver ? "This round is done." : `Next: ${words(step, 14)}.`,
      tool_calls: calls.map((call, index) => ({ ...call, type: "tool_call", id: `step_${step}_${index}` })),
    });
    if (!isTurnOver) this.steps.push({ messages: [...messages, message], calls });
    return { generations: [{ text: message.text, message }] };
  }
}

/** Summarizes in fixed words. */
class Summarizer extends BaseChatModel {
  constructor() {
    super({});
  }
  _llmType(): string {
    return "summarizer";
  }
  async _generate(): Promise<ChatResult> {
    const text = `So far: ${words(1, 120)}.`;
    return { generations: [{ text, message: new AIMessage(text) }] };
  }
}

/** A cascade that asks both stages about every call. */
function inTwoStages(model: BaseChatModel): CascadeDecisionModel {
  return new CascadeDecisionModel({
    first: new ChatDecisionModel({ model, explanation: false }),
    second: new ChatDecisionModel({ model }),
    escalate: [0, 1],
  });
}

/** Runs a thread of a real agent with the guard in it. */
export async function runThread(options: ThreadOptions): Promise<Thread> {
  const judge = new RecordingJudge();
  const model = new ThreadModel(options);
  const tools = Object.entries(DESCRIPTIONS).map(([name, description]) =>
    tool(() => words(model.steps.length, 110), { name, description, schema: z.looseObject({}) }),
  );
  const middleware: AgentMiddleware[] = [
    ...(options.summarize
      ? [
          summarizationMiddleware({
            model: new Summarizer(),
            trigger: { messages: 70 },
            keep: { messages: 20 },
          }),
        ]
      : []),
    autoModeMiddleware({
      tools: Object.keys(DESCRIPTIONS),
      classifier: options.twoStages ? inTwoStages(judge) : new ChatDecisionModel({ model: judge }),
      ...(options.view ? { view: options.view } : {}),
    }),
  ];
  const agent = createAgent({
    model,
    tools,
    middleware,
  });
  let messages: BaseMessage[] = [];
  for (const task of TASKS.slice(0, Math.ceil(options.steps / STEPS_PER_TURN))) {
    const input = [...messages, new HumanMessage({ id: `task_${messages.length}`, content: task })];
    ({ messages } = await agent.invoke({ messages: input }, { recursionLimit: 500 }));
  }
  const requests = options.steps * (options.twoStages ? 2 : 1);
  if (model.steps.length !== options.steps || judge.prompts.length !== requests)
    throw new Error(`expected ${requests} requests of the judge, saw ${judge.prompts.length}`);
  return { steps: model.steps, prompts: judge.prompts };
}

export const descriptionOf = (name: string): string | undefined =>
  Object.hasOwn(DESCRIPTIONS, name) ? DESCRIPTIONS[name as ToolName] : undefined;

export const isToolMessage = (message: BaseMessage): message is ToolMessage => message.type === "tool";

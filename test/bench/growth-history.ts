/** What one judged call costs on threads of different lengths: the guard's own time, and its request. */
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { type ToolCallRequest, tool } from "langchain";
import { autoModeMiddleware } from "langchain-auto-mode";
import { z } from "zod";
import { SteadyClassifier } from "./agents.js";
import { median } from "./median.js";

export interface HistoryFigure {
  length: number;
  /** Milliseconds of processor time of the first judged call on the thread in this process. */
  firstMs: number;
  /** The same for each later call, median over the rounds. */
  laterMs: number;
  /** Median of the ratios of `laterMs` to that of the length that is compared with, round by round. */
  ratio: number;
  /** UTF-16 units of the request as JSON. */
  requestLength: number;
}

const RESULT = "The file was formatted. Nothing else was changed.";
const TASK = "Please format the next files as well.";
/** What 24,000 characters have room for. */
const KEPT_WORDS = Math.floor(24_000 / TASK.length);
/** A turn of the user for so many messages. */
const PER_TURN = 50;

const work = tool(async () => RESULT, {
  name: "work",
  description: "Formats one file.",
  schema: z.object({ path: z.string(), lines: z.number() }),
});

const runTool = ({ toolCall: { id } }: ToolCallRequest) =>
  new ToolMessage({ content: RESULT, tool_call_id: id ?? "", name: "work" });

/** A thread of an agent with this middleware, on which one call after the other is judged. */
class Thread {
  readonly classifier = new SteadyClassifier();
  readonly #middleware = autoModeMiddleware({ tools: ["work"], classifier: this.classifier });
  readonly #messages: BaseMessage[] = [];
  readonly #users: string[] = [];
  #words: { id: string; text: string }[] = [];
  #calls = 0;

  constructor(length: number) {
    while (this.#messages.length < length) {
      if (this.#messages.length >= this.#users.length * PER_TURN) this.#addUser();
      else this.#addAnswer(this.#addCall());
    }
  }

  #addUser(): void {
    const id = `user-${this.#users.length}`;
    this.#users.push(id);
    this.#messages.push(new HumanMessage({ id, content: TASK }));
    this.#words = [...this.#words, { id, text: TASK }].slice(-KEPT_WORDS);
  }

  #addCall(): AIMessage {
    this.#calls += 1;
    // Numbers of one length, so that the length of a request tells of nothing else.
    const number = String(this.#calls).padStart(6, "0");
    const message = new AIMessage({
      id: `call-${number}`,
      content: "",
      tool_calls: [
        {
          type: "tool_call",
          id: `id-${number}`,
          name: "work",
          args: { path: `src/${number}.ts`, lines: 20 },
        },
      ],
    });
    this.#messages.push(message);
    return message;
  }

  #addAnswer(message: AIMessage): void {
    this.#messages.push(
      new ToolMessage({
        id: `result-${message.id}`,
        content: RESULT,
        tool_call_id: message.tool_calls?.[0]?.id ?? "",
        name: "work",
      }),
    );
  }

  /** Judges one more call. Gives the processor time that it took. */
  async judge(): Promise<number> {
    const message = this.#addCall();
    // A list of its own for each step, as the host makes one.
    const state = {
      messages: [...this.#messages],
      // As many words as are kept of the newest ones.
      _autoMode_input: { seen: true, ids: this.#users, words: this.#words },
    };
    const toolCall = { ...message.tool_calls?.[0] };
    const request = { toolCall, tool: work, state, runtime: {} } as unknown as ToolCallRequest;
    const before = process.cpuUsage();
    await this.#middleware.wrapToolCall?.(request, runTool);
    const { user, system } = process.cpuUsage(before);
    this.#addAnswer(message);
    return (user + system) / 1000;
  }
}

/** Measures all lengths in turn within each round, so that a busy moment hits them alike. */
export async function measureHistory(
  lengths: readonly number[],
  { calls, rounds, against }: { calls: number; rounds: number; against: number },
): Promise<HistoryFigure[]> {
  const warm = new Thread(200);
  for (let call = 0; call < calls; call += 1) await warm.judge();
  const threads = [];
  for (const length of lengths) {
    const thread = new Thread(length);
    threads.push({ length, thread, firstMs: await thread.judge(), times: [] as number[] });
  }
  const requestLengths = threads.map(({ thread }) => JSON.stringify(thread.classifier.last).length);
  for (let round = 0; round < rounds; round += 1)
    for (const { thread, times } of threads) {
      let sum = 0;
      for (let call = 0; call < calls; call += 1) sum += await thread.judge();
      times.push(sum / calls);
    }
  for (const { thread } of threads)
    // A benchmark of judgments that did not happen would measure nothing.
    if (thread.classifier.requests !== 1 + calls * rounds) throw new Error("not every call was judged");
  const compared = threads.find(({ length }) => length === against)?.times ?? [];
  return threads.map(({ length, firstMs, times }, index) => ({
    length,
    firstMs,
    laterMs: median(times),
    ratio: median(times.map((time, round) => time / (compared[round] ?? Number.NaN))),
    requestLength: requestLengths[index] ?? Number.NaN,
  }));
}

import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { Command, MemorySaver } from "@langchain/langgraph";
import { type Classifier, askHuman, autoModeState } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { type Scene, stage } from "./agent.js";

/** What a person is shown, in the shape of LangChain's human-in-the-loop middleware. */
export interface Question {
  readonly actionRequests: readonly { name: string; args: Record<string, unknown>; description?: string }[];
  readonly reviewConfigs: readonly { actionName: string; allowedDecisions: readonly string[] }[];
}

export const approve = { type: "approve" } as const;
export const reject = (message?: string) => ({
  type: "reject",
  ...(message === undefined ? {} : { message }),
});
export const edit = (name: string, args: Record<string, unknown>) => ({
  type: "edit",
  editedAction: { name, args },
});

/** Everything is risky but calls whose path begins with `/ok`. */
export const byPath = () =>
  fakeDecisionModel().always(({ args }) => (JSON.stringify(args).includes(`"path":"/ok`) ? 0 : 0.9));

let threads = 0;
/** The configuration of a thread of its own. */
export const thread = (id = `thread-${(threads += 1)}`) => ({ configurable: { thread_id: id } });

/** Where a run stands: its messages, and the question if it waits for a person. */
export interface Standpoint {
  readonly messages: BaseMessage[];
  readonly questions: readonly Question[];
}

function standpoint(state: { messages: BaseMessage[] }): Standpoint {
  const interrupts = (state as { __interrupt__?: { value: Question }[] }).__interrupt__ ?? [];
  return { messages: state.messages, questions: interrupts.map(({ value }) => value) };
}

/** The one question that a run waits with. */
export function questionOf({ questions }: Standpoint): Question {
  const [question, ...more] = questions;
  if (!question || more.length > 0) throw new Error(`${questions.length} questions instead of one`);
  return question;
}

export interface AskingScene extends Omit<Scene, "classifier"> {
  /** Default: {@link byPath}. */
  classifier?: Classifier;
}

/** An agent that asks a person at the first block, unless the options say otherwise. */
export function stageAsking(scene: AskingScene) {
  const classifier = scene.classifier ?? byPath();
  const config = { ...thread(), recursionLimit: 60, ...scene.config };
  const staged = stage({
    checkpointer: new MemorySaver(),
    ...scene,
    config,
    classifier,
    options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: askHuman(), ...scene.options },
  });
  const { agent } = staged;
  return {
    ...staged,
    config,
    classifier,
    /** New input of the user. */
    start: async (text = "Please do the work.") =>
      standpoint(await agent.invoke({ messages: [new HumanMessage(text)] }, config)),
    /** Goes on where a run stopped, without any input. */
    goOn: async () => standpoint(await agent.invoke(null as never, config)),
    /** A person's answer, whatever it is. */
    answer: async (resume: unknown) =>
      standpoint(await agent.invoke(new Command({ resume }) as never, config)),
    /** A well-formed answer. */
    decide: async (...decisions: unknown[]) =>
      standpoint(await agent.invoke(new Command({ resume: { decisions } }) as never, config)),
    state: async () => autoModeState(await agent.graph.getState(config)),
  };
}

/** Every call id of a history with the number of its answers. */
export function answerCounts(messages: readonly BaseMessage[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const message of messages) {
    const { tool_calls: calls = [], tool_call_id: id } = message as {
      tool_calls?: { id?: string }[];
      tool_call_id?: string;
    };
    for (const call of calls) counts[call.id ?? "(no id)"] ??= 0;
    if (id !== undefined) counts[id] = (counts[id] ?? 0) + 1;
  }
  return counts;
}

/** Calls that a model was sent without exactly one answer. */
export function badlyAnswered(model: { calls: { messages: BaseMessage[] }[] }): string[] {
  return model.calls.flatMap(({ messages }) =>
    Object.entries(answerCounts(messages)).flatMap(([id, count]) => (count === 1 ? [] : [`${id}: ${count}`])),
  );
}

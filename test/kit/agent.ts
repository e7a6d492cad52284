import { type BaseMessage, HumanMessage, type ToolMessage } from "@langchain/core/messages";
import type { ClientTool } from "@langchain/core/tools";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { type AgentMiddleware, createAgent } from "langchain";
import {
  type AutoModeOptions,
  type Classifier,
  type DecisionRecord,
  autoModeMiddleware,
} from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { type Turn, scripted } from "./model.js";
import { type ToolBox, toolBox } from "./tools.js";

/** Both ways in which the host runs tools. */
export const VERSIONS = ["v1", "v2"] as const;
export type Version = (typeof VERSIONS)[number];

export interface Scene {
  version?: Version;
  /** What the chat model says. */
  turns: readonly Turn[];
  /** A risk for every call, or a decision model. Default: everything is harmless. */
  classifier?: number | Classifier;
  /** Options of the guard; `tools` is `delete_file` where they do not say. */
  options?: Partial<AutoModeOptions>;
  box?: ToolBox;
  tools?: ClientTool[];
  /** Middlewares around the guard, and between it and the tools. */
  outside?: AgentMiddleware[];
  inside?: AgentMiddleware[];
  input?: string | BaseMessage[];
  config?: Record<string, unknown>;
  checkpointer?: BaseCheckpointSaver;
}

/** A real agent with the guard in it, and everything that a test looks at. */
export function stage(scene: Scene) {
  const box = scene.box ?? toolBox();
  const records: DecisionRecord[] = [];
  const { classifier = 0 } = scene;
  const guard = autoModeMiddleware({
    tools: ["delete_file"],
    onDecision: (record) => {
      records.push(record);
    },
    ...scene.options,
    classifier: typeof classifier === "number" ? fakeDecisionModel().always(classifier) : classifier,
  });
  const model = scripted(...scene.turns);
  const agent = createAgent({
    model,
    tools: scene.tools ?? box.all,
    middleware: [...(scene.outside ?? []), guard, ...(scene.inside ?? [])],
    version: scene.version ?? "v2",
    ...(scene.checkpointer ? { checkpointer: scene.checkpointer } : {}),
  });
  const invoke = async (
    input: string | BaseMessage[] = scene.input ?? "Please do the work.",
  ): Promise<BaseMessage[]> => {
    const messages = typeof input === "string" ? [new HumanMessage(input)] : input;
    const state = await agent.invoke({ messages }, { recursionLimit: 200, ...scene.config });
    return state.messages;
  };
  return { agent, model, box, records, guard, invoke };
}

/** Runs the scene once. */
export async function play(scene: Scene) {
  const staged = stage(scene);
  const messages = await staged.invoke();
  return { ...staged, messages };
}

export const isTool = (message: BaseMessage): message is ToolMessage => message.getType() === "tool";

/** All answers to one call. */
export const answersTo = (messages: readonly BaseMessage[], id: string): ToolMessage[] =>
  messages.filter(isTool).filter((message) => message.tool_call_id === id);

/** The one answer to a call. More or fewer are an error. */
export function answerTo(messages: readonly BaseMessage[], id: string): ToolMessage {
  const [answer, ...more] = answersTo(messages, id);
  if (!answer || more.length > 0) throw new Error(`${id} has ${answer ? more.length + 1 : "no"} answers`);
  return answer;
}

export const textOf = (message: BaseMessage | undefined): string => message?.text ?? "";

/** The error that a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`expected a rejection, but it gave ${typeof value}`);
}

/** An error and everything that caused it. */
export function causes(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let one = error; one instanceof Error && !chain.includes(one); one = one.cause) chain.push(one);
  return chain;
}

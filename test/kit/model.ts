import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";

/** A proposed call. Odd ids and arguments are part of what is tested, so neither is typed tightly. */
export interface Proposed {
  readonly name: string;
  readonly args: unknown;
  readonly id?: string | undefined;
}

let lastId = 0;

export const call = (name: string, args: unknown = {}, id = `call-${(lastId += 1)}`): Proposed => ({
  name,
  args,
  id,
});
export const del = (path: string, id?: string): Proposed => call("delete_file", { path }, id);
export const read = (path: string, id?: string): Proposed => call("read_file", { path }, id);
export const draft = (path: string, id?: string): Proposed => call("draft_file", { path }, id);

/** An AIMessage that proposes these calls. */
export function proposes(calls: readonly Proposed[], content = ""): AIMessage {
  const toolCalls = calls.map((proposed) => ({ ...structuredClone(proposed), type: "tool_call" as const }));
  return new AIMessage({ content, tool_calls: toolCalls as NonNullable<AIMessage["tool_calls"]> });
}

/** One step of a scripted chat model: a closing text, calls, a message, or a function of what it is sent. */
export type Turn = string | Proposed | readonly Proposed[] | ((messages: BaseMessage[]) => AIMessage);

/** A chat model that plays its steps and then says "done", so that a run that should have ended is seen. */
export function scripted(...turns: Turn[]) {
  const model = fakeModel();
  for (const turn of turns)
    model.respond((messages) => {
      if (typeof turn === "string") return new AIMessage(turn);
      if (typeof turn === "function") return turn(messages);
      return proposes(Array.isArray(turn) ? (turn as Proposed[]) : [turn as Proposed]);
    });
  for (let extra = 0; extra < 40; extra += 1) model.respond(() => new AIMessage("done"));
  return model;
}

/** A process that works on threads: it is told what to do by its parent, and may be killed at any time. */
import { appendFileSync } from "node:fs";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { createAgent, tool } from "langchain";
import { askHuman, autoModeMiddleware, autoModeState, haltRun, throwOnLimit } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";
import { answerCounts } from "../kit/asking.js";
import { call, proposes, scripted } from "../kit/model.js";
import type { Action, Entry, Order, Place, Report, Scene } from "./protocol.js";
import { storeAt } from "./stores.js";

const place = JSON.parse(process.argv[2] ?? "") as Place;
const forever = async (): Promise<never> => new Promise(() => {});

function agentOf(scene: Scene, checkpointer: Awaited<ReturnType<typeof storeAt>>) {
  // Written at once: what a killed process did must be known.
  const note = (event: Entry["event"], what: string): void => {
    appendFileSync(scene.journal, `${JSON.stringify({ pid: process.pid, event, what })}\n`);
  };
  const onFile = (name: string) =>
    tool(
      async ({ path }: { path: string }) => {
        note("started", path);
        if (scene.hang && path.includes("stuck")) await forever();
        note("ran", path);
        return `${name} done`;
      },
      { name, description: "Works on one file.", schema: z.object({ path: z.string() }) },
    );
  const classifier = fakeDecisionModel().always(async ({ args }, { transcript }) => {
    const { path } = args as { path: string };
    note("asked", path);
    for (const entry of transcript) if (entry.from === "user") note("user", entry.text);
    if (scene.hang && path.includes("slow")) await forever();
    if (path.startsWith("/down")) throw new Error("down");
    note("judged", path);
    return path.startsWith("/ok") ? 0 : 0.9;
  });
  // The step is told from the history, so that another process goes on where this one stopped.
  const turn = (messages: readonly BaseMessage[]): AIMessage => {
    const step = messages.filter((message) => message.type === "ai").length;
    note("wrote", String(step));
    const said = scene.turns[step] ?? "done";
    return typeof said === "string"
      ? new AIMessage(said)
      : proposes(said.map(([name, path, id]) => call(name, { path }, id)));
  };
  const fallbacks = { halt: haltRun, ask: askHuman, throw: throwOnLimit };
  return createAgent({
    model: scripted(...Array.from({ length: 20 }, () => turn)),
    tools: [onFile("delete_file"), onFile("read_file")],
    middleware: [
      autoModeMiddleware({
        tools: ["delete_file"],
        classifier,
        limits: scene.limits,
        whenLimitReached: fallbacks[scene.fallback](),
        ...(scene.onUnavailable ? { onUnavailable: scene.onUnavailable } : {}),
      }),
    ],
    checkpointer,
    version: scene.version,
  });
}

function inputOf(action: Exclude<Action, { do: "look" }>): unknown {
  if (action.do === "say") return { messages: [new HumanMessage(action.text)] };
  if (action.do === "decide") return new Command({ resume: { decisions: action.decisions } });
  return null;
}

async function applyDecisions({ scene, action }: Order): Promise<Report> {
  const agent = agentOf(scene, await storeAt(place));
  const config = {
    configurable: { thread_id: scene.thread },
    recursionLimit: 60,
    // A step is done once the store has it. Otherwise a process that dies may have done more than is known.
    durability: "sync" as const,
  };
  let error: string | undefined;
  if (action.do !== "look")
    try {
      await agent.invoke(inputOf(action) as never, config);
    } catch (thrown) {
      error = String(thrown);
    }
  const snapshot = await agent.graph.getState(config);
  const { messages = [] } = snapshot.values as { messages?: BaseMessage[] };
  const questions = snapshot.tasks.flatMap(({ interrupts }) => interrupts) as {
    value?: { actionRequests?: { args: { path: string } }[] };
  }[];
  const last = messages.at(-1);
  return {
    ...(error === undefined ? {} : { error }),
    asked: questions.flatMap(({ value }) => value?.actionRequests?.map(({ args }) => args.path) ?? []),
    lastText: last?.text ?? "",
    lastMark: last?.additional_kwargs.auto_mode,
    answers: answerCounts(messages),
    state: autoModeState(snapshot),
  };
}

process.on("message", (order: Order) => {
  void applyDecisions(order).then(
    (report) => process.send?.({ number: order.number, report }),
    (error: unknown) => process.send?.({ number: order.number, failure: String(error) }),
  );
});
process.on("disconnect", () => process.exit());

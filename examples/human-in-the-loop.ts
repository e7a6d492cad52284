// Two middlewares that ask a person, in one agent. LangChain's humanInTheLoopMiddleware asks before every
// call of `publish`. Auto mode judges `delete_file`, and asks only once a limit of blocks is reached. One
// loop answers both, since both ask and are answered in the same shapes.
//
// Run it: npm run build && npx tsx examples/human-in-the-loop.ts
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { fakeModel } from "@langchain/core/testing";
import { Command, MemorySaver } from "@langchain/langgraph";
import {
  type AgentMiddleware,
  AIMessage,
  type BaseMessage,
  createAgent,
  createMiddleware,
  type HITLRequest,
  type HITLResponse,
  humanInTheLoopMiddleware,
  tool,
  ToolMessage,
} from "langchain";
import { askHuman, autoModeMiddleware } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

type Decision = HITLResponse["decisions"][number];
type Action = HITLRequest["actionRequests"][number];
/** A person, or the user interface in front of one: sees one proposed call and decides. */
export type Person = (action: Action, allowed: readonly string[]) => Decision | Promise<Decision>;

interface Asked {
  __interrupt__?: readonly { id?: string; value?: unknown }[];
}

/**
 * Runs an agent to its end and lets a person answer whatever it asks on the way. Answers go by the id of
 * their question: subagents that run side by side may ask at the same time.
 */
export async function runWithPerson<Result extends object>(
  invoke: (input: { messages: { role: "user"; content: string }[] } | Command) => Promise<Result>,
  request: string,
  person: Person,
): Promise<Result> {
  let result: Result & Asked = await invoke({ messages: [{ role: "user", content: request }] });
  while (result.__interrupt__?.length) {
    const answers: Record<string, HITLResponse> = {};
    for (const { id, value } of result.__interrupt__) {
      const { actionRequests, reviewConfigs } = value as HITLRequest;
      const decisions: Decision[] = [];
      for (const [index, action] of actionRequests.entries())
        decisions.push(await person(action, reviewConfigs[index]?.allowedDecisions ?? []));
      answers[id ?? ""] = { decisions };
    }
    result = await invoke(new Command({ resume: answers }));
  }
  return result;
}

/**
 * When a person rejects one call of a step, LangChain's middleware goes on to the model at once, and the
 * other calls of the step are left without an answer, which providers refuse. This answers them.
 */
export const answerSkippedCalls = createMiddleware({
  name: "answerSkippedCalls",
  wrapModelCall: (request, handler) => handler({ ...request, messages: withAnswers(request.messages) }),
});

function withAnswers(messages: readonly BaseMessage[]): BaseMessage[] {
  const answered = new Set(
    messages.filter((message) => ToolMessage.isInstance(message)).map((message) => message.tool_call_id),
  );
  return messages.flatMap((message) => {
    const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
    const skipped = calls.flatMap(({ id, name }) => (id && !answered.has(id) ? [{ id, name }] : []));
    const content = "This call did not run: its step ended before its turn.";
    return [
      message,
      ...skipped.map(({ id, name }) => new ToolMessage({ content, name, tool_call_id: id, status: "error" })),
    ];
  });
}

/** The agent of this recipe. `done` collects what its tools really did. */
export function createReleaseAgent(model: ReturnType<typeof fakeModel>, order: Order, done: string[]) {
  const schema = z.object({ path: z.string() });
  const act = (name: string, description: string) =>
    tool(
      ({ path }) => {
        done.push(`${name} ${path}`);
        return "done";
      },
      { name, description, schema },
    );
  const readFile = act("read_file", "Reads a file.");
  const publish = act("publish", "Publishes a release to everybody.");
  const deleteFile = act("delete_file", "Deletes a file or a folder for good.");

  // A person decides about every single call.
  const always = humanInTheLoopMiddleware({
    interruptOn: { publish: { allowedDecisions: ["approve", "reject"] } },
    descriptionPrefix: "Every release needs approval",
  });
  // The decision model decides; a person only if it keeps saying no.
  const autoMode = autoModeMiddleware({
    tools: [deleteFile],
    criteria: { true: "It deletes something that cannot be made again.", false: "It deletes build output." },
    // Stands in for a real decision model.
    classifier: fakeDecisionModel().forTool("delete_file", ({ args: { path } }) =>
      typeof path === "string" && path.startsWith("/build/") ? 0.1 : 0.9,
    ),
    limits: { consecutiveBlocks: 2 },
    whenLimitReached: askHuman({ description: "Auto mode would block this call" }),
  });
  const asking = order === "auto mode last" ? [always, autoMode] : [autoMode, always];
  const middleware: AgentMiddleware[] = [...asking, answerSkippedCalls];
  return createAgent({
    model,
    tools: [readFile, publish, deleteFile],
    middleware,
    // Whoever asks a person needs one: the run pauses and may go on in another process.
    checkpointer: new MemorySaver(),
  });
}
export type Order = "auto mode first" | "auto mode last";

/** What the model of this recipe tries, step by step. */
const SCRIPT: readonly (readonly [name: string, path: string])[][] = [
  [["publish", "v1.2"]],
  [["delete_file", "/build/cache"]],
  [["delete_file", "/data/customers"]],
  [["delete_file", "/data/customers"]],
  [["delete_file", "/data/old"]],
  [
    ["publish", "v1.3"],
    ["read_file", "/notes"],
  ],
];

function scriptedModel() {
  const model = fakeModel();
  for (const [step, calls] of SCRIPT.entries()) {
    const tool_calls = calls.map(([name, path], index) => ({ id: `${step}-${index}`, name, args: { path } }));
    model.respond(new AIMessage({ content: "", tool_calls }));
  }
  return model.respond(new AIMessage("Released. The customers' data is where it was."));
}

async function play(order: Order) {
  const done: string[] = [];
  const questions: string[] = [];
  const model = scriptedModel();
  const agent = createReleaseAgent(model, order, done);
  const config = { configurable: { thread_id: order } };
  const person: Person = (action) => {
    const { path } = action.args;
    const kind = action.description?.split("\n")[0];
    const [answer, decision] = decide(action.name, String(path));
    questions.push(`${kind}: ${action.name} ${String(path)} -> ${answer}`);
    return decision;
  };
  const result = await runWithPerson((input) => agent.invoke(input, config), "Release v1.2.", person);
  return { done, questions, model, messages: result.messages };
}

function decide(name: string, path: string): [string, Decision] {
  if (path === "v1.3") return ["reject", { type: "reject", message: "One release a day." }];
  if (name === "publish") return ["approve", { type: "approve" }];
  if (path === "/data/customers")
    return ["reject", { type: "reject", message: "Never touch /data/customers." }];
  return ["edit", { type: "edit", editedAction: { name, args: { path: `${path}/tmp` } } }];
}

/** Plays the same script in both orders and checks what happened. */
export async function main(print: (line: string) => void = console.log): Promise<void> {
  for (const order of ["auto mode last", "auto mode first"] as const) {
    const { done, questions, model, messages } = await play(order);
    print(`${order}: the person was asked`);
    for (const question of questions) print(`  ${question}`);
    print(`  and these calls ran: ${done.join(", ")}`);

    assert.deepEqual(questions, [
      "Every release needs approval: publish v1.2 -> approve",
      "Auto mode would block this call: delete_file /data/customers -> reject",
      "Auto mode would block this call: delete_file /data/old -> edit",
      "Every release needs approval: publish v1.3 -> reject",
    ]);
    // The first deletion of /data/customers was blocked without a question: the limit was not reached.
    assert.deepEqual(done, ["publish v1.2", "delete_file /build/cache", "delete_file /data/old/tmp"]);
    assert.equal(messages.at(-1)?.text, "Released. The customers' data is where it was.");
    // Each request to the model held one answer for each call.
    for (const { messages: sent } of model.calls) {
      const calls = sent.flatMap((message) =>
        AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [],
      );
      const answers = sent.filter((message) => ToolMessage.isInstance(message));
      assert.equal(answers.length, calls.length);
      assert.deepEqual(
        new Set(answers.map((answer) => answer.tool_call_id)),
        new Set(calls.map(({ id }) => id)),
      );
    }
  }
  print("Both orders did the same.");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

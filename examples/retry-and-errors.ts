// What a tool throws, and what becomes of it: alone, with auto mode, and with LangChain's toolRetryMiddleware
// and toolErrorMiddleware on either side of it.
//
// Run it: npm run build && npx tsx examples/retry-and-errors.ts
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { fakeModel } from "@langchain/core/testing";
import {
  type AgentMiddleware,
  AIMessage,
  createAgent,
  tool,
  toolErrorMiddleware,
  ToolMessage,
  toolRetryMiddleware,
} from "langchain";
import { autoModeMiddleware, ClassificationError, type DecisionRecord } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

/** What the tool of this recipe throws. */
export class BusyError extends Error {
  override readonly name = "BusyError";
}

/** Turns what this tool is known to throw into an answer; anything else still ends the run. */
export const answerBusy = () =>
  toolErrorMiddleware({
    // The kind of error, not its message: that may hold what the agent should not read.
    onError: (error, { toolCall }) =>
      error instanceof BusyError ? `${toolCall.name} failed: the server is busy.` : undefined,
  });

/** Tries again, twice. `onFailure: "error"` leaves the last error to the middleware around it. */
export const tryAgain = () =>
  toolRetryMiddleware({
    maxRetries: 2,
    retryOn: [BusyError],
    onFailure: "error",
    initialDelayMs: 1,
    backoffFactor: 0,
    jitter: false,
  });

export interface Scenario {
  /** How often the tool throws before it works. */
  failures?: number;
  /** The risk of each call that the model makes, one for each step; a failure of the classifier for none. */
  risks?: readonly number[];
  middleware: (autoMode: AgentMiddleware) => AgentMiddleware[];
}

/** What was observed of a run. */
export interface Observed {
  toolRan: number;
  classifierAsked: number;
  decisions: DecisionRecord[];
  answers: string[];
  /** What `invoke` rejected with. */
  error: unknown;
}

/** Runs an agent with one tool that sends mail through a server that may be busy. */
export async function observe({ failures = 0, risks = [0.1], middleware }: Scenario): Promise<Observed> {
  let toolRan = 0;
  const sendMail = tool(
    () => {
      toolRan += 1;
      if (toolRan <= failures) throw new BusyError("queue 3 of 10.0.0.7 is full");
      return "sent";
    },
    { name: "send_mail", description: "Sends a mail.", schema: z.object({ to: z.string() }) },
  );
  const model = fakeModel();
  const classifier = fakeDecisionModel();
  for (const [index, risk] of (risks.length > 0 ? risks : [undefined]).entries()) {
    const call = { id: `call-${index}`, name: "send_mail", args: { to: `user${index}@example.com` } };
    model.respond(new AIMessage({ content: "", tool_calls: [call] }));
    if (risk === undefined) classifier.fail("timeout");
    else classifier.respond(risk);
  }
  model.respond(new AIMessage("That is all."));
  const decisions: DecisionRecord[] = [];
  const autoMode = autoModeMiddleware({
    tools: [sendMail],
    classifier,
    feedback: "blocked: {reason}",
    onDecision: (record) => {
      decisions.push(record);
    },
  });
  const agent = createAgent({ model, tools: [sendMail], middleware: middleware(autoMode) });
  const observed = { decisions, answers: [] as string[], error: undefined as unknown };
  try {
    const { messages } = await agent.invoke({ messages: [{ role: "user", content: "Write to my users." }] });
    observed.answers = messages.filter((message) => ToolMessage.isInstance(message)).map(({ text }) => text);
  } catch (error) {
    observed.error = error;
  }
  return { ...observed, toolRan, classifierAsked: classifier.callCount };
}

/** Plays all scenarios and checks what each does. */
export async function main(print: (line: string) => void = console.log): Promise<void> {
  const show = async (title: string, scenario: Scenario): Promise<Observed> => {
    const seen = await observe(scenario);
    const end = seen.error instanceof Error ? [`the run ended with ${seen.error.name}`] : seen.answers;
    print(`  ${title}: the tool ran ${seen.toolRan}x, the classifier was asked ${seen.classifierAsked}x`);
    for (const line of end) print(`    ${line.split("\n")[0]}`);
    return seen;
  };

  print("The tool throws:");
  const alone = await show("no middleware", { failures: 9, middleware: () => [] });
  assert.match(alone.answers[0] ?? "", /BusyError.*Please fix your mistakes/s);
  const fatal = await show("[autoMode]", { failures: 9, middleware: (autoMode) => [autoMode] });
  assert.ok(fatal.error instanceof BusyError);

  print("toolErrorMiddleware is the remedy, in both orders:");
  for (const [title, middleware] of ERROR_ORDERS) {
    const seen = await show(title, { failures: 9, middleware });
    assert.deepEqual(seen.answers, ["send_mail failed: the server is busy."]);
  }

  print("Blocked, allowed but busy, blocked, blocked; the third block in a row would halt the run:");
  const risks = [0.9, 0.1, 0.9, 0.9];
  for (const [title, middleware] of ERROR_ORDERS) {
    const seen = await show(title, { failures: 1, risks, middleware });
    // Inside, the error is an answer by the time the guard sees it, and the call counts as allowed.
    const inARow = seen.decisions.at(-1)?.counters.consecutiveBlocks;
    print(`    blocks in a row at the end: ${inARow}`);
    assert.equal(inARow, title.startsWith("[autoMode") ? 2 : 3);
  }

  print("The tool is busy twice, then works:");
  for (const [title, middleware] of RETRY_ORDERS) {
    const seen = await show(title, { failures: 2, middleware });
    assert.deepEqual([seen.toolRan, seen.classifierAsked, seen.answers], [3, 1, ["sent"]]);
    assert.equal(seen.decisions.length, 1);
  }

  print("A blocked call is not tried again:");
  for (const [title, middleware] of RETRY_ORDERS) {
    const seen = await show(title, { risks: [0.9], middleware });
    assert.deepEqual([seen.toolRan, seen.classifierAsked, seen.decisions.length], [0, 1, 1]);
  }

  print("Nor is a call that got no verdict, and no middleware hides that:");
  for (const [title, middleware] of RETRY_ORDERS) {
    const seen = await show(title, { risks: [], middleware });
    assert.deepEqual([seen.toolRan, seen.classifierAsked], [0, 1]);
    assert.ok(ClassificationError.isInstance(seen.error));
  }
}

type Orders = readonly (readonly [title: string, middleware: Scenario["middleware"]])[];

const ERROR_ORDERS: Orders = [
  ["[toolError, autoMode]", (autoMode) => [answerBusy(), autoMode]],
  ["[autoMode, toolError]", (autoMode) => [autoMode, answerBusy()]],
];
const RETRY_ORDERS: Orders = [
  ["[toolError, toolRetry, autoMode]", (autoMode) => [answerBusy(), tryAgain(), autoMode]],
  ["[toolError, autoMode, toolRetry]", (autoMode) => [answerBusy(), autoMode, tryAgain()]],
];

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

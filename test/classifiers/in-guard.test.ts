import { ChatAnthropic } from "@langchain/anthropic";
import type { BaseDecisionModel } from "@langchain/core/decisions";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { tool } from "@langchain/core/tools";
import { BaseTracer, type Run } from "@langchain/core/tracers/base";
import { createAgent } from "langchain";
import {
  autoModeMiddleware,
  type AutoModeOptions,
  ClassificationError,
  type DecisionRecord,
} from "langchain-auto-mode";
import {
  CascadeDecisionModel,
  ChatDecisionModel,
  OpenAIDecisionModel,
  ProvenanceDecisionModel,
  SystemOneDecisionModel,
} from "langchain-auto-mode/classifiers";
import { http, HttpResponse } from "msw";
import { setupServer } from "msw/node";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { loopback } from "./loopback.js";
import { printsOf } from "./prints.js";

const KEY = "key-0123456789-abcdef";
const server = setupServer();
beforeAll(() => server.listen({ onUnhandledRequest: "error" }));
afterEach(() => server.resetHandlers());
afterAll(() => server.close());

/** An agent that is asked to clean up and tries to delete a file, and what came of it. */
async function runAgent(classifier: BaseDecisionModel, options: Partial<AutoModeOptions> = {}) {
  const deleted = vi.fn<() => string>(() => "deleted");
  const deleteFile = tool(deleted, {
    name: "delete_file",
    description: "Deletes a file.",
    schema: z.object({ path: z.string() }),
  });
  const records: DecisionRecord[] = [];
  const tracer = new Traces();
  const agent = createAgent({
    model: fakeModel()
      .respondWithTools([{ name: "delete_file", args: { path: "build/a.o" }, id: "1" }])
      .respond(new AIMessage("Done.")),
    tools: [deleteFile],
    middleware: [
      autoModeMiddleware({
        tools: [deleteFile],
        classifier,
        onUnavailable: "continue",
        onDecision: (record) => void records.push(record),
        ...options,
      }),
    ],
  });
  const ended: { messages: BaseMessage[] } | Error = await agent
    .invoke({ messages: [new HumanMessage("Clean up the build folder.")] }, { callbacks: [tracer] })
    .catch((error: unknown) => error as Error);
  return { ended, records, deleted, traces: tracer.traces };
}

/** Everything a tracer is told, as a tracing service would store it. */
class Traces extends BaseTracer {
  name = "traces";
  override awaitHandlers = true;
  readonly traces: Run[] = [];
  protected override async persistRun(run: Run): Promise<void> {
    this.traces.push(run);
  }
}

const chat = () =>
  new ChatDecisionModel({ model: new ChatAnthropic({ model: "claude-haiku-4-5", apiKey: KEY }) });
const classifiers: [string, string, () => BaseDecisionModel][] = [
  ["ChatDecisionModel", "https://api.anthropic.com/v1/messages", chat],
  [
    "OpenAIDecisionModel",
    "https://api.openai.com/v1/decisions",
    () => new OpenAIDecisionModel({ apiKey: KEY }),
  ],
  [
    "SystemOneDecisionModel",
    "https://api.typesafe.ai/v1/systemone",
    () => new SystemOneDecisionModel({ apiKey: KEY }),
  ],
];

describe.each(classifiers)("a guard with %s", (_, url, make) => {
  const echo = () =>
    server.use(
      http.post(url, ({ request }) =>
        HttpResponse.json(
          { error: { type: "authentication_error", message: "Bad credentials" } },
          { status: 401, headers: { "x-echo": JSON.stringify(Object.fromEntries(request.headers)) } },
        ),
      ),
    );

  test("401 with echoed headers: the tool does not run, and the key is in no message, record or trace", async () => {
    echo();
    const { ended, records, deleted, traces } = await runAgent(make());
    expect(deleted).not.toHaveBeenCalled();
    expect(records).toMatchObject([{ outcome: "unavailable", unavailableReason: "error" }]);
    const [, , result] = (ended as { messages: BaseMessage[] }).messages;
    expect(result!.text).toContain("was not evaluated");
    expect(result!.text).not.toContain("401");
    expect(traces.length).toBeGreaterThan(0);
    for (const shown of [ended, records, traces]) expect(printsOf(shown)).not.toContain(KEY);
  });

  test("401 with echoed headers: what is thrown says so, keeps the status, and shows no key", async () => {
    echo();
    const { ended } = await runAgent(make(), { onUnavailable: "throw" });
    expect(ClassificationError.find(ended)).toMatchObject({ reason: "error", status: 401 });
    expect(printsOf(ended)).not.toContain(KEY);
  });
});

test("a judge that refuses in words: the call is unavailable and the run goes on", async () => {
  const refusing = new ChatDecisionModel({
    model: fakeModel().respond(new AIMessage("I'm sorry, I can't help with that.")),
  });
  const { ended, records, deleted } = await runAgent(refusing);
  expect(deleted).not.toHaveBeenCalled();
  expect(records).toMatchObject([{ outcome: "unavailable", unavailableReason: "refused" }]);
  expect((ended as { messages: BaseMessage[] }).messages.at(-1)!.text).toBe("Done.");
});

test("a chat judge's explanation is the reason in the feedback", async () => {
  const judge = new ChatDecisionModel({
    model: fakeModel().respond(
      new AIMessage('{"explanation":"Nobody asked for $& or {reason}","call_1":0.9}'),
    ),
  });
  const { ended, records } = await runAgent(judge);
  expect(records).toMatchObject([{ outcome: "blocked", risk: 0.9 }]);
  expect((ended as { messages: BaseMessage[] }).messages[2]!.text).toContain(
    "Nobody asked for $& or {reason}.",
  );
});

test("a judge whose body stalls is unavailable when the guard's time is over", async () => {
  server.close();
  const stalled = await loopback((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.write('{"answers":');
  });
  for (const judge of [
    new OpenAIDecisionModel({ apiKey: KEY, baseURL: `${stalled.url}/v1` }),
    new SystemOneDecisionModel({ apiKey: KEY, baseURL: stalled.url }),
    new ChatDecisionModel({
      model: new ChatAnthropic({ model: "claude-haiku-4-5", apiKey: KEY, anthropicApiUrl: stalled.url }),
    }),
  ]) {
    const { records, deleted } = await runAgent(judge, { timeoutMs: 100 });
    expect(deleted).not.toHaveBeenCalled();
    expect(records).toMatchObject([{ outcome: "unavailable", unavailableReason: "timeout" }]);
  }
  await stalled.close();
  server.listen({ onUnhandledRequest: "error" });
});

test("the record names who of a cascade decided", async () => {
  const second = new ChatDecisionModel({
    model: Object.assign(fakeModel().respond(new AIMessage('{"explanation":"a","call_1":0.2}')), {
      model: "good",
    }),
  });
  const cascade = new CascadeDecisionModel({
    first: new ProvenanceDecisionModel(),
    second,
    escalate: [0, 1],
  });
  const { records, deleted } = await runAgent(cascade);
  expect(deleted).toHaveBeenCalledOnce();
  expect(records).toMatchObject([{ outcome: "allowed", risk: 0.2, classifier: "good" }]);
});

// Decisions as OpenTelemetry metrics and span events. Only the API package is used: without an SDK it does nothing.
//
// Run it: npm run build && npx tsx examples/opentelemetry.ts
import { fileURLToPath } from "node:url";
import { type Attributes, type Meter, metrics, trace } from "@opentelemetry/api";
import { fakeModel } from "@langchain/core/testing";
import { AIMessage, createAgent, tool } from "langchain";
import { type AutoModeOptions, autoModeMiddleware, type DecisionRecord } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { z } from "zod";

/** The instruments, by the names that a backend sees. */
export const INSTRUMENTS = {
  decisions: "auto_mode.decisions",
  unavailable: "auto_mode.unavailable",
  duration: "auto_mode.classifier.duration",
} as const;

/**
 * A listener for `onDecision` that counts decisions by outcome and calls without a verdict by reason, measures the
 * classifier's requests, and adds an event to the span that is active. Records hold no content, and neither do these.
 */
export function recordTelemetry(
  meter: Meter = metrics.getMeter("langchain-auto-mode"),
): NonNullable<AutoModeOptions["onDecision"]> {
  const decisions = meter.createCounter(INSTRUMENTS.decisions, {
    description: "Decisions about guarded tool calls.",
  });
  const unavailable = meter.createCounter(INSTRUMENTS.unavailable, {
    description: "Guarded tool calls that got no verdict.",
  });
  const duration = meter.createHistogram(INSTRUMENTS.duration, {
    description: "Duration of one request to the classifier.",
    unit: "s",
    advice: { explicitBucketBoundaries: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] },
  });
  // All records of a step tell the duration of its one request, one after the other.
  let lastRequest = "";

  return (record) => {
    const { label, outcome, by, mode, toolName, classifier, latencyMs, messageId } = record;
    decisions.add(1, { label, outcome, by, mode, "gen_ai.tool.name": toolName });
    if (record.unavailableReason !== undefined)
      unavailable.add(1, { label, reason: record.unavailableReason, classifier });
    const request = `${messageId} ${latencyMs}`;
    if (latencyMs > 0 && request !== lastRequest) duration.record(latencyMs / 1000, { label, classifier });
    lastRequest = request;
    trace.getActiveSpan()?.addEvent("auto_mode.decision", eventOf(record));
  };
}

/** What an event says in addition to the counts: which call it was, and how close it came. */
function eventOf(record: DecisionRecord): Attributes {
  const { id, label, outcome, by, toolName, toolCallId, argsDigest, risk, threshold } = record;
  return {
    "auto_mode.decision.id": id,
    "auto_mode.label": label,
    "auto_mode.outcome": outcome,
    "auto_mode.by": by,
    "auto_mode.threshold": threshold,
    "auto_mode.args_digest": argsDigest,
    "gen_ai.tool.name": toolName,
    "gen_ai.tool.call.id": toolCallId,
    ...(risk === undefined ? {} : { "auto_mode.risk": risk }),
    ...(record.unavailableReason === undefined
      ? {}
      : { "auto_mode.unavailable_reason": record.unavailableReason }),
  };
}

const call = (id: string, path: string) => ({ id, name: "delete_file", args: { path } });

/** An agent that deletes three files in two steps: one call is allowed, one blocked, and one gets no verdict. */
export async function main(onDecision = recordTelemetry(), print: (line: string) => void = console.log) {
  const deleteFile = tool(({ path }) => `deleted ${path}`, {
    name: "delete_file",
    description: "Deletes a file.",
    schema: z.object({ path: z.string() }),
  });
  const autoMode = autoModeMiddleware({
    tools: [deleteFile],
    classifier: fakeDecisionModel()
      .respondWith(({ args }) => (args["path"] === "build/a.o" ? 0.1 : 0.9))
      .fail("timeout"),
    onUnavailable: "continue",
    onDecision: async (record, details) => {
      print(`${record.toolName}: ${record.outcome}`);
      await onDecision(record, details);
    },
  });
  const model = fakeModel()
    .respond(
      new AIMessage({ content: "", tool_calls: [call("a", "build/a.o"), call("b", "data/customers.db")] }),
    )
    .respond(new AIMessage({ content: "", tool_calls: [call("c", "build/b.o")] }))
    .respond(new AIMessage("That is all."));
  const agent = createAgent({ model, tools: [deleteFile], middleware: [autoMode] });
  await agent.invoke({ messages: [{ role: "user", content: "Clean up the build folder." }] });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

import { readFileSync } from "node:fs";
import { trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { INSTRUMENTS, main, recordTelemetry } from "../../examples/opentelemetry.js";

const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
const meters = new MeterProvider({ readers: [reader] });
const spans = new InMemorySpanExporter();
const tracers = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] });

beforeAll(async () => {
  tracers.register();
  await trace.getTracer("test").startActiveSpan("agent run", async (span) => {
    await main(recordTelemetry(meters.getMeter("test")), () => undefined);
    span.end();
  });
  await meters.forceFlush();
});
afterAll(async () => {
  await meters.shutdown();
  await tracers.shutdown();
  trace.disable();
});

/** What an instrument counted: the attributes in question, and the number. */
function counts(name: string, attribute: string) {
  const metric = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
    .find(({ descriptor }) => descriptor.name === name);
  if (metric === undefined) throw new Error(`There is no metric ${name}.`);
  return metric.dataPoints.map(({ attributes, value }) => [
    attributes[attribute],
    metric.dataPointType === DataPointType.HISTOGRAM ? (value as { count: number }).count : value,
  ]);
}

describe("the recipe for OpenTelemetry", () => {
  test("counts decisions by outcome, and calls without a verdict by reason", () => {
    expect(counts(INSTRUMENTS.decisions, "outcome")).toEqual([
      ["allowed", 1],
      ["blocked", 1],
      ["unavailable", 1],
    ]);
    expect(counts(INSTRUMENTS.unavailable, "reason")).toEqual([["timeout", 1]]);
  });

  test("measures each request once, although every record of its step says its duration", () => {
    expect(counts(INSTRUMENTS.duration, "label")).toEqual([["autoMode", 2]]);
  });

  test("adds an event for each decision to the active span, without content", () => {
    const [run] = spans.getFinishedSpans();
    const events = run?.events.map(({ name, attributes }) => [
      name,
      attributes?.["gen_ai.tool.call.id"],
      attributes?.["auto_mode.outcome"],
      attributes?.["auto_mode.risk"],
    ]);
    expect(events?.toSorted((a, b) => String(a[1]).localeCompare(String(b[1])))).toEqual([
      ["auto_mode.decision", "a", "allowed", 0.1],
      ["auto_mode.decision", "b", "blocked", 0.9],
      ["auto_mode.decision", "c", "unavailable", undefined],
    ]);
    expect(JSON.stringify(run?.events)).not.toMatch(/customers\.db|build/);
  });

  test("the dashboard asks for metrics and labels that the recipe exports, as Prometheus spells them", () => {
    const dashboard = readFileSync(
      new URL("../../examples/opentelemetry-dashboard.json", import.meta.url),
      "utf8",
    );
    const { panels } = JSON.parse(dashboard) as { panels: { targets: { expr: string }[] }[] };
    const asked = panels.flatMap(({ targets }) =>
      targets.flatMap(({ expr }) => expr.match(/auto_mode_\w+/g) ?? []),
    );
    expect(new Set(asked)).toEqual(
      new Set([
        `${INSTRUMENTS.decisions.replaceAll(".", "_")}_total`,
        `${INSTRUMENTS.unavailable.replaceAll(".", "_")}_total`,
        `${INSTRUMENTS.duration.replaceAll(".", "_")}_seconds_bucket`,
      ]),
    );
    const labels = panels.flatMap(({ targets }) =>
      targets.flatMap(({ expr }) => [...expr.matchAll(/by \((\w+)\)/g)]),
    );
    expect(new Set(labels.map(([, label]) => label))).toEqual(
      new Set(["outcome", "gen_ai_tool_name", "le", "reason"]),
    );
  });
});

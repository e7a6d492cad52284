import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { main } from "./judge.js";
import { CASES, makeFolder, toLines } from "../evaluation/synthetic-cases.js";

const folder = makeFolder();
const cases = folder.write("cases.jsonl", toLines(CASES));
afterAll(() => folder.remove());

// A classifier as a user would write it in a file: it counts its requests, and blocks one address.
const counting = (name: string) =>
  folder.write(
    name,
    `globalThis.${name.replace(/\W.*/, "")} = { asked: [], open: 0, most: 0, fail: false };
     const log = globalThis.${name.replace(/\W.*/, "")};
     export default {
       model: "counting",
       view: { channels: ["user"] },
       async invoke({ state }) {
         log.asked.push(state);
         log.open += 1;
         log.most = Math.max(log.most, log.open);
         await new Promise((resolve) => setImmediate(resolve));
         log.open -= 1;
         if (log.fail) throw new Error("no answer today");
         const noul = JSON.stringify(state.tool_calls).includes("evil") ? 0.75 : 0.25;
         return { model: "counting", answers: { call_1: { type: "noul", noul } }, usage_metadata: { input_tokens: 10, output_tokens: 2, total_tokens: 12 } };
       },
     };`,
  );
interface Log {
  asked: { transcript: { from: string }[] }[];
  most: number;
  fail: boolean;
}
const logOf = (name: string): Log => (globalThis as unknown as Record<string, Log>)[name] as Log;

let printed = "";
beforeEach(() => {
  printed = "";
});
const run = (...args: string[]) => main(["--out", folder.path, ...args], (text) => (printed += `${text}\n`));

describe("judging cases", () => {
  test("the offline model through the guard's view and question: figures, report and no answers kept", async () => {
    const report = await run("--cases", cases, "--classifier", "provenance");
    const row = printed
      .split("\n")
      .find((line) => line.startsWith("| made-up  ") || line.startsWith("| made-up "));
    expect(
      row
        ?.split("|")
        .slice(2, 6)
        .map((cell) => cell.trim()),
    ).toEqual(["12", "6", "0", "1.000"]);
    expect(printed).toMatch(/made-up \/ indirect-injection/);
    const html = readFileSync(report ?? "", "utf8");
    expect(html.match(/<svg viewBox/g)).toHaveLength(3);
    expect(
      readdirSync(folder.path).filter((name) => name.startsWith("judge-") && name.endsWith(".jsonl")),
    ).toEqual([]);
  });

  test("a classifier from a file: its own view, figures, tokens, and at most so many requests at once", async () => {
    const file = counting("plain.mjs");
    await run("--cases", cases, "--classifier", file, "--concurrency", "3");
    const log = logOf("plain");
    expect(log.asked).toHaveLength(12);
    expect(log.most).toBe(3);
    expect(new Set(log.asked.flatMap(({ transcript }) => transcript.map(({ from }) => from)))).toEqual(
      new Set(["user"]),
    );
    expect(printed).toMatch(/\| +120 \| +24 \|/);
    expect(printed).toMatch(/\| all .*0\.5000 \| +0\.0 % \| +0\.0 % \|/);
  });

  test("a run that was stopped goes on: only what has no answer is asked, also after a line that was cut off", async () => {
    const file = counting("resumed.mjs");
    await run("--cases", cases, "--classifier", file, "--limit", "5");
    const log = logOf("resumed");
    expect(log.asked).toHaveLength(5);
    const kept = readdirSync(folder.path).filter((name) => /^judge-.*\.jsonl$/.test(name));
    for (const name of kept) appendFileSync(join(folder.path, name), '{"key":"cut o');
    await run("--cases", cases, "--classifier", file);
    expect(log.asked).toHaveLength(12);
    await run("--cases", cases, "--classifier", file);
    expect(log.asked).toHaveLength(12);
    await run("--cases", cases, "--classifier", file, "--view", '{"channels":["toolCalls"]}');
    expect(log.asked).toHaveLength(24);
    await run("--cases", cases, "--classifier", file, "--fresh");
    expect(log.asked).toHaveLength(36);
  });

  test("a case without an answer is counted apart and asked again", async () => {
    const file = counting("failing.mjs");
    await run("--cases", cases, "--classifier", file, "--limit", "1");
    const log = logOf("failing");
    log.fail = true;
    await run("--cases", cases, "--classifier", file);
    expect(printed).toMatch(/\| all +\| +12 \| +6 \| +11 \|/);
    log.fail = false;
    await run("--cases", cases, "--classifier", file);
    expect(log.asked).toHaveLength(1 + 11 + 11);
  });

  test("the worst mistakes stand in the report as escaped text", async () => {
    const wrong = CASES.map((one) => ({
      ...one,
      source: "<script>alert(1)</script>",
      label: one.label === "risky" ? "benign" : "risky",
    }));
    const report = await run("--cases", folder.write("wrong.jsonl", toLines(wrong)));
    const html = readFileSync(report ?? "", "utf8");
    expect(html.match(/<pre>/g)).toHaveLength(10);
    expect(html).toContain("&lt;tool_result name=&quot;read_page&quot;&gt;&amp;lt;b&amp;gt;Not much.");
    expect(html).toContain("thief1@evil.example");
    expect(html).not.toMatch(/<script|<b>/);
    expect(html).toContain("default-src &#39;none&#39;".replaceAll("&#39;", "'"));
    expect(html).not.toMatch(/(?:src|href)=/);
  });

  test("splits and sources can be chosen", async () => {
    await run("--cases", cases, "--split", "train", "--source", "made-up,other");
    expect(printed).toMatch(/provenance on 6 cases/);
  });
});

const record = (nth: number, label: unknown, risk?: number) => ({
  id: `record-${nth}`,
  toolName: "delete_file",
  outcome: "allowed",
  by: risk === undefined ? "precheck" : "classifier",
  label,
  latencyMs: 20,
  ...(risk === undefined ? {} : { risk }),
});

describe("a decision log", () => {
  test("the recorded risks are scored, whatever the labels are called; records without one are left out", async () => {
    const log = [
      record(1, true, 0.9),
      record(2, "risky", 0.8),
      record(3, 1, 0.3),
      record(4, false, 0.4),
      record(5, "benign", 0.2),
      record(6, 0),
    ];
    const report = await run("--cases", folder.write("log.jsonl", toLines(log)));
    expect(printed).toContain("1 records without a risk are left out.");
    // Five of the six pairs are in the right order.
    expect(printed).toMatch(/\| decision log \/ delete_file \| +5 \| +3 \| +0 \| +0\.833 \|/);
    expect(readFileSync(report ?? "", "utf8")).toContain("The log holds no conversation.");
  });

  test("a record that still carries the middleware's name as its label is an error that says what belongs there", async () => {
    const file = folder.write(
      "unlabelled.jsonl",
      toLines([record(1, true, 0.9), record(2, "autoMode", 0.1)]),
    );
    await expect(run("--cases", file)).rejects.toThrow(/^Line 2 .*label.*risky or benign/);
  });
});

describe("the command line", () => {
  test("without cases it says how it is used", async () => {
    expect(await run()).toBeUndefined();
    expect(printed).toMatch(/Usage/);
  });

  test.each<[string, string[], RegExp]>([
    ["an unknown classifier", ["--classifier", "nobody:knows"], /--classifier is none of: provenance, chat:/],
    ["a number out of range", ["--threshold", "1.5"], /--threshold has to be a number from 0 to 1/],
    ["a wrong field of the view", ["--view", '{"chanels":[]}'], /chanels/],
    [
      "a module without a classifier",
      ["--classifier", folder.write("empty.mjs", "export default 1;")],
      /default-exports no classifier/,
    ],
  ])("%s is an error", async (_, args, message) => {
    await expect(run("--cases", cases, ...args)).rejects.toThrow(message);
  });
});

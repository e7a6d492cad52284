import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ConfigurationError, type DecisionDetails, type DecisionRecord } from "langchain-auto-mode";
import { caseLog } from "langchain-auto-mode/evaluation";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { makeFolder } from "./synthetic-cases.js";

const folder = makeFolder();
afterAll(() => folder.remove());
afterEach(() => void vi.restoreAllMocks());

let made = 0;
const newFile = () => join(folder.path, `log-${(made += 1)}.jsonl`);
const lines = (file: string) =>
  readFileSync(file, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);

const record = (id: string, outcome: DecisionRecord["outcome"] = "blocked"): DecisionRecord => ({
  id,
  at: "2026-01-01T00:00:00.000Z",
  label: "autoMode",
  mode: "enforce",
  messageId: "message",
  toolCallId: "call",
  toolName: "send_mail",
  argsDigest: "digest",
  outcome,
  by: "classifier",
  risk: 0.75,
  threshold: 0.5,
  classifier: "judge",
  latencyMs: 3,
  counters: { consecutiveBlocks: 1, totalBlocks: 1, consecutiveUnavailable: 0 },
});
const details: DecisionDetails = {
  call: { name: "send_mail", args: { to: "ann@secret.example", deep: [{ "key of secret": 1 }] } },
  tool: { description: "Sends a secret mail." },
  transcript: [
    { from: "user", text: "Tell ann the secret" },
    { from: "tool_call", name: "find_secret", args: { of: "secret" } },
    { from: "omitted", count: 2 },
  ],
  environment: { cwd: "/srv/secret" },
};

describe("a case log", () => {
  test("writes one line for each decision: call, tool, transcript, environment and record, the label empty", async () => {
    const file = newFile();
    await caseLog(file)(record("one"), details);
    expect(lines(file)).toEqual([
      {
        id: "one",
        at: "2026-01-01T00:00:00.000Z",
        label: null,
        call: details.call,
        tool: details.tool,
        transcript: details.transcript,
        environment: details.environment,
        record: record("one"),
      },
    ]);
  });

  test("makes a file that only its owner may read, and leaves the rights of one that is there", async () => {
    const file = newFile();
    caseLog(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    chmodSync(file, 0o640);
    await caseLog(file)(record("one"), details);
    expect(statSync(file).mode & 0o777).toBe(0o640);
  });

  test("keeps the order of its lines, whatever their length, and flush waits for all of them", async () => {
    const file = newFile();
    const log = caseLog(file);
    for (let nth = 0; nth < 50; nth++) {
      const text = "x".repeat(nth % 2 === 0 ? 200_000 : 1);
      void log(record(String(nth)), { ...details, transcript: [{ from: "user", text }] });
    }
    await log.flush();
    expect(lines(file).map(({ id }) => Number(id))).toEqual(Array.from({ length: 50 }, (_, nth) => nth));
  });

  test("what is written is what was there when the decision was made", async () => {
    const file = newFile();
    const args = { to: "ann" };
    const written = caseLog(file)(record("one"), { ...details, call: { name: "send_mail", args } });
    args.to = "eve";
    await written;
    expect(lines(file)[0]).toMatchObject({ call: { args: { to: "ann" } } });
  });

  test(
    "several processes can share a file: every line is whole, long ones too",
    { timeout: 60_000 },
    async () => {
      const file = newFile();
      const program = `
      import { caseLog } from ${JSON.stringify(fileURLToPath(new URL("../../src/evaluation/index.ts", import.meta.url)))};
      const log = caseLog(${JSON.stringify(file)});
      const details = ${JSON.stringify(details)};
      for (let nth = 0; nth < 40; nth++)
        void log({ ...${JSON.stringify(record("x"))}, id: process.pid + " " + nth }, { ...details, transcript: [{ from: "user", text: "y".repeat(700000) }] });
      await log.flush();`;
      const start = () =>
        promisify(execFile)(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", program]);
      await Promise.all([start(), start(), start()]);
      const ids = lines(file).map(({ id }) => String(id));
      expect(new Set(ids).size).toBe(120);
      for (const pid of new Set(ids.map((id) => id.split(" ")[0]))) {
        const ofProcess = ids.filter((id) => id.startsWith(`${pid} `)).map((id) => Number(id.split(" ")[1]));
        expect(ofProcess).toEqual(ofProcess.toSorted((a, b) => a - b));
      }
    },
  );

  test("a log that is moved away begins a new file", async () => {
    const file = newFile();
    const log = caseLog(file);
    await log(record("one"), details);
    renameSync(file, `${file}.1`);
    await log(record("two"), details);
    expect(lines(file).map(({ id }) => id)).toEqual(["two"]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe("sampling", () => {
  const outcomes = [
    "blocked",
    "unavailable",
    "waiting",
    "rejected",
    "held_back",
    "malformed",
    "approved",
  ] as const;

  test("keeps everything that was stopped and the given share of what was allowed", async () => {
    const file = newFile();
    const log = caseLog(file, { sample: 0.25 });
    for (const outcome of outcomes) void log(record(outcome, outcome), details);
    for (let nth = 0; nth < 2000; nth++) void log(record(`allowed ${nth}`, "allowed"), details);
    await log.flush();
    const kept = lines(file);
    expect(kept.slice(0, outcomes.length).map(({ id }) => id)).toEqual(outcomes);
    const allowed = kept.slice(outcomes.length);
    // Four standard deviations around 500.
    expect(Math.abs(allowed.length - 500)).toBeLessThan(78);
    expect(new Set(allowed.map(({ share }) => share))).toEqual(new Set([0.25]));
    expect(kept[0]).not.toHaveProperty("share");
  });

  test("the same calls are kept in every process: it follows from the id alone", async () => {
    const files = [newFile(), newFile()];
    for (const file of files) {
      const log = caseLog(file, { sample: 0.5 });
      for (let nth = 0; nth < 40; nth++) void log(record(`id ${nth}`, "allowed"), details);
      await log.flush();
    }
    const [kept, again] = files.map((file) => lines(file).map(({ id }) => id));
    expect(kept?.length).toBeGreaterThan(5);
    expect(again).toEqual(kept);
  });

  test("0 keeps no allowed call", async () => {
    const file = newFile();
    await caseLog(file, { sample: 0 })(record("one", "allowed"), details);
    expect(lines(file)).toEqual([]);
  });
});

describe("redaction", () => {
  test("reaches every text, keys of arguments and of the environment too, and leaves ids and own words alone", async () => {
    const file = newFile();
    const seen: string[] = [];
    const redact = (text: string) => {
      seen.push(text);
      return text.replaceAll("secret", "***");
    };
    await caseLog(file, { redact })(record("one"), details);
    expect(readFileSync(file, "utf8")).not.toContain("secret");
    expect(lines(file)[0]).toMatchObject({
      id: "one",
      call: { args: { to: "ann@***.example", deep: [{ "key of ***": 1 }] } },
      tool: { description: "Sends a *** mail." },
      transcript: [
        { from: "user", text: "Tell ann the ***" },
        { from: "tool_call", name: "find_***", args: { of: "***" } },
        { from: "omitted", count: 2 },
      ],
      environment: { cwd: "/srv/***" },
      record: record("one"),
    });
    expect(seen).toContain("send_mail");
    expect(seen).not.toContain("digest");
  });

  test("keys that become equal are numbered, so that neither hides the other", async () => {
    const file = newFile();
    const args = { "secret a": 1, "secret b": 2 };
    await caseLog(file, { redact: () => "x" })(record("one"), { ...details, call: { name: "t", args } });
    expect(lines(file)[0]).toMatchObject({ call: { name: "x", args: { x: 1, "x (2)": 2 } } });
  });

  test.each<[string, (text: string) => string]>([
    [
      "throws",
      (text) => {
        if (text.includes("ann@")) throw new Error("cannot redact ann@secret.example");
        return text;
      },
    ],
    // As plain JavaScript might.
    ["gives a promise", ((text: string) => Promise.resolve(text)) as unknown as (text: string) => string],
    ["gives nothing", (() => undefined) as unknown as (text: string) => string],
  ])(
    "a redaction that %s drops the line, warns once without content, and never rejects",
    async (_, redact) => {
      const warn = vi.spyOn(console, "warn").mockReturnValue();
      const file = newFile();
      const log = caseLog(file, { redact });
      await log(record("one"), details);
      await log(record("two"), details);
      expect(readFileSync(file, "utf8")).toBe("");
      expect(warn.mock.calls).toEqual([
        ["caseLog: a case could not be redacted and is left out; decisions do not depend on it."],
      ]);
    },
  );
});

describe("a file that cannot be written", () => {
  test("is an error at construction, if that can be seen at once, and names no path", () => {
    expect(() => caseLog(join(folder.path, "nowhere", "log.jsonl"))).toThrow(
      new ConfigurationError("path", "names a file that cannot be written: ENOENT"),
    );
    expect(() => caseLog(folder.path)).toThrow(/"path".*EISDIR/);
  });

  test("is one warning later, without content, and the listener never rejects", async () => {
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    const inner = join(folder.path, "moved");
    mkdirSync(inner);
    const log = caseLog(join(inner, "log.jsonl"));
    renameSync(inner, `${inner}.away`);
    await log(record("one"), details);
    await log(record("two"), details);
    expect(warn.mock.calls).toEqual([
      ["caseLog: a case could not be written (ENOENT); decisions do not depend on it."],
    ]);
    renameSync(`${inner}.away`, inner);
    await log(record("three"), details);
    expect(lines(join(inner, "log.jsonl")).map(({ id }) => id)).toEqual(["three"]);
  });
});

test.each<[string, unknown, unknown, string]>([
  ["no path", undefined, {}, "path"],
  ["an empty path", "", {}, "path"],
  ["a share above one", "f", { sample: 1.5 }, "sample"],
  ["a share that is no number", "f", { sample: "10%" }, "sample"],
  ["a redaction that is no function", "f", { redact: /secret/ }, "redact"],
  ["an unknown option", "f", { sampel: 1 }, "sampel"],
])("%s is a ConfigurationError that names the option", (_, path, options, option) => {
  let error: unknown;
  try {
    caseLog(path as string, options as object);
  } catch (caught) {
    error = caught;
  }
  expect(ConfigurationError.find(error)?.option).toBe(option);
});

import { appendFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { evaluateCommand } from "../../src/evaluation/evaluate.js";
import { CASES, makeFolder, toLines } from "./synthetic-cases.js";

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
let problems = "";
beforeEach(() => {
  printed = "";
  problems = "";
});
const run = (...args: string[]) => runAt(400, ...args);
const runAt = (width: number, ...args: string[]) =>
  evaluateCommand(args, {
    print: (text) => (printed += `${text}\n`),
    printError: (text) => (problems += text),
    width,
    isWatched: false,
  });
/** The cells of the first line that begins with a title. */
const cellsOf = (title: string) =>
  printed
    .split("\n")
    .find((line) => line.startsWith(`${title} `))
    ?.slice(title.length)
    .trim()
    .split(/\s{2,}/);

/** The figures as `--json` gives them, as far as these tests read them. */
interface Printed {
  title: string;
  notes: string[];
  threshold: number;
  advice: {
    kind: string;
    text: string[];
    risky?: number;
    settings?: { threshold: number; askAt?: number; falseAlarms: { rate: number; high: number } };
    tools?: { tool: string; problem: string; own?: { threshold: number } }[];
  };
  figures: { title: string; cases: number; falseAlarms: { rate: number; count: number; of: number } }[];
  calibration?: { before: { calibrationError: number }; after: { calibrationError: number } };
  comparison?: { onlyFirstRight: number; onlySecondRight: number; pValue: number };
}
const json = async (...args: string[]): Promise<Printed> => {
  printed = "";
  expect(await run(...args, "--json")).toBe(0);
  return JSON.parse(printed) as Printed;
};

describe("judging cases again", () => {
  test("the offline model through the guard's view and question: figures, and no answers kept", async () => {
    expect(await run(cases, "--classifier", "provenance")).toBe(0);
    expect(cellsOf("all")?.slice(0, 4)).toEqual(["12", "6", "0", "1.000"]);
    expect(printed).toContain("made-up / indirect-injection");
    expect(existsSync(`${cases}.answers.jsonl`)).toBe(false);
  });

  test("a classifier from a file: its own view, figures, tokens, and at most so many requests at once", async () => {
    const file = counting("plain.mjs");
    await run(cases, "--classifier", file, "--concurrency", "3", "--answers", `${file}.answers`);
    const log = logOf("plain");
    expect(log.asked).toHaveLength(12);
    expect(log.most).toBe(3);
    expect(new Set(log.asked.flatMap(({ transcript }) => transcript.map(({ from }) => from)))).toEqual(
      new Set(["user"]),
    );
    expect(printed).toMatch(/ms +120 +24\n/);
    expect(cellsOf("all")?.slice(3, 6)).toEqual(["1.000", "0.0 % (0.0-39.0)", "0.0 % (0.0-39.0)"]);
  });

  test("a run that was stopped goes on: only what has no answer is asked, also after a line that was cut off", async () => {
    const file = counting("resumed.mjs");
    const answers = `${file}.answers`;
    const again = (...more: string[]) => run(cases, "--classifier", file, "--answers", answers, ...more);
    await again("--limit", "5");
    const log = logOf("resumed");
    expect(log.asked).toHaveLength(5);
    expect(statSync(answers).mode & 0o777).toBe(0o600);
    expect(readFileSync(answers, "utf8")).not.toContain("evil");
    appendFileSync(answers, '{"key":"cut o');
    await again();
    expect(log.asked).toHaveLength(12);
    await again();
    expect(log.asked).toHaveLength(12);
    await again("--view", '{"channels":["toolCalls"]}');
    expect(log.asked).toHaveLength(24);
    await again("--fresh");
    expect(log.asked).toHaveLength(36);
  });

  test("a case without an answer is counted apart and asked again", async () => {
    const file = counting("failing.mjs");
    const again = (...more: string[]) =>
      run(cases, "--classifier", file, "--answers", `${file}.answers`, ...more);
    await again("--limit", "1");
    const log = logOf("failing");
    log.fail = true;
    printed = "";
    await again();
    expect(cellsOf("all")?.slice(0, 3)).toEqual(["12", "6", "11"]);
    log.fail = false;
    await again();
    expect(log.asked).toHaveLength(1 + 11 + 11);
  });

  test("splits and sources can be chosen", async () => {
    await run(cases, "--classifier", "provenance", "--split", "train", "--source", "made-up,other");
    expect(printed).toMatch(/^provenance on 6 labeled cases/);
  });

  test("two classifiers side by side: who alone is right, and whether that is more than chance", async () => {
    const always = (name: string, risk: string) =>
      folder.write(
        name,
        `export default { model: "${name}", invoke: async ({ state }) => ({ model: "m", answers: { call_1: { type: "noul", noul: ${risk} } } }) };`,
      );
    const right = always("right.mjs", 'JSON.stringify(state.tool_calls).includes("evil") ? 0.9 : 0.1');
    const calm = always("calm.mjs", "0.1");
    const { comparison } = await json(
      cases,
      "--classifier",
      right,
      "--compare",
      calm,
      "--answers",
      folder.write("both.answers", ""),
    );
    expect(comparison).toMatchObject({ onlyFirstRight: 6, onlySecondRight: 0 });
    // Six of six on one side: 2 / 2 ** 6.
    expect(comparison?.pValue).toBeCloseTo(1 / 32, 10);
    printed = "";
    const answers = folder.write("same.answers", "");
    await run(cases, "--classifier", right, "--compare", right, "--answers", answers);
    expect(printed).toMatch(/That is no clear difference \(p = 1\.00\)/);
    printed = "";
    await run(cases, "--classifier", right, "--compare", calm, "--answers", folder.write("b.answers", ""));
    expect(printed).toMatch(/right\.mjs is better by more than chance explains \(p = 0\.031\)/);
  });
});

const record = (nth: number, label: unknown, risk?: number) => ({
  id: `record-${nth}`,
  toolName: "delete_file",
  outcome: risk !== undefined && risk >= 0.5 ? "blocked" : "allowed",
  by: risk === undefined ? "precheck" : "classifier",
  label,
  latencyMs: 20,
  threshold: 0.5,
  ...(risk === undefined ? {} : { risk }),
});

const logged = (nth: number, label: unknown, risk: number, more: object = {}) => ({
  id: `case-${nth}`,
  label,
  call: { name: "send_mail", args: { to: `person${nth}@team.example` } },
  tool: { description: "Sends a mail." },
  transcript: [{ from: "user", text: `Write to person ${nth}` }],
  record: { ...record(nth, "autoMode", risk), toolName: "send_mail", messageId: `m${nth}`, toolCallId: "a" },
  ...more,
});

describe("a log", () => {
  test("the recorded risks of labeled records are scored, whatever the labels are called; records without one are left out", async () => {
    const log = [
      record(1, true, 0.9),
      record(2, "risky", 0.8),
      record(3, 1, 0.3),
      record(4, false, 0.4),
      record(5, "benign", 0.2),
      record(6, 0),
    ];
    await run(folder.write("log.jsonl", toLines(log)));
    expect(printed).toMatch(/^The recorded risks on 5 labeled cases/);
    expect(printed).toContain("1 labeled cases are left out");
    // Five of the six pairs are in the right order.
    expect(cellsOf("all")?.[3]).toBe("0.833");
  });

  test("a record that still carries the middleware's name as its label is an error that says what belongs there", async () => {
    const file = folder.write("names.jsonl", toLines([record(1, true, 0.9), record(2, "autoMode", 0.1)]));
    expect(await run(file)).toBe(1);
    expect(problems).toMatch(/names\.jsonl: line 2 .*label.*risky or benign/);
  });

  test("cases that caseLog wrote are scored with their recorded risks, and can be judged again", async () => {
    const file = folder.write(
      "cases-log.jsonl",
      toLines([logged(1, "risky", 0.9), logged(2, "benign", 0.2), logged(3, null, 0.1)]),
    );
    await run(file);
    expect(printed).toContain("1 cases are not labeled.");
    expect(cellsOf("all")?.slice(0, 4)).toEqual(["2", "1", "0", "1.000"]);
    const judge = counting("anew.mjs");
    await run(file, "--classifier", judge);
    expect(logOf("anew").asked.map(({ transcript }) => transcript)).toEqual([
      [{ from: "user", text: "Write to person 1" }],
      [{ from: "user", text: "Write to person 2" }],
    ]);
  });

  test("the threshold in use is the recorded one, unless another is given", async () => {
    const file = folder.write(
      "threshold.jsonl",
      toLines([
        record(1, "risky", 0.9),
        { ...record(2, "benign", 0.4), threshold: 0.3 },
        { ...record(3, "benign", 0.4), threshold: 0.3 },
      ]),
    );
    expect((await json(file)).threshold).toBe(0.3);
    expect((await json(file, "--threshold", "70%")).threshold).toBe(0.7);
  });

  test("two lines about one decision count once, and a line that was cut off is left out", async () => {
    const twice = [logged(1, null, 0.9), logged(1, "risky", 0.9, { id: "second" }), logged(2, "benign", 0.2)];
    const file = folder.write("twice.jsonl", `${toLines(twice)}\n{"id":"cut o`);
    const { figures, notes } = await json(file);
    expect(figures[0]?.cases).toBe(2);
    expect(notes).toEqual(["1 lines cannot be read and are left out."]);
  });

  test("labels count for the decisions that they represent: blocked calls that were labeled first do not raise the rate", async () => {
    // 10 of 1000 benign calls were blocked. All of these are labeled, and of the allowed ones only 20.
    const log = Array.from({ length: 1000 }, (_, nth) => {
      const isBlocked = nth < 10;
      return logged(nth, isBlocked || nth % 50 === 0 ? "benign" : null, isBlocked ? 0.95 : 0.05);
    });
    const { figures, notes } = await json(folder.write("uneven.jsonl", toLines(log)));
    expect(figures[0]?.falseAlarms.count).toBe(10);
    expect(figures[0]?.falseAlarms.of).toBe(29);
    expect(figures[0]?.falseAlarms.rate).toBeCloseTo(0.01, 10);
    expect(notes.join(" ")).toMatch(/Each label counts for all the logged decisions that it represents/);
  });

  test("a sampled log counts each kept call for those that were not kept", async () => {
    const log = [
      ...Array.from({ length: 5 }, (_, nth) => logged(nth, "benign", 0.95)),
      ...Array.from({ length: 5 }, (_, nth) => logged(10 + nth, "benign", 0.05, { share: 0.1 })),
    ];
    const { figures } = await json(folder.write("sampled.jsonl", toLines(log)));
    expect(figures[0]?.falseAlarms.rate).toBeCloseTo(5 / 55, 10);
  });

  test("a classifier that reads more than was logged is said to be at a disadvantage", async () => {
    const file = folder.write("narrow.jsonl", toLines([logged(1, "risky", 0.9), logged(2, "benign", 0.2)]));
    const [note] = (await json(file, "--classifier", "provenance")).notes;
    expect(note).toMatch(/^The classifier reads toolResults, of which the log holds nothing/);
    const result = { from: "tool_result", name: "find", text: "nothing" };
    const wide = [logged(1, "risky", 0.9, { transcript: [result] }), logged(2, "benign", 0.2)];
    const { notes } = await json(folder.write("wide-log.jsonl", toLines(wide)), "--classifier", "provenance");
    expect(notes).toEqual([]);
  });

  test("a log of several models says so", async () => {
    const [first, second] = [record(1, "risky", 0.9), record(2, "benign", 0.2)];
    const mixed = [
      { ...first, classifier: "one" },
      { ...second, classifier: "two" },
    ];
    const { notes } = await json(folder.write("mixed.jsonl", toLines(mixed)));
    expect(notes.join(" ")).toContain("The recorded risks are of several models (one, two)");
    const same = mixed.map((one) => ({ ...one, classifier: "one" }));
    expect((await json(folder.write("unmixed.jsonl", toLines(same)))).notes).toEqual([]);
  });

  test("decisions of which nothing is labeled are said", async () => {
    const log = [
      logged(1, "risky", 0.9),
      logged(2, "benign", 0.2),
      logged(3, null, 0.55),
      logged(4, null, 0.58),
    ];
    const { notes } = await json(folder.write("unseen.jsonl", toLines(log)));
    expect(notes.join(" ")).toMatch(/2 decisions have a recorded risk in a tenth .* nothing is labeled/);
  });
});

/** Forty labels of each kind: the risky ones from 0.6 up, the benign ones from 0 up, overlapping a little. */
const many = (tool = "send_mail") =>
  Array.from({ length: 80 }, (_, nth) => {
    const isRisky = nth < 40;
    const risk = isRisky ? 0.6 + (nth % 40) / 100 : 0.02 * (nth % 40);
    return { ...record(nth, isRisky ? "risky" : "benign", Math.round(risk * 1000) / 1000), toolName: tool };
  });

describe("advice", () => {
  test("comes first: what to set, and how sure that is", async () => {
    const file = folder.write("many.jsonl", toLines(many()));
    const { advice } = await json(file, "--wish", "5%,10%");
    // At 0.75 two of forty benign calls (0.76 and 0.78) are blocked.
    expect(advice.kind).toBe("settings");
    expect(advice.settings?.threshold).toBeGreaterThan(0.74);
    expect(advice.settings?.threshold).toBeLessThanOrEqual(0.76);
    expect(advice.settings?.falseAlarms.rate).toBeCloseTo(0.05, 10);
    // Wilson, by hand: (0.05 + 0.048 + 1.96 * sqrt(0.0011875 + 0.0006)) / 1.096.
    expect(advice.settings?.falseAlarms.high).toBeCloseTo(0.165, 3);
    expect(advice.settings?.askAt).toBeLessThan(advice.settings?.threshold ?? 0);
    printed = "";
    await run(file, "--wish", "5%,10%");
    const [title, , first] = printed.split("\n");
    expect(title).toBe("The recorded risks on 80 labeled cases");
    expect(first).toMatch(/^Set threshold: 0\.7\d+, askAt: 0\.\d+\.$/);
    expect(printed).toMatch(/rough estimate: the true rate of false alarms may be as high as 16\.5 %/);
  });

  test("what it promises is so: the settings, applied to the labels, give the rates that it names", async () => {
    const { advice } = await json(folder.write("promise.jsonl", toLines(many())), "--wish", "0.05,0.1");
    const { threshold = 1, askAt = 1 } = advice.settings ?? {};
    const all = many();
    const asked = all.filter(({ risk = 0 }) => risk >= askAt && risk < threshold).length;
    expect(asked / all.length).toBeLessThanOrEqual(0.1);
    const blocked = all.filter(({ label, risk = 0 }) => label === "benign" && risk >= threshold).length;
    expect(blocked / 40).toBeLessThanOrEqual(0.05);
  });

  test("is refused below thirty labels of each kind", async () => {
    const few = many().slice(11);
    const { advice } = await json(folder.write("few.jsonl", toLines(few)));
    expect(advice).toMatchObject({ kind: "too few labels", risky: 29, benign: 40 });
    expect(advice.text[0]).toMatch(/^No advice yet: .*29 labels for risky.*at least 30 of each/);
  });

  test("says so when no threshold can do it", async () => {
    const certain = many().map((one) => (one.label === "benign" ? { ...one, risk: 1 } : one));
    const { advice } = await json(folder.write("certain.jsonl", toLines(certain)), "--wish", "1%");
    expect(advice.kind).toBe("no threshold");
    expect(advice.text[0]).toMatch(/^No threshold keeps false alarms at or below 1\.0 %/);
  });

  test("names a tool that one threshold does not fit, with a threshold of its own", async () => {
    const loud = Array.from({ length: 40 }, (_, nth) => {
      const isRisky = nth >= 20;
      return {
        ...record(100 + nth, isRisky ? "risky" : "benign", isRisky ? 0.97 : 0.85),
        toolName: "delete_file",
      };
    });
    const calm = Array.from({ length: 400 }, (_, nth) => record(1000 + nth, "benign", 0.01)).map((one) => ({
      ...one,
      toolName: "read_file",
    }));
    const { advice } = await json(
      folder.write("tools.jsonl", toLines([...many(), ...loud, ...calm])),
      "--wish",
      "0.05",
    );
    expect(advice.tools).toEqual([
      expect.objectContaining({ tool: "delete_file", problem: "false alarms" }) as unknown,
    ]);
    expect(advice.tools?.[0]?.own?.threshold).toBeCloseTo(0.91, 2);
    expect(advice.text.at(-1)).toMatch(
      /^One threshold does not fit delete_file: 100\.0 % \(20 of 20 labels\)/,
    );
  });
});

describe("what it writes", () => {
  test("a calibration that the model of the same name reads, and its held-out figures", async () => {
    const file = folder.write("calibrate.jsonl", toLines(many()));
    const out = `${file}.calibration.json`;
    const { calibration } = await json(file, "--calibration", out);
    expect(JSON.parse(readFileSync(out, "utf8"))).toMatchObject({
      version: 1,
      method: "platt",
      labels: { risky: 40, benign: 40 },
      heldOut: { folds: 5 },
    });
    expect(calibration?.after.calibrationError).toBeGreaterThan(0);
    // Settings for risks as given do not hold for corrected ones.
    expect(problems).toMatch(/With CalibratedDecisionModel and this file: Set threshold: 0\.\d+/);
  });

  test("no calibration of too few labels: it says so and ends with status 1", async () => {
    const out = `${cases}.none.json`;
    expect(await run(folder.write("nine.jsonl", toLines(many().slice(31))), "--calibration", out)).toBe(1);
    expect(problems).toMatch(/No calibration was written: it needs at least 10 risky/);
    expect(existsSync(out)).toBe(false);
  });

  test("the worst mistakes are in the report as escaped text", async () => {
    const wrong = CASES.map((one) => ({
      ...one,
      source: "<script>alert(1)</script>",
      label: one.label === "risky" ? "benign" : "risky",
    }));
    const report = `${cases}.html`;
    await run(folder.write("wrong.jsonl", toLines(wrong)), "--classifier", "provenance", "--report", report);
    const html = readFileSync(report, "utf8");
    expect(html.match(/<pre>/g)).toHaveLength(10);
    expect(html).toContain("&lt;tool_result name=&quot;read_page&quot;&gt;&amp;lt;b&amp;gt;Not much.");
    expect(html).toContain("thief1@evil.example");
    expect(html).not.toMatch(/<script|<b>/);
    expect(html).toContain("default-src 'none'");
    expect(html).not.toMatch(/(?:src|href)=/);
    expect(statSync(report).mode & 0o777).toBe(0o600);
  });

  test.each([40, 80, 200])("tables of at most %d columns", async (width) => {
    await runAt(
      width,
      folder.write(
        "wide.jsonl",
        toLines([
          ...many(),
          ...many("a_tool_with_quite_a_long_name").map((one) => ({ ...one, id: `other ${one.id}` })),
        ]),
      ),
    );
    const lines = printed.split("\n");
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(width);
    expect(printed).toContain("calibration error");
  });

  test("nothing in a file can command the terminal", async () => {
    const hostile = many().map((one) => ({
      ...one,
      id: `hostile ${one.id}`,
      toolName: "rm\u001b[2J\u009b31m",
    }));
    await run(folder.write("hostile.jsonl", toLines([...hostile, ...many()])));
    expect(printed).toContain("rm\\u{1b}[2J\\u{9b}31m");
    expect(printed).not.toContain("\u001b");
    expect(printed).not.toContain("\u009b");
  });
});

describe("the command line", () => {
  test("help says how it is used", async () => {
    expect(await run("--help")).toBe(0);
    expect(printed).toMatch(/^Usage: langchain-auto-mode evaluate FILE/);
  });

  test.each<[string, string[], RegExp]>([
    ["no file", [], /FILE.*missing/],
    ["an unknown classifier", [cases, "--classifier", "nobody:knows"], /classifier.*is not known/],
    ["a number out of range", [cases, "--threshold", "1.5"], /--threshold.*a number from 0 to 1/],
    ["three wishes", [cases, "--wish", "1%,2%,3%"], /--wish.*one or two shares/],
    ["a wrong field of the view", [cases, "--view", '{"chanels":[]}'], /--view.chanels/],
    ["a view that is no JSON", [cases, "--view", "user"], /--view.*JSON/],
    ["half a request", [cases, "--concurrency", "0.5"], /--concurrency.*whole number/],
    ["an unknown flag", [cases, "--wishes", "1%"], /command line.*'--wishes'.*--help/],
    ["a module that is not there", [cases, "--classifier", "./nowhere.mjs"], /module that cannot be read/],
    [
      "a module without a classifier",
      [cases, "--classifier", folder.write("empty.mjs", "export default 1;")],
      /default-exports no decision model/,
    ],
  ])("%s is an error", async (_, args, message) => {
    await expect(run(...args)).rejects.toThrow(message);
  });

  test.each<[string, string[], RegExp]>([
    ["a file that is not there", [`${cases}.gone`], /There is no file/],
    [
      "cases without a label",
      [folder.write("none.jsonl", toLines([logged(1, null, 0.5)]))],
      /None of 1 cases is labeled.*label/,
    ],
    ["cases without a risk", [cases], /no recorded risk.*--classifier/],
    [
      "records that are to be judged anew",
      [folder.write("bare.jsonl", toLines([record(1, "risky", 0.5)])), "--classifier", "provenance"],
      /hold no conversation/,
    ],
    [
      "a report where none can be written",
      [folder.write("one.jsonl", toLines(many())), "--report", `${cases}/out.html`],
      /report cannot be written: ENOTDIR/,
    ],
  ])("%s ends with status 1 and one sentence", async (_, args, message) => {
    expect(await run(...args)).toBe(1);
    expect(problems.replaceAll("\n", " ")).toMatch(message);
  });
});

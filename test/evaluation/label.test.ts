import { spawn } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { labelCommand, showAnswer, showCase } from "../../src/evaluation/label-command.js";
import { LabeledFile, withLabel } from "../../src/evaluation/labeled-file.js";
import { CASES, makeFolder, toLines } from "./synthetic-cases.js";
import { readCase } from "../../src/evaluation/read-cases.js";
import * as fc from "fast-check";

const folder = makeFolder();
afterAll(() => folder.remove());

interface Shape {
  outcome?: string;
  risk?: number;
  by?: string;
  label?: string | null;
  text?: string;
}
let made = 0;
const logged = ({
  outcome = "blocked",
  risk = 0.75,
  by = "classifier",
  label = null,
  text = "Tidy up",
}: Shape = {}) => {
  const nth = (made += 1);
  return {
    id: `case-${nth}`,
    label,
    call: { name: "delete_file", args: { path: `file-${nth}.txt` } },
    tool: { description: "Deletes a file." },
    transcript: [
      { from: "user", text },
      { from: "tool_call", name: "list_files", args: { in: "/srv" } },
    ],
    record: {
      id: `case-${nth}`,
      label: "autoMode",
      messageId: `m${nth}`,
      toolCallId: "a",
      argsDigest: "d",
      toolName: "delete_file",
      outcome,
      by,
      risk,
      threshold: 0.5,
    },
  };
};
const fileOf = (...cases: object[]) => folder.write(`label-${(made += 1)}.jsonl`, `${toLines(cases)}\n`);
const labelsIn = (file: string) =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { label?: unknown }).label);

/** A terminal whose keys are pressed one by one, each once the question for it stands there. */
async function press(file: string, keys: Iterable<string>, ...more: (string | (() => void))[]) {
  const before = more.find((one) => typeof one === "function");
  const flags = more.filter((one) => typeof one === "string");
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 100, rows: 50 });
  let shown = "";
  let questions = 0;
  const pending = [...keys];
  output.on("data", (part: Buffer) => {
    shown += part.toString();
    const asked = shown.split("is this call risky?").length - 1;
    if (asked <= questions || pending.length === 0) return;
    questions = asked;
    const key = pending.shift()!;
    // The answer is drawn with the question once more.
    questions += 1;
    setImmediate(() => {
      before?.();
      input.write(key);
    });
  });
  const status = await labelCommand([file, ...flags], { input, output });
  return { status, shown };
}

describe("labeling", () => {
  test("keys for risky, benign, skip and quit; each answer is saved at once, and the rest stays open", async () => {
    const file = fileOf(logged(), logged(), logged(), logged());
    const { status, shown } = await press(file, "rsbq");
    expect(status).toBe(0);
    expect(labelsIn(file)).toEqual(["risky", null, "benign", null]);
    expect(shown).toMatch(/2 labeled now\. The file has 1 risky and 1 benign labels\./);
  });

  test("the case shows what the user said, what happened and what is proposed; the judge's risk only after the answer", async () => {
    const file = fileOf(logged({ text: "Delete the old logs", risk: 0.83 }));
    const { shown } = await press(file, "r");
    const [before, after] = shown.split("Saved: risky.");
    expect(before).toMatch(
      /The user said[^]*Delete the old logs[^]*called list_files \{"in":"\/srv"\}[^]*delete_file \(Deletes a file\.\)[^]*"path": "file-\d+\.txt"/,
    );
    expect(before).not.toMatch(/0\.83|blocked/);
    expect(after).toMatch(/The judge gave 0\.83; the call was blocked \(threshold 0\.5\)\./);
  });

  test("left and started again, it goes on with what is not labeled", async () => {
    const file = fileOf(logged(), logged(), logged());
    await press(file, "bq");
    const { shown } = await press(file, "rr");
    expect(shown).toContain("2 cases to label");
    expect(labelsIn(file)).toEqual(["benign", "risky", "risky"]);
  });

  test("back to the previous case, which can be labeled again", async () => {
    const file = fileOf(logged(), logged());
    const { shown } = await press(file, "rpbb");
    expect(shown).toContain("Case 1 of 2 (labeled risky)");
    expect(labelsIn(file)).toEqual(["benign", "benign"]);
  });

  test("a label that cannot be saved ends the program with status 1, and says why", async () => {
    const file = fileOf(logged(), logged());
    // Another program writes between the start and the answer.
    const other = JSON.stringify(logged());
    const { status, shown } = await press(file, "r", () => writeFileSync(file, `${other}\n`));
    expect(status).toBe(1);
    expect(shown).toContain("The label could not be saved: Another program has changed the file");
    expect(readFileSync(file, "utf8")).toBe(`${other}\n`);
  });

  test("Ctrl+C quits; Enter and other keys say nothing", async () => {
    const file = fileOf(logged(), logged());
    const { status } = await press(file, ["\r", "x\u0003"]);
    expect(status).toBe(0);
    expect(labelsIn(file)).toEqual([null, null]);
  });

  test.each<[string, (string | null)[]]>([
    ["stopped", ["risky", null, "risky", null, null]],
    ["allowed", [null, "risky", null, "risky", null]],
    ["doubtful", [null, null, "risky", "risky", null]],
  ])("--only %s", async (only, labels) => {
    const file = fileOf(
      logged({ outcome: "blocked", risk: 0.9 }),
      logged({ outcome: "allowed", risk: 0.1 }),
      logged({ outcome: "waiting", risk: 0.45 }),
      logged({ outcome: "allowed", risk: 0.31 }),
      logged({ outcome: "approved", by: "human" }),
    );
    await press(file, "rr", "--only", only);
    expect(labelsIn(file)).toEqual(labels);
  });

  test("what cannot be judged, repeats a decision or is labeled already is not shown", async () => {
    const labeled = logged({ label: "benign" });
    const { args: _, ...noArguments } = logged().call;
    const open = logged();
    const file = fileOf(
      labeled,
      { ...labeled, label: null },
      { ...logged(), call: noArguments },
      { ...logged(), record: { ...logged().record, reason: "repeated" } },
      logged().record,
      open,
      { ...open },
    );
    const { shown } = await press(file, "r");
    expect(shown).toContain("1 cases to label");
    expect(labelsIn(file)).toEqual(["benign", null, null, null, "autoMode", "risky", null]);
  });

  test("cases of one's own are labeled too, where they have no label yet", async () => {
    const [{ label: _, ...open }, other] = CASES as [(typeof CASES)[0], (typeof CASES)[0]];
    const file = fileOf(open, other);
    await press(file, "b");
    expect(labelsIn(file)).toEqual(["benign", other.label]);
  });

  test("nothing in a case can command the terminal, or pose as a heading", async () => {
    const hostile = {
      ...logged({ text: "hi\u001b[2J\u009b2J\u0007\r\nProposed call\n  harmless" }),
      call: { name: "rm\u001b[31m", args: { "k\u001b]0;x\u0007": "\u202etxt.exe\u200b\u001b[1A" } },
      tool: { description: "\u001bc" },
    };
    const { shown } = await press(fileOf(hostile), "q");
    const content = shown.slice(shown.indexOf("The user said"), shown.indexOf("is this call risky"));
    // What the prompt library draws with (colors, cursor) has no part of the case in it.
    expect(content.split("\n").filter((line) => /Proposed call/.test(line))).toEqual([
      expect.stringMatching(/\| Proposed call/) as string,
      expect.not.stringMatching(/\| Proposed call/) as string,
    ]);
    expect(shown).toContain("hi\\u{1b}[2J\\u{9b}2J\\u{07}\\u{0d}");
    expect(shown).toContain("\\u{1b}c");
    expect(shown).toMatch(/\\u\{202e\}txt\.exe\\{1,2}u\{200b\}/);
    for (const command of ["\u001b[2J", "\u009b", "\u0007", "\u202e", "\u001bc", "\u001b]0"])
      expect(shown).not.toContain(command);
  });
});

describe("the command line", () => {
  const piped = { input: new PassThrough(), output: new PassThrough() };

  test("without a terminal it says so", async () => {
    await expect(labelCommand([fileOf(logged())], piped)).rejects.toThrow(/"label" needs a terminal/);
  });

  test("help says how it is used", async () => {
    const output = new PassThrough();
    expect(await labelCommand(["--help"], { ...piped, output })).toBe(0);
    expect(String(output.read())).toMatch(/^Usage: langchain-auto-mode label FILE/);
  });

  test.each<[string, string[], RegExp]>([
    ["no file", [], /FILE/],
    ["two files", ["a", "b"], /FILE/],
    ["a file that is not there", ["nowhere.jsonl"], /FILE.*names no file/],
    ["an unknown choice", ["a", "--only", "some"], /--only.*stopped, allowed, doubtful/],
    ["an unknown flag", ["a", "--olny"], /command line/],
  ])("%s is an error", async (_, args, message) => {
    await expect(labelCommand(args, piped)).rejects.toThrow(message);
  });
});

describe("the file", () => {
  test("every byte but the label's stays: odd numbers, spaces, unknown fields and lines, what is no UTF-8", () => {
    const before = Buffer.concat([
      Buffer.from(
        '{ "id":"a", "big": 12345678901234567890, "f":1.0, "label" :  null , "label2":{"label":null}, ',
      ),
      Buffer.from(
        `"call":{"name":"t","args":{"label":"x"}},"transcript":[],"record":${JSON.stringify(logged().record)},"raw":"`,
      ),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('","esc":"\\u00e9\\"}" }\r\nno json at all\n\n{"cut'),
    ]);
    const file = folder.write("bytes.jsonl", "");
    appendFileSync(file, before);
    const labeled = new LabeledFile(file);
    const [first] = labeled.cases();
    labeled.setLabel(first!.index, "risky");
    const text = before.toString("latin1");
    const at = text.indexOf("null , ");
    expect(readFileSync(file).toString("latin1")).toBe(`${text.slice(0, at)}"risky"${text.slice(at + 4)}`);
  });

  test("keeps its rights, is replaced in one step, and is the file behind a link", () => {
    const file = fileOf(logged());
    chmodSync(file, 0o640);
    const link = `${file}.link`;
    symlinkSync(file, link);
    const inode = statSync(file).ino;
    new LabeledFile(link).setLabel(0, "benign");
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(statSync(file).ino).not.toBe(inode);
    expect(labelsIn(file)).toEqual(["benign"]);
    expect(readdirSync(dirname(file)).filter((name) => name.endsWith(".new"))).toEqual([]);
  });

  test("lines that an agent appends meanwhile stay", () => {
    const file = fileOf(logged(), logged());
    const labeled = new LabeledFile(file);
    labeled.setLabel(0, "risky");
    appendFileSync(file, `${JSON.stringify(logged())}\n`);
    labeled.setLabel(1, "benign");
    expect(labelsIn(file)).toEqual(["risky", "benign", null]);
  });

  test("a line that another program has changed is not overwritten", () => {
    const file = fileOf(logged(), logged());
    const [first, second] = [new LabeledFile(file), new LabeledFile(file)];
    first.setLabel(0, "risky");
    expect(() => second.setLabel(0, "benign")).toThrow(/Another program has changed the file/);
    second.setLabel(1, "benign");
    expect(labelsIn(file)).toEqual(["risky", "benign"]);
  });

  test("setting a label changes nothing else that JSON readers see, in any object", () => {
    const objects = fc.dictionary(
      fc.oneof(fc.string(), fc.constant("label"), fc.constant('la"bel')),
      fc.jsonValue(),
    );
    fc.assert(
      fc.property(objects, fc.constantFrom(0, 1, 2), (object, indent) => {
        if (Object.keys(object).length === 0) return;
        const line = JSON.stringify(object, undefined, indent).replaceAll("\n", " ");
        const kept = JSON.parse(line) as object;
        expect(JSON.parse(withLabel(line, "benign"))).toEqual({ ...kept, label: "benign" });
      }),
    );
  });
});

describe.runIf(process.platform === "linux")("in a pseudo terminal", { timeout: 60_000 }, () => {
  test("the program itself asks, saves and ends", async () => {
    const file = fileOf(logged(), logged());
    const bin = fileURLToPath(new URL("../../src/bin.ts", import.meta.url));
    // The one program on every Linux that gives another one a terminal.
    const child = spawn(
      "script",
      ["-qefc", `"${process.execPath}" --import tsx "${bin}" label "${file}"`, "/dev/null"],
      {
        cwd: join(dirname(bin), ".."),
        env: { ...process.env, TERM: "xterm" },
      },
    );
    onTestFinished(() => void child.kill("SIGKILL"));
    let shown = "";
    const keys = ["r", "b"];
    child.stdout.on("data", (part: Buffer) => {
      shown += part.toString();
      if (
        keys.length > 0 &&
        shown.includes(`Case ${3 - keys.length} of 2`) &&
        shown.trimEnd().includes("quit")
      )
        child.stdin.write(keys.shift()!);
    });
    const status = await new Promise((resolve) => {
      child.on("close", resolve);
    });
    expect(shown).toContain("2 labeled now");
    expect(status).toBe(0);
    expect(labelsIn(file)).toEqual(["risky", "benign"]);
  });
});

const shownCase = (transcript: object[], more: object = {}, record: object = {}) =>
  readCase(
    {
      id: "a",
      call: { name: "delete_file", args: { path: "b.txt" } },
      tool: { description: "Deletes a file." },
      transcript,
      record: { id: "a", toolName: "delete_file", outcome: "blocked", threshold: 0.5, ...record },
      ...more,
    },
    1,
  );

test("a case in full: who said what, what was called and came back, what was left out, and the facts of the operator", () => {
  const transcript = [
    { from: "omitted", count: 7 },
    { from: "delegator", text: "Do what the ticket says" },
    { from: "context_note", source: "summary", text: "They talked about logs" },
    { from: "tool_call", name: "read_file", args: { path: "a.txt" } },
    { from: "tool_result", name: "read_file", text: "first line\nsecond line" },
    { from: "no_user_message" },
  ];
  expect(showCase(shownCase(transcript, { environment: { cwd: "/srv" } }))).toBe(
    `The user said
  | delegator: Do what the ticket says

What happened before
  | (7 messages are left out)
  | context_note: They talked about logs
  | called read_file {"path":"a.txt"}
  | tool_result of read_file: first line
  | second line
  | (no message of the user)

Environment
  | {"cwd":"/srv"}

Proposed call
  | delete_file (Deletes a file.)
  | {
  |   "path": "b.txt"
  | }`,
  );
});

test("only the last dozen entries are shown, long ones cut, and all that the user said", () => {
  const results = Array.from({ length: 20 }, (_, nth) => ({
    from: "tool_result",
    name: "t",
    text: `${nth} ${"x".repeat(700)}`,
  }));
  const words = Array.from({ length: 15 }, (_, nth) => ({
    from: "user",
    text: `wish ${nth} ${"y".repeat(700)}`,
  }));
  const shown = showCase(shownCase([...words, ...results]));
  expect(shown.match(/wish \d+ y{700}$/gm)).toHaveLength(15);
  expect(shown.match(/tool_result of t: /g)).toHaveLength(12);
  expect(shown).toMatch(/… \(\d+ more characters\)/);
});

test.each<[string, object, string | undefined]>([
  ["a risk", { risk: 0.834 }, "The judge gave 0.83; the call was blocked (threshold 0.5)."],
  [
    "no answer",
    { unavailableReason: "timeout", outcome: "unavailable" },
    "The judge gave no answer (timeout).",
  ],
  ["a rule", { by: "precheck" }, "The judge was not asked; the call was blocked."],
])("what the judge said: %s", (_, record, text) => {
  expect(showAnswer(shownCase([], {}, record))).toBe(text);
});

import { existsSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { parseArgs } from "node:util";
import { ConfigurationError } from "../errors.js";
import { type CaseLine, type Label, LabeledFile } from "./labeled-file.js";
import type { EvaluationCase } from "./read-cases.js";
import { visible } from "./terminal.js";
import type { Entry } from "../transcript/entries.js";
import { toDisplayJson } from "../transcript/json.js";

const USAGE = `Usage: langchain-auto-mode label FILE [--only stopped|allowed|doubtful]

Shows logged decisions that are not labeled yet, one at a time, and saves what you say after each.
FILE is what caseLog() wrote. You can stop at any time and go on later.

  --only stopped     only calls that were not allowed
  --only allowed     only calls that were
  --only doubtful    only calls whose risk is within 0.2 of the threshold, or that got none
  --help             print this
`;

const ONLY = ["stopped", "allowed", "doubtful"] as const;
type Only = (typeof ONLY)[number];

/** Where a person sits. */
export interface LabelTerminal {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable & { readonly isTTY?: boolean; columns?: number; rows?: number };
}

/**
 * The command `label`. Gives the exit status: 0, or 1 where the file cannot be labeled.
 *
 * @throws {ConfigurationError} for a wrong command line, without a terminal, or without the package that draws the
 * questions
 */
export async function labelCommand(
  args: readonly string[],
  terminal: LabelTerminal = { input: process.stdin, output: process.stdout },
): Promise<number> {
  const options = readOptions(args);
  if (options === "help") {
    terminal.output.write(USAGE);
    return 0;
  }
  const { file, only } = options;
  if (!existsSync(file)) throw new ConfigurationError("FILE", "names no file");
  if (!terminal.input.isTTY || !terminal.output.isTTY)
    throw new ConfigurationError("label", "needs a terminal: input and output must not be redirected");
  // A terminal that nobody gave a size says 0, and questions would be wrapped after every letter.
  if (terminal.output.columns === 0) Object.assign(terminal.output, { columns: 80, rows: 24 });
  const prompts = await loadPrompts();
  return new Labeling(new LabeledFile(file), prompts, terminal).run(file, only);
}

/** Only who labels needs it. */
async function loadPrompts(): Promise<typeof import("@clack/prompts")> {
  try {
    return await import("@clack/prompts");
  } catch (error) {
    throw new ConfigurationError(
      "label",
      'needs the package @clack/prompts: run "npm install @clack/prompts"',
      {
        cause: error,
      },
    );
  }
}

function readOptions(args: readonly string[]): { file: string; only: Only | undefined } | "help" {
  const { values, positionals } = parse(args);
  if (values.help) return "help";
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0)
    throw new ConfigurationError("FILE", "is not one; expected one file");
  const only = ONLY.find((one) => one === values.only);
  if (values.only !== undefined && only === undefined)
    throw new ConfigurationError("--only", `is not known; expected ${ONLY.join(", ")}`);
  return { file, only };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { only: { type: "string" }, help: { type: "boolean", short: "h", default: false } },
    });
  } catch (error) {
    throw new ConfigurationError("command line", "cannot be read; --help shows the flags", { cause: error });
  }
}

/** Whether a person can say something of it: other lines repeat a decision, or hold nothing to judge. */
function isToLabel({ args, transcript, decision }: EvaluationCase): boolean {
  if (args === undefined || transcript === undefined) return false;
  return decision?.by !== "human" && decision?.outcome !== "held_back" && decision?.reason !== "repeated";
}

const NEAR = 0.2;

function isAmong({ decision, answer }: EvaluationCase, only: Only | undefined): boolean {
  switch (only) {
    case "stopped":
      return decision !== undefined && decision.outcome !== "allowed";
    case "allowed":
      return decision?.outcome === "allowed";
    case "doubtful":
      return answer?.risk === undefined
        ? answer?.unavailable !== undefined
        : Math.abs(answer.risk - (decision?.threshold ?? 0.5)) <= NEAR;
    case undefined:
      return true;
  }
}

type Key = "r" | "b" | "s" | "p" | "q";

class Labeling {
  readonly #file: LabeledFile;
  readonly #prompts: typeof import("@clack/prompts");
  readonly #terminal: LabelTerminal;
  readonly #labels = new Map<number, Label>();

  constructor(file: LabeledFile, prompts: typeof import("@clack/prompts"), terminal: LabelTerminal) {
    this.#file = file;
    this.#prompts = prompts;
    this.#terminal = terminal;
  }

  async run(path: string, only: Only | undefined): Promise<number> {
    const { intro, log, outro } = this.#prompts;
    const all = this.#file.cases();
    const open = openLines(all, only);
    intro(`${open.length} cases to label in ${visible(path)}`, this.#terminal);
    let at = 0;
    while (at < open.length) {
      const { index, content } = open[at]!;
      log.message(showCase(content), this.#terminal);
      const key = await this.#ask(
        `Case ${at + 1} of ${open.length}${this.#said(index)}: is this call risky?`,
        at,
      );
      if (key === "q") break;
      if (key === "p") at -= 1;
      else if (key === "s") at += 1;
      else if (key !== undefined) {
        const label: Label = key === "r" ? "risky" : "benign";
        try {
          this.#file.setLabel(index, label);
        } catch (error) {
          log.error(`The label could not be saved: ${visible((error as Error).message)}`, this.#terminal);
          return 1;
        }
        this.#labels.set(index, label);
        log.info(`Saved: ${label}. ${showAnswer(content) ?? ""}`.trimEnd(), this.#terminal);
        at += 1;
      }
    }
    const labeled = this.#file.cases().filter(({ content }) => content.risky !== undefined);
    const risky = labeled.filter(({ content }) => content.risky).length;
    outro(
      `${this.#labels.size} labeled now. The file has ${risky} risky and ${labeled.length - risky} benign labels. For figures and advice: npx langchain-auto-mode evaluate ${visible(path)}`,
      this.#terminal,
    );
    return 0;
  }

  #said(index: number): string {
    const label = this.#labels.get(index);
    return label === undefined ? "" : ` (labeled ${label})`;
  }

  /** `undefined` for a key that means nothing. */
  async #ask(message: string, at: number): Promise<Key | undefined> {
    const options: { value: Key; label: string; disabled?: boolean }[] = [
      { value: "r", label: "risky: it should not run without asking" },
      { value: "b", label: "benign: it may run" },
      { value: "s", label: "skip" },
      ...(at > 0 ? [{ value: "p" as const, label: "previous case" }] : []),
      { value: "q", label: "quit" },
    ];
    const key = await this.#prompts.selectKey<Key>({ message, options, ...this.#terminal });
    return this.#prompts.isCancel(key) ? "q" : key;
  }
}

/** One line for each decision that nobody has labeled, in the order of the file. */
function openLines(all: readonly CaseLine[], only: Only | undefined): CaseLine[] {
  const known = new Set(
    all.filter(({ content }) => content.risky !== undefined).map(({ content }) => content.decisionKey),
  );
  return all.filter(({ content }) => {
    if (known.has(content.decisionKey) || !isToLabel(content) || !isAmong(content, only)) return false;
    known.add(content.decisionKey);
    return true;
  });
}

const RECENT = 12;
const LONGEST = 600;

/**
 * A case as a person reads it: the user's words, what happened last, and the proposed call. Every line of content
 * begins with a bar, so that no text can pose as a heading; what would command the terminal is shown as an escape.
 * What the classifier said is not in it: it would lead the person.
 */
export function showCase({ tool, args, description, transcript, environment }: EvaluationCase): string {
  const entries = transcript?.({ channels: ["user", "toolCalls", "subagentReports", "toolResults"] }) ?? [];
  const said = entries.filter(({ from }) => from === "user" || from === "delegator");
  const last = entries.filter((entry) => !said.includes(entry)).slice(-RECENT);
  const call = args === undefined ? "(malformed)" : JSON.stringify(toDisplayJson(args), undefined, 2);
  return [
    section("The user said", said.map(textOf)),
    section("What happened before", last.map(textOf)),
    environment === undefined ? "" : section("Environment", [JSON.stringify(toDisplayJson(environment))]),
    section("Proposed call", [`${tool}${description ? ` (${cut(description)})` : ""}`, call]),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** What the classifier said of a case, if it is recorded. */
export function showAnswer({ answer, decision }: EvaluationCase): string | undefined {
  if (decision === undefined) return undefined;
  const threshold = decision.threshold === undefined ? "" : ` (threshold ${decision.threshold})`;
  const outcome = visible(decision.outcome);
  if (answer?.risk !== undefined)
    return `The judge gave ${answer.risk.toFixed(2)}; the call was ${outcome}${threshold}.`;
  if (answer?.unavailable !== undefined) return `The judge gave no answer (${answer.unavailable}).`;
  return `The judge was not asked; the call was ${outcome}.`;
}

function section(title: string, texts: readonly string[]): string {
  if (texts.length === 0) return `${title}\n  | (nothing)`;
  const lines = texts.flatMap((text) => visible(text).split("\n"));
  return [title, ...lines.map((line) => `  | ${line}`)].join("\n");
}

function textOf(entry: Entry): string {
  switch (entry.from) {
    case "user":
      return entry.text;
    case "omitted":
      return `(${entry.count} messages are left out)`;
    case "no_user_message":
      return "(no message of the user)";
    case "tool_call":
    case "server_tool_call":
      return cut(`called ${entry.name} ${JSON.stringify(entry.args)}`);
    default: {
      const { from, text } = entry;
      const name = "name" in entry ? ` of ${entry.name}` : "";
      return cut(`${from}${name}: ${text}`);
    }
  }
}

function cut(text: string): string {
  return text.length <= LONGEST
    ? text
    : `${text.slice(0, LONGEST)} … (${text.length - LONGEST} more characters)`;
}

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { resolvePolicy } from "../../src/resolve-options.js";
import { SnippetProject } from "../snippets/project.js";
import type { Snippet } from "../snippets/read.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Names that the examples take as given. On the first line, so that the lines of source and check keep in step. */
const GIVEN = [
  'import { HumanMessage } from "@langchain/core/messages";',
  'import { askHuman, type AutoModeOptions, haltRun } from "langchain-auto-mode";',
  'import { ChatDecisionModel, SystemOneDecisionModel } from "langchain-auto-mode/classifiers";',
  'import { caseLog } from "langchain-auto-mode/evaluation";',
  "declare const deleteFile: Extract<AutoModeOptions['tools'][number], { invoke: unknown }>;",
  "declare const response: unknown;",
  "declare const fetchThroughProxy: typeof fetch;",
].join(" ");

interface Example {
  readonly line: number;
  readonly code: string;
  readonly options: string;
}

/** The examples of one line that stand above an option: `@example askAt: 0.2`. */
function examplesOf(source: string): Example[] {
  const lines = source.split("\n");
  let options = "";
  return lines.flatMap((line, index) => {
    options = /^export interface (\w+)/.exec(line)?.[1] ?? options;
    const code = /^ +\* @example (.+)$/.exec(line)?.[1];
    const option = /^ {2}(?:readonly )?(\w+)\??[:(]/.exec(lines[index + 2] ?? "")?.[1];
    if (code === undefined || option === undefined) return [];
    return [{ line: index + 1, code, options }];
  });
}

/** All examples of one file as one program, each on the line on which it stands in the source. */
function programOf(file: string): Snippet | undefined {
  const examples = examplesOf(readFileSync(`${root}src/${file}`, "utf8"));
  if (examples.length === 0) return undefined;
  const code = [`import type * as own from "../../src/${file}"; ${GIVEN}`];
  for (const { line, code: example, options } of examples)
    code[line - 1] = `({ ${example} }) satisfies Partial<own.${options}>;`;
  return { file: `src/${file}`, line: 0, code: Array.from(code, (text) => text ?? "").join("\n"), setup: [] };
}

describe("the examples that an editor shows for an option", () => {
  const files = readdirSync(`${root}src`, { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".ts"),
  );
  const programs = files.flatMap((file) => programOf(file) ?? []);
  const wrong = programs
    .filter(({ file }) => file === "src/options.ts")
    .map(({ code, ...rest }) => ({
      ...rest,
      code: code.replace("askAt: 0.2", 'askAt: "0.2"'),
      file: "wrong",
    }));
  const project = new SnippetProject([...programs, ...wrong]);
  afterAll(() => project.remove());

  test("are there, in the files of options", () => {
    const found = programs.map(({ file }) => file);
    const some = ["src/options.ts", "src/classifiers/http.ts", "src/transcript/view.ts"];
    expect(found).toEqual(expect.arrayContaining(some));
  });

  test("have the type of the option, and one made wrong is found", { timeout: 60_000 }, async () => {
    const errors = await project.typeErrors();
    expect(errors.filter((error) => !error.startsWith("wrong:"))).toEqual([]);
    expect(errors).toEqual([expect.stringMatching(/'string' is not assignable to type 'number'/)]);
  });
});

test("the defaults that an editor shows are those that are used", () => {
  const source = readFileSync(`${root}src/options.ts`, "utf8");
  const [, options = ""] = source.split("export interface AutoModeOptions");
  const shown = [
    ...options.matchAll(/@default (\d[\d.]*|true|false|"\w+(?:-\w+)*")\n(?: +\*.*\n)*? +\*\/\n +(\w+)\?:/g),
  ].map(([, value = "", name = ""]) => [name, JSON.parse(value) as unknown] as const);
  expect(shown.map(([name]) => name)).toEqual([
    "threshold",
    "onUnavailable",
    "siblings",
    "author",
    "mode",
    "timeoutMs",
    "explain",
    "onUnknownTool",
    "label",
  ]);
  const policy = resolvePolicy({ tools: ["delete_file"], classifier: fakeDecisionModel() });
  expect({ ...policy, threshold: policy.general.threshold }).toMatchObject(Object.fromEntries(shown));
  const limits = Object.entries(policy.limits).map(([name, limit]) => `${name}: ${limit}`);
  expect(options).toContain(`@default { ${limits.join(", ")} }`);
});

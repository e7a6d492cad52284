import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { exportedNames, topLevelNames } from "./names.js";
import type { Snippet } from "./read.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tsconfig = join(root, "test/tsconfig.json");
const setupFolder = join(root, "test/readme");
const RUN_LIMIT_MS = 110_000;

/** What a program printed and whether it ended well. */
export interface Ran {
  ok: boolean;
  stdout: string;
  stderr: string;
}

/** A folder inside `test/`, so that packages and the public names resolve, with a file per snippet. */
export class SnippetProject {
  readonly #folder = mkdtempSync(join(root, "test/.snippets-"));
  readonly #files = new Map<string, Snippet>();

  constructor(snippets: readonly Snippet[]) {
    for (const snippet of snippets) {
      const name = fileName(snippet);
      this.#files.set(name, snippet);
      writeFileSync(join(this.#folder, name), moduleOf(snippet, this.#folder));
    }
    const config = { extends: tsconfig, include: ["./*.ts"] };
    writeFileSync(join(this.#folder, "tsconfig.json"), JSON.stringify(config));
  }

  /** Type-checks all snippets in one run. Gives the errors, with their place in the Markdown. */
  async typeErrors(): Promise<string[]> {
    if (this.#files.size === 0) return [];
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const { ok, stdout, stderr } = await runNode(
      [compiler, "-p", this.#folder, "--pretty", "false"],
      this.#folder,
    );
    const errors = stdout.split("\n").filter((line) => line.includes("error TS"));
    if (!ok && errors.length === 0) throw new Error(`The type check did not run:\n${stdout}${stderr}`);
    return errors.map((line) => this.#inMarkdown(line));
  }

  /** Runs one snippet in a process of its own that reaches nothing beyond this machine. */
  async run(snippet: Snippet): Promise<Ran> {
    const offline = new URL("offline.mjs", import.meta.url).href;
    return runNode(["--import", "tsx", "--import", offline, fileName(snippet)], this.#folder);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #inMarkdown(error: string): string {
    return error.replace(/^(?:.*\/)?([\w.-]+\.ts)\((\d+),/, (text, name: string, line: string) => {
      const snippet = this.#files.get(name);
      return snippet === undefined ? text : `${snippet.file}:${snippet.line + Number(line) - 1} (column `;
    });
  }
}

/** What is wrong with a run, as one text; undefined when it printed what it should. */
export function complaint(snippet: Snippet, ran: Ran): string | undefined {
  const place = `${snippet.file}:${snippet.line}`;
  if (!ran.ok) return `${place} failed:\n${ran.stderr}`;
  if (snippet.output === undefined || tidy(ran.stdout) === tidy(snippet.output)) return undefined;
  return `${place} printed:\n${tidy(ran.stdout)}\nbut the page says:\n${tidy(snippet.output)}`;
}

function tidy(text: string): string {
  return text
    .split(/\r?\n/)
    .map((line) => line.trimEnd())
    .join("\n")
    .trim();
}

function fileName({ file, line }: Snippet): string {
  return `${file.replaceAll(/[^a-z0-9]+/gi, "-")}-${line}.ts`;
}

// The first line stands for the fence, so that lines of the module and of the page keep in step.
function moduleOf(snippet: Snippet, folder: string): string {
  const own = topLevelNames(snippet.code);
  const imports = snippet.setup.map((file) => {
    const path = join(setupFolder, file);
    const names = exportedNames(readFileSync(path, "utf8")).filter(({ name }) => !own.has(name));
    const list = names.map(({ name, isType }) => (isType ? `type ${name}` : name)).join(", ");
    return `import { ${list} } from "${relative(folder, path)}";`;
  });
  return `${imports.join(" ")}\n${snippet.code}\nexport {};\n`;
}

function runNode(args: string[], cwd: string): Promise<Ran> {
  const env = { PATH: process.env["PATH"], NO_COLOR: "1", TSX_TSCONFIG_PATH: tsconfig };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd, env, timeout: RUN_LIMIT_MS }, (error, stdout, stderr) => {
      const note = error?.killed ? `ended after ${RUN_LIMIT_MS} ms without an answer\n` : "";
      resolve({ ok: error === null, stdout, stderr: note + stderr });
    });
  });
}

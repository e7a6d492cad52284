import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { complaint, SnippetProject } from "./snippets/project.js";
import { readPage } from "./snippets/read.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = ["", "docs/", "examples/"].flatMap((folder) =>
  existsSync(root + folder) ? markdownFiles(folder) : [],
);
const pages = files.map((file) => readPage(file, readFileSync(`${root}${file}`, "utf8")));
const snippets = pages.flatMap((page) => page.snippets);
const runnable = snippets
  .filter(({ notRun }) => notRun === undefined)
  .map((snippet) => [`${snippet.file}:${snippet.line}`, snippet] as const);

describe("the snippets of the documentation", () => {
  const project = new SnippetProject(snippets);
  afterAll(() => project.remove());

  test("README.md is among the pages, and has snippets that run", () => {
    expect(runnable.map(([, { file }]) => file)).toContain("README.md");
  });

  test("the README is at most 12 KB and each page at most 10 KB: a page that nobody finishes helps nobody", () => {
    const tooLong = files
      .filter((file) => !file.startsWith("examples/") && file !== "CHANGELOG.md")
      .map((file) => ({ file, bytes: Buffer.byteLength(readFileSync(`${root}${file}`)) }))
      .filter(({ file, bytes }) => bytes > (file === "README.md" ? 12_000 : 10_000));
    expect(tooLong).toEqual([]);
  });

  test("what the line under the README's title says is what package.json says", () => {
    const about = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as {
      license: string;
      type: string;
      engines: { node: string };
      exports: Record<string, { types?: string }>;
      peerDependencies: Record<string, string>;
    };
    const [, , line = ""] = readFileSync(`${root}README.md`, "utf8").split("\n");
    expect(about.type).toBe("module");
    expect(about.exports["."]?.types).toMatch(/\.d\.ts$/);
    expect(line.match(/`[^`]+`/g)).toEqual([
      `\`${about.license}\``,
      `\`Node ${about.engines.node.replace(/^>=(.*)\.0$/, ">= $1")}\``,
      "`ESM`",
      "`TypeScript types`",
      `\`langchain ${about.peerDependencies["langchain"]}\``,
    ]);
  });

  test("every link to a file of this project leads somewhere", () => {
    const broken = files.flatMap((file) => {
      const folder = file.slice(0, file.lastIndexOf("/") + 1);
      const links = readFileSync(`${root}${file}`, "utf8").matchAll(/\]\((?!https?:|#)([^)#\s]+)/g);
      return [...links].flatMap(([, target]) =>
        existsSync(`${root}${folder}${target}`) ? [] : [`${file}: ${target}`],
      );
    });
    expect(broken).toEqual([]);
  });

  test("every block is in a language that says how it is checked, and every printed text is marked", () => {
    expect(pages.flatMap((page) => page.problems)).toEqual([]);
  });

  test("every snippet compiles", { timeout: 120_000 }, async () => {
    expect(await project.typeErrors()).toEqual([]);
  });

  test.concurrent.each(runnable)(
    "%s runs and prints what the page says",
    async (_, snippet) => {
      expect(complaint(snippet, await project.run(snippet))).toBeUndefined();
    },
    120_000,
  );
});

function markdownFiles(folder: string): string[] {
  return readdirSync(root + folder)
    .filter((name) => name.endsWith(".md"))
    .map((name) => folder + name);
}

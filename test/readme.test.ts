import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { complaint, SnippetProject } from "./snippets/project.js";
import { readPage } from "./snippets/read.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = ["", "examples/"].flatMap((folder) => (existsSync(root + folder) ? markdownFiles(folder) : []));
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

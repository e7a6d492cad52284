import { afterEach, describe, expect, test } from "vitest";
import { complaint, SnippetProject } from "./project.js";
import { readPage, type Snippet } from "./read.js";

const fence = (language: string, code: string) => `\`\`\`${language}\n${code}\n\`\`\``;

function problemsOf(markdown: string): string[] {
  return readPage("page.md", markdown).problems;
}

describe("reading a page", () => {
  test("a snippet has its place, setups, reason not to run and output", () => {
    const page = readPage(
      "page.md",
      [
        "# Title",
        "<!-- setup: agent.ts, other.ts -->",
        fence("ts", "console.log(1);"),
        "",
        "It prints:",
        "<!-- output -->",
        "",
        fence("text", "1"),
        "<!-- not run: needs an API key -->",
        fence("ts", "await ask();"),
        fence("sh", "npm test"),
        "<!-- not output: a sketch -->",
        fence("text", "a > b"),
      ].join("\n"),
    );
    expect(page.problems).toEqual([]);
    expect(page.snippets).toEqual([
      { file: "page.md", line: 3, code: "console.log(1);", setup: ["agent.ts", "other.ts"], output: "1" },
      { file: "page.md", line: 14, code: "await ask();", setup: [], notRun: "needs an API key" },
    ]);
  });

  test("indented, quoted, tilde and longer fences are blocks too", () => {
    const page = readPage(
      "page.md",
      "1. item\n   ```ts\n   if (a) {\n     b();\n   }\n   ```\n> ```ts\n> c();\n> ```\n~~~ts\nd();\n~~~\n````ts\n// ```\n````",
    );
    expect(page.problems).toEqual([]);
    expect(page.snippets.map(({ code }) => code)).toEqual(["if (a) {\n  b();\n}", "c();", "d();", "// ```"]);
  });

  test.each([
    ["a block without a language", fence("", "x"), "page.md:1: a block without a language is not checked"],
    ["a block in another name of the language", fence("js", "x"), "page.md:1: js is not checked; write ts"],
    [
      "a text that nothing marks",
      `${fence("ts", "x")}\n${fence("text", "1")}`,
      'page.md:4: a text block needs "output"',
    ],
    ["a mark that prose parts from its block", `<!-- output -->\nprose\n${fence("text", "1")}`, "needs"],
    [
      "an output without a snippet",
      `<!-- output -->\n${fence("text", "1")}`,
      "no snippet that runs stands above",
    ],
    [
      "the output of a snippet that does not run",
      `<!-- not run: key -->\n${fence("ts", "x")}\n<!-- output -->\n${fence("text", "1")}`,
      "no snippet that runs stands above",
    ],
    [
      "a second output",
      `${fence("ts", "x")}\n<!-- output -->\n${fence("text", "1")}\n<!-- output -->\n${fence("text", "1")}`,
      "has an output already",
    ],
    ["a misspelt mark", `<!-- not-run: key -->\n${fence("ts", "x")}`, '"not-run: key" means nothing here'],
    [
      "a snippet that does not run without a reason",
      `<!-- not run: -->\n${fence("ts", "x")}`,
      "means nothing",
    ],
    ["a mark before a block that it is not for", `<!-- output -->\n${fence("json", "1")}`, "means nothing"],
    ["a block that does not end", "```ts\nx", "page.md:1: the block does not end"],
  ])("complains about %s", (_, markdown, expected) => {
    expect(problemsOf(markdown)).toEqual([expect.stringContaining(expected)]);
  });
});

describe("checking snippets", { timeout: 60_000 }, () => {
  let project: SnippetProject | undefined;
  afterEach(() => project?.remove());

  function projectOf(...snippets: Partial<Snippet>[]) {
    const placed = snippets.map((snippet, index) => ({
      file: "page.md",
      line: 10 * (index + 1),
      code: "",
      setup: [],
      ...snippet,
    }));
    project = new SnippetProject(placed);
    return { project, placed };
  }

  test("a type error is reported at its place in the page, whatever else is right", async () => {
    const { project: checked } = projectOf(
      {
        code: 'import { ClassificationError } from "langchain-auto-mode";\nnew ClassificationError("refused");',
      },
      { code: 'const fine = 1;\nexport const wrong: number = "text";' },
    );
    const errors = await checked.typeErrors();
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(/^page\.md:22 .*TS2322/);
  });

  test("a snippet uses the package by its public names, and what it prints is compared", async () => {
    const code =
      'import { ClassificationError } from "langchain-auto-mode";\nconsole.log(new ClassificationError("refused").reason);';
    const { project: checked, placed } = projectOf({ code, output: "refused" }, { code, output: "timeout" });
    const ran = await checked.run(placed[0]!);
    expect(complaint(placed[0]!, ran)).toBeUndefined();
    expect(complaint(placed[1]!, ran)).toBe("page.md:20 printed:\nrefused\nbut the page says:\ntimeout");
  });

  test("a setup's exports are at hand, types too, and a name of the snippet's own goes before them", async () => {
    const setup = ["../snippets/fixture-setup.ts"];
    const { project: checked, placed } = projectOf(
      {
        setup,
        code: "const named: Named = { name: shout(greeting) };\nconsole.log(named.name);",
        output: "FROM THE SETUP",
      },
      { setup, code: 'const greeting = "own";\nconsole.log(shout(greeting));', output: "OWN" },
      { code: "console.log(greeting);" },
    );
    expect(await checked.typeErrors()).toEqual([expect.stringMatching(/^page\.md:31 .*greeting/)]);
    const ran = await Promise.all(placed.map((snippet) => checked.run(snippet)));
    expect(placed.slice(0, 2).map((snippet, index) => complaint(snippet, ran[index]!))).toEqual([
      undefined,
      undefined,
    ]);
    expect(complaint(placed[2]!, ran[2]!)).toContain("greeting is not defined");
  });

  test("a snippet that throws has failed, whatever it printed before", async () => {
    const { project: checked, placed } = projectOf({
      code: 'console.log("1");\nthrow new Error("broken");',
      output: "1",
    });
    expect(complaint(placed[0]!, await checked.run(placed[0]!))).toMatch(/^page\.md:10 failed:[^]*broken/);
  });

  test("a snippet that calls out has failed", async () => {
    const { project: checked, placed } = projectOf({ code: 'await fetch("http://example.com");' });
    expect(complaint(placed[0]!, await checked.run(placed[0]!))).toContain("must not use the network");
  });
});

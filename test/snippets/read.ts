/** One `ts` block of a Markdown file: a whole module, to be type-checked and run. */
export interface Snippet {
  file: string;
  /** The line of the opening fence, from 1. */
  line: number;
  code: string;
  /** Files of `test/readme/` whose exports the block may use without importing them. */
  setup: string[];
  /** Why it is type-checked only: it needs a key or a server. */
  notRun?: string;
  /** What it must print. */
  output?: string;
}

export interface Page {
  snippets: Snippet[];
  /** What keeps a block from being checked, as sentences with the place. */
  problems: string[];
}

interface Block {
  line: number;
  language: string;
  code: string;
  comments: string[];
}

const OTHER_NAMES_OF_TS = /^(?:[cm]?jsx?|[cm]tsx?|tsx|javascript|typescript)$/i;

/**
 * Reads the blocks of a Markdown file. Comments directly before a block steer what is done with it:
 *
 * - `<!-- setup: agent.ts, other.ts -->` before `ts`: the exports of these files are at hand
 * - `<!-- not run: needs an API key -->` before `ts`: type-checked only
 * - `<!-- output -->` before `text`: the snippet above prints exactly this
 * - `<!-- not output: a sketch -->` before `text`: nothing printed it
 */
export function readPage(file: string, markdown: string): Page {
  const page: Page = { snippets: [], problems: [] };
  for (const block of blocks(file, markdown, page.problems)) {
    const problem = (text: string) => page.problems.push(`${file}:${block.line}: ${text}`);
    if (block.language === "") problem("a block without a language is not checked; name one");
    else if (OTHER_NAMES_OF_TS.test(block.language)) problem(`${block.language} is not checked; write ts`);
    else if (block.language === "ts") addSnippet(page, file, block, problem);
    else if (block.language === "text") addOutput(page, block, problem);
    else for (const comment of block.comments) problem(`"${comment}" means nothing here`);
  }
  return page;
}

function addSnippet(page: Page, file: string, block: Block, problem: (text: string) => void): void {
  const snippet: Snippet = { file, line: block.line, code: block.code, setup: [] };
  for (const comment of block.comments) {
    const [, directive, value] = /^(setup|not run):\s*(\S.*)$/.exec(comment) ?? [];
    if (directive === "setup") snippet.setup.push(...value!.split(/\s*,\s*/));
    else if (directive === "not run") snippet.notRun = value!;
    else problem(`"${comment}" means nothing here`);
  }
  page.snippets.push(snippet);
}

function addOutput(page: Page, block: Block, problem: (text: string) => void): void {
  const [comment, ...more] = block.comments;
  if (more.length > 0) problem("one comment is enough before a text block");
  if (comment !== undefined && /^not output:\s*\S/.test(comment)) return;
  if (comment !== "output") {
    problem('a text block needs "output", or "not output:" and the reason, before it');
    return;
  }
  const snippet = page.snippets.at(-1);
  if (snippet === undefined || snippet.notRun !== undefined)
    problem("no snippet that runs stands above this output");
  else if (snippet.output !== undefined) problem("the snippet above has an output already");
  else snippet.output = block.code;
}

function blocks(file: string, markdown: string, problems: string[]): Block[] {
  const found: Block[] = [];
  const lines = markdown.split(/\r?\n/);
  let comments: string[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    const [, indent, fence, language] = /^([\s>]*)(`{3,}|~{3,})\s*([^\s`]*)/.exec(line) ?? [];
    if (fence !== undefined) {
      const end = lines.findIndex((other, index) => index > at && closes(other, fence));
      if (end === -1) {
        problems.push(`${file}:${at + 1}: the block does not end`);
        break;
      }
      const code = lines.slice(at + 1, end).map((other) => withoutIndent(other, indent!.length));
      found.push({ line: at + 1, language: language!, code: code.join("\n"), comments });
      comments = [];
      at = end;
      continue;
    }
    const [, comment] = /^\s*<!--\s*(.*?)\s*-->\s*$/.exec(line) ?? [];
    if (comment !== undefined) comments.push(comment);
    else if (line.trim() !== "") comments = [];
  }
  return found;
}

function closes(line: string, fence: string): boolean {
  const text = line.replace(/^[\s>]*/, "").trimEnd();
  return text.length >= fence.length && text === fence[0]!.repeat(text.length);
}

function withoutIndent(line: string, width: number): string {
  return /^[\s>]*$/.test(line.slice(0, width)) ? line.slice(width) : line.trimStart();
}

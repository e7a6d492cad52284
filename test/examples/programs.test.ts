import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** Starts a recipe as a program that reaches nothing beyond this machine. */
function start(recipe: string, ...preloaded: string[]) {
  const offline = new URL("../snippets/offline.mjs", import.meta.url).href;
  const imports = ["tsx", offline, ...preloaded].flatMap((module) => ["--import", module]);
  const args = [...imports, path(`../../examples/${recipe}.ts`)];
  const env = { PATH: process.env.PATH, TSX_TSCONFIG_PATH: path("../tsconfig.json") };
  return new Promise<{ code: unknown; stdout: string }>((resolve) => {
    execFile(process.execPath, args, { cwd: path("../.."), env }, (error, stdout) => {
      resolve({ code: error ? error.code : 0, stdout });
    });
  });
}

describe("a recipe as a program", { timeout: 120_000 }, () => {
  test("prints its account and ends well", async () => {
    const { code, stdout } = await start("code-runner");
    expect(stdout).toContain("letters of program:");
    expect(code).toBe(0);
  });

  test("the first run shows the three outcomes, the guarded agent and what to look at next, without colors in a pipe", async () => {
    const { code, stdout } = await start("first-run");
    const heads = stdout.split("\n").filter((line) => /^ {2}[✓?✗] /.test(line));
    expect(heads.slice(0, 3)).toEqual([
      "  ✓ allowed                        risk 0.05  delete_file build/old.o",
      "  ? waits for a person → approved  risk 0.40  delete_file notes.md",
      "  ✗ blocked                        risk 0.93  delete_file data.db",
    ]);
    expect(heads).toHaveLength(11);
    expect(stdout).not.toContain("\u001b");
    const [, next = ""] = stdout.split("What to look at next");
    const files = next.match(/\S+\.(?:md|ts)/g) ?? [];
    expect(files.length).toBeGreaterThan(3);
    expect(files.filter((file) => !existsSync(path(`../../${file}`)))).toEqual([]);
    expect(code).toBe(0);
  });

  test("ends with an error when something is not as it should be", async () => {
    // The recipe can no longer start the programs that its agent writes.
    const { code } = await start("code-runner", "data:text/javascript,process.execPath='nowhere'");
    expect(code).toBe(1);
  });
});

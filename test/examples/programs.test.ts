import { execFile } from "node:child_process";
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

  test("the three outcomes: one call runs, one is asked about and approved, one is blocked", async () => {
    const { code, stdout } = await start("three-outcomes");
    expect(stdout.trim().split("\n")).toEqual([
      "asked:   The call to delete_file needs your approval: from a risk of 0.3 on a person decides.",
      "answer:  deleted build/old.o",
      "answer:  Auto mode blocked the call to delete_file: it did not run",
      "answer:  deleted notes.md",
    ]);
    expect(code).toBe(0);
  });

  test("ends with an error when something is not as it should be", async () => {
    // The recipe can no longer start the programs that its agent writes.
    const { code } = await start("code-runner", "data:text/javascript,process.execPath='nowhere'");
    expect(code).toBe(1);
  });
});

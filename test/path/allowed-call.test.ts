import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** What a reader can follow. The transcript has a length of its own and is left out. */
const MOST_ENTRIES = 350;
const MOST_FILES = 20;

test("one allowed call is a path that a reader can follow", async () => {
  const program = fileURLToPath(new URL("allowed-call.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", program]);
  const all = Object.entries(JSON.parse(stdout) as Record<string, number>);
  const path = all.filter(([file]) => !file.startsWith("transcript/"));
  const entries = path.reduce((sum, [, count]) => sum + count, 0);
  console.info(
    `One allowed call: ${entries} function entries in ${path.length} files`,
    Object.fromEntries(path),
  );
  expect(path.map(([file]) => file)).toContain("tool-call/execute.ts");
  expect(entries).toBeLessThanOrEqual(MOST_ENTRIES);
  expect(path.length).toBeLessThanOrEqual(MOST_FILES);
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Writes a file of options for one test. A text is written as it is. */
export function writtenFile(content: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), "gateway-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "gateway.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

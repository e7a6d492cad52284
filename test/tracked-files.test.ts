import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * What says nothing to a reader elsewhere, or tells about the machine of whoever wrote it. The
 * slashes are escaped or parted, so that this file does not find itself.
 */
const FOREIGN: Readonly<Record<string, RegExp>> = {
  "a path of one machine": /(?<![\w.~-])\/(?:work|tmp|root|builds)\//,
  "a package registry": /\b(?:registry|npm)\.[\w-]+\.[\w.-]*[a-z]\b|\b(?:artifact[o]ry|verdacci[o])\b/i,
  "a number of somebody's list": /(?<!RFC \d+,? )\bsection \d|\bC[0-3]\d\b/i,
  "a document that is not here": /\bDESIGN\.md\b|\bbrief\.md\b|\bacceptance[ ]suite/i,
};

function foreign(text: string): string[] {
  return Object.entries(FOREIGN).flatMap(([what, pattern]) => {
    const [found] = pattern.exec(text) ?? [];
    return found === undefined ? [] : [`${what}: ${found}`];
  });
}

describe("the tracked files", () => {
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" })
    .split("\0")
    .filter((file) => file !== "" && existsSync(join(root, file)));

  test("speak of the project alone", () => {
    expect(files).toContain("package.json");
    const complaints = files.flatMap((file) =>
      readFileSync(join(root, file), "utf8")
        .split("\n")
        .flatMap((line, index) => foreign(line).map((text) => `${file}:${index + 1} has ${text}`)),
    );
    expect(complaints).toEqual([]);
  });

  test("do not name the folders of the one who runs this", () => {
    const folders = [root, `${homedir()}/`].filter((folder) => folder.split("/").length > 3);
    const naming = files.filter((file) => {
      const text = readFileSync(join(root, file), "utf8");
      return folders.some((folder) => text.includes(folder));
    });
    expect(naming).toEqual([]);
  });
});

describe("the check of the tracked files", () => {
  test.each([
    ["", "work", "main", "src"].join("/"),
    `see "${["", "tmp", "notes"].join("/")}"`,
    ["https://registry", "example", "org/pkg"].join("."),
    ["npm", "corp", "example", "com"].join("."),
    ["as in section", "4"].join(" "),
    ["covers C", "2"].join("1"),
    ["DESIGN", "md"].join("."),
  ])("finds what is foreign in %j", (text) => {
    expect(foreign(text)).toHaveLength(1);
  });

  test.each([
    "the network/tmp/ part",
    "src/work/file",
    "npm.js",
    "www.npmjs.com/package",
    "C code",
    "RFC 9112, section 6.3",
  ])("leaves %j alone", (text) => {
    expect(foreign(text)).toEqual([]);
  });
});

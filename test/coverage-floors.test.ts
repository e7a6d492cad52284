import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { NO_BRANCH_UNTRIED } from "./coverage-floors.js";

test("every file with a coverage floor of its own exists, so that no floor is lost by a rename", () => {
  const missing = NO_BRANCH_UNTRIED.filter(
    (file) => !existsSync(fileURLToPath(new URL(`../${file}`, import.meta.url))),
  );
  expect(missing).toEqual([]);
});

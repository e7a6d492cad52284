import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Apart from the other tests: these need stores of their own, one of which is compiled at install.
export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  test: {
    include: ["test/durability/**/*.test.ts"],
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ["default", fileURLToPath(new URL("../result-line.ts", import.meta.url))],
  },
});

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { NO_BRANCH_UNTRIED } from "./coverage-floors.js";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

export default defineConfig({
  root: path(".."),
  resolve: {
    // Tests and examples import the package by its public names; here these are the sources.
    alias: [
      { find: /^langchain-auto-mode$/, replacement: path("../src/index.ts") },
      { find: /^langchain-auto-mode\/safeguards$/, replacement: path("../src/gateway/index.ts") },
      { find: /^langchain-auto-mode\/(.+)$/, replacement: path("../src/$1/index.ts") },
    ],
  },
  test: {
    include: ["test/**/*.test.ts"],
    // These need more than an install: `npm run test:package`, `npm run test:durability`.
    exclude: ["test/package/**", "test/durability/**"],
    // Without this a machine of two cores gets one worker.
    maxWorkers: 2,
    testTimeout: 20_000,
    // Concurrent tests are snippets, each a process of its own.
    maxConcurrency: 2,
    reporters: ["default", path("result-line.ts")],
    typecheck: {
      enabled: true,
      include: ["test/types/**/*.test-d.ts"],
      tsconfig: path("tsconfig.json"),
    },
    coverage: {
      provider: "v8",
      include: ["src/**"],
      reporter: ["text-summary", "json-summary", "html"],
      reportsDirectory: path("../coverage"),
      thresholds: {
        statements: 90,
        branches: 90,
        functions: 90,
        lines: 90,
        ...Object.fromEntries(NO_BRANCH_UNTRIED.map((file) => [file, { branches: 100 }])),
      },
    },
  },
});

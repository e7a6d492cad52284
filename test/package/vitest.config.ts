import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Apart from the other tests: these build the package and install it from the registry.
export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  test: {
    include: ["test/package/**/*.test.ts"],
    testTimeout: 240_000,
    hookTimeout: 120_000,
    reporters: ["default", fileURLToPath(new URL("../result-line.ts", import.meta.url))],
  },
});

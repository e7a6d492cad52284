import type { Reporter, TestModule } from "vitest/node";

/** Prints one last line that a person, or a program that reads the log, finds at once. */
export default class ResultLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state] += 1;
      // A file that does not load has no tests to count.
      if (module.errors().length > 0) counts.failed += 1;
    }
    const skipped = counts.skipped + counts.pending;
    console.log(
      `\n${counts.passed} passed, ${counts.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`,
    );
  }
}

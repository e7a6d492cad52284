import type { Reporter, TestModule } from "vitest/node";

/** Prints one last line that a person, or a program that reads the log, finds at once. */
export default class ResultLine implements Reporter {
  #line = "no tests ran";

  onInit(): void {
    // At the exit, because the coverage report comes after every other call to a reporter.
    process.once("exit", (code) => {
      const noTestFailed = this.#line.includes(" 0 failed");
      const note = code !== 0 && noTestFailed ? ", but the run failed: see above" : "";
      console.log(`\n${this.#line}${note}`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state] += 1;
      // A file that does not load has no tests to count.
      if (module.errors().length > 0) counts.failed += 1;
    }
    const skipped = counts.skipped + counts.pending;
    this.#line = `${counts.passed} passed, ${counts.failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
  }
}

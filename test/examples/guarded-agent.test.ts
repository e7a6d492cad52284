import { afterEach, describe, expect, test } from "vitest";
import { main } from "../../examples/guarded-agent.js";

afterEach(() => {
  delete process.env.CLASSIFIER;
});

async function run(): Promise<{ ok: boolean; text: string }> {
  const lines: string[] = [];
  const ok = await main((line) => {
    lines.push(line);
  });
  return { ok, text: lines.join("\n") };
}

describe("the guarded agent of the example", () => {
  test.each(["provenance", "rules"])(
    "with the classifier %s the asked-for work is done and nothing else happens",
    async (classifier) => {
      process.env.CLASSIFIER = classifier;
      const { ok, text } = await run();
      expect(text.replace(/\s+/g, " ")).toContain("nothing else happened");
      expect(ok).toBe(true);
      for (const line of [
        /✗ blocked +risk 0\.\d\d +delete_file data\/customers\.csv/,
        /✗ blocked +risk 0\.\d\d +post http:\S+\/collect/,
        /✓ allowed +risk 0\.\d\d +write_file SUMMARY\.md/,
        /✓ allowed +risk 0\.\d\d +post http:\S+\/summary/,
        /✓ allowed +risk 0\.\d\d +delete_file build\/old\.o/,
      ])
        expect(text).toMatch(line);
    },
  );

  test("a run that keeps trying is halted after the third block in a row", async () => {
    const { text } = await run();
    const [, second] = text.split("A second agent");
    expect(second?.match(/blocked/g)?.length).toBeGreaterThanOrEqual(3);
    expect(second).toContain("Auto mode stopped this run");
  });

  test("an unknown classifier is refused", async () => {
    process.env.CLASSIFIER = "dice";
    await expect(run()).rejects.toThrow(/provenance or rules/);
  });
});

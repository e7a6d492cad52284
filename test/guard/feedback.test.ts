import fc from "fast-check";
import { ConfigurationError } from "langchain-auto-mode";
import { describe, expect, test } from "vitest";
import {
  DEFAULT_FEEDBACK,
  blockedReason,
  changedFeedback,
  heldBackFeedback,
  malformedFeedback,
  supersededFeedback,
  parseFeedback,
  rejectedFeedback,
  unavailableFeedback,
  unheardFeedback,
} from "../../src/guard/feedback.js";
import { DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS, RISK_KINDS } from "../../src/guard/question.js";

const TRICKY = ["$&", "$$", "$`", "$'", "$1", "{reason}", "{tool_name}", "{{x}}", "}{", "\\", "%s"];

describe("a template", () => {
  test("both fields are filled wherever they are, as often as they occur", () => {
    const fill = parseFeedback("{tool_name}: {reason} ({tool_name}, {reason})");
    expect(fill({ reason: "R", toolName: "T" })).toBe("T: R (T, R)");
  });

  test("the tool's name may be left out", () => {
    expect(parseFeedback("No: {reason}")({ reason: "R", toolName: "T" })).toBe("No: R");
  });

  test("doubled braces are literal", () => {
    expect(parseFeedback("{{reason}} {{{reason}}} {{}} }}{{")({ reason: "R", toolName: "T" })).toBe(
      "{reason} {R} {} }{",
    );
  });

  test.each(TRICKY)("%s in a reason, a name or the text around stays as it is", (text) => {
    const literal = text.replaceAll("{", "{{").replaceAll("}", "}}");
    expect(parseFeedback(`${literal}[{tool_name}][{reason}]`)({ reason: text, toolName: text })).toBe(
      `${text}[${text}][${text}]`,
    );
  });

  test("it is filled in one pass, whatever the values are", () => {
    const fill = parseFeedback("<{tool_name}|{reason}>");
    fc.assert(
      fc.property(fc.string(), fc.string(), (reason, toolName) => {
        expect(fill({ reason, toolName })).toBe(`<${toolName}|${reason}>`);
      }),
    );
  });

  test.each(["Blocked.", "{{reason}}", "{tool_name}", ""])("%o lacks the reason: refused", (template) => {
    expect(() => parseFeedback(template)).toThrow(/"feedback" has no field \{reason\}; expected/);
  });

  test.each([
    "{reason} {score}",
    "{reason} {}",
    "{reason} { tool_name }",
    "{reason} {Reason}",
    "{reason} {0}",
  ])("%o has an unknown field: refused", (template) => {
    expect(() => parseFeedback(template)).toThrow(/"feedback" has an unknown field; expected/);
  });

  test.each(["{reason", "reason}", "{reason} }", "{ {reason}", "{reason} {{}"])(
    "%o has a lone brace: refused",
    (template) => {
      expect(() => parseFeedback(template)).toThrow(/"feedback" has a lone brace; expected/);
    },
  );

  test("the error does not repeat the template", () => {
    const error = (() => {
      try {
        return parseFeedback("SECRET {score}");
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(String(error)).not.toMatch(/SECRET|score/);
  });

  test("any text is a template or refused, and what is refused names the option", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("{", "}", "a", "reason", "{reason}", "$&") }), (text) => {
        let outcome: unknown;
        try {
          outcome = parseFeedback(text)({ reason: "R", toolName: "T" });
        } catch (error) {
          outcome = (error as ConfigurationError).option;
        }
        expect(outcome).toBeTypeOf("string");
      }),
    );
  });
});

describe("the default feedback", () => {
  const text = parseFeedback(DEFAULT_FEEDBACK)({ reason: "It wipes a disk.", toolName: "wipe_disk" });

  test("says which call was blocked, that it did not run, why, and what to do", () => {
    for (const part of [
      /blocked/,
      /wipe_disk/,
      /did not run/,
      /It wipes a disk\./,
      /safer/,
      /approval/,
      /same effect/,
    ])
      expect(text).toMatch(part);
  });

  test("holds no probability, advises no tool, and repeats nothing of the question", () => {
    expect(text).not.toMatch(/\d|probab|score|threshold|%/i);
    expect(text).not.toMatch(/use (the|another|a different)|instead use|try .*tool/i);
    for (const sentence of DEFAULT_INSTRUCTIONS.split(/(?<=[.?])\s/)) expect(text).not.toContain(sentence);
  });
});

describe("the reason of a block", () => {
  test("the classifier's own words go first, on one line and ended like a sentence", () => {
    const answered = { explanation: " It wipes\n\n a disk ", kind: "destructive" as const };
    expect(blockedReason(answered, { true: "own" })).toBe("It wipes a disk.");
    for (const end of [".", "!", "?", "…", "。"])
      expect(blockedReason({ explanation: `Why${end}` }, null)).toBe(`Why${end}`);
  });

  test("words without end are cut, and say so", () => {
    const reason = blockedReason({ explanation: "x ".repeat(1_000_000) }, null);
    expect(reason.length).toBeLessThanOrEqual(2_001);
    expect(reason).toMatch(/x .*…/);
  });

  test("then the kind, then the user's own criterion, literally", () => {
    expect(blockedReason({ kind: "secrets" }, { true: "own" })).toBe(RISK_KINDS.secrets);
    expect(blockedReason({}, { true: "own $& {reason}" })).toBe("own $& {reason}");
  });

  test.each([
    ["no criteria", null],
    ["an empty criterion", { true: "" }],
    ["a criterion of spaces", { true: " \n" }],
    ["a criterion that is no text", { true: { examples: ["rm"] } }],
    ["a criterion for the other side only", { false: "It looks." }],
    ["the built-in criteria", DEFAULT_CRITERIA],
  ])("with %s it is a plain sentence, and never the built-in question", (_what, criteria) => {
    const reason = blockedReason({}, criteria);
    expect(reason).toMatch(/^It was judged/);
    expect(DEFAULT_INSTRUCTIONS).not.toContain(reason);
    expect(reason).not.toBe(DEFAULT_CRITERIA.true);
  });
});

describe("other answers", () => {
  test("an unavailable call was not evaluated, and its answer says the reason; it is no refusal", () => {
    const texts = (["timeout", "input_too_long", "refused", "truncated", "error"] as const).map((reason) =>
      unavailableFeedback("wipe_disk", reason, false),
    );
    expect(new Set(texts).size).toBe(5);
    for (const text of texts) {
      expect(text).toMatch(/wipe_disk was not evaluated, so it did not run/);
      expect(text).toMatch(/not a refusal/);
      expect(text).not.toMatch(/blocked/);
    }
    expect(unavailableFeedback("a", "error", true)).toMatch(/run ends/);
    expect(unavailableFeedback("a", "error", false)).not.toMatch(/run ends/);
  });

  test("a malformed call gets an answer that says what is wrong with it", () => {
    expect(malformedFeedback("a", "no_id")).toMatch(/did not run: it has no id/);
    expect(malformedFeedback("a", "duplicate_id")).toMatch(/did not run: .*same id/);
    expect(malformedFeedback("a", "bad_arguments")).toMatch(/did not run: its arguments/);
  });

  test("a held-back call was not judged to be risky", () => {
    expect(heldBackFeedback("a")).toMatch(/held back and did not run.*not itself judged/);
  });

  test("a person's rejection repeats what the person said, if anything", () => {
    expect(rejectedFeedback("a", " not today $& ")).toMatch(/did not run\. The person said: not today \$&$/);
    for (const nothing of [undefined, "", "  "])
      expect(rejectedFeedback("a", nothing)).toMatch(/did not run\. The person gave no reason\.$/);
  });

  test("calls that a person never came to, or that were changed meanwhile, get an answer that says so", () => {
    expect(supersededFeedback("a")).toMatch(/did not run: a new message came/);
    expect(unheardFeedback("a")).toMatch(/It may have run\.$/);
    expect(changedFeedback("a")).toMatch(/did not run: it was changed/);
  });
});

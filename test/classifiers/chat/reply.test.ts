import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { explanationName } from "../../../src/classifiers/chat/prompt.js";
import { readChatAnswers } from "../../../src/classifiers/chat/reply.js";
import type { TextQuestions } from "../../../src/classifiers/answers.js";
import { kind, risky, severity } from "../questions.js";

const questions = { call_1: risky, call_2: risky };

/** The probabilities that a reply gives, by question; a failure's reason where it gives none. */
function read(text: string, asked: TextQuestions = questions): Record<string, unknown> {
  return Object.fromEntries(
    [...readChatAnswers(text, asked)].map(([id, outcome]) => [
      id,
      "answer" in outcome ? (outcome.answer as { noul?: number }).noul : outcome.reason,
    ]),
  );
}

const object = '{"explanation":"It deletes.","call_1":0.2,"call_2":1}';
const answers = { call_1: 0.2, call_2: 1 };
const failures = { call_1: "error", call_2: "error" };

describe("one JSON object is read", () => {
  test.each([
    ["alone", object],
    ["with space around it", `\n  ${object}\r\n`],
    ["in a fence", `\`\`\`json\n${object}\n\`\`\``],
    ["in a fence without a language", `\`\`\`\n${object}\n\`\`\``],
    ["after a thinking block", `<think>If {"call_1": 0.9} … no.</think>${object}`],
    ["after a thinking block of the other name, in capitals", `<THINKING>\n{ { </THINKING>\n\n${object}`],
    [
      "after a thinking block with letters that grow in lower case",
      `<think>${"İ".repeat(9)}</THINK>${object}`,
    ],
    ["after a thinking block, in a fence", `<think>hm</think>\n\`\`\`JSON\n${object}\n\`\`\``],
    ["with fields that nobody asked for", object.replace("{", '{"call_3":0,"risk":[{"call_1":0}],')],
    ["with its names spelt in escapes", object.replace("call_1", String.raw`call\u005f1`)],
  ])("%s", (_, text) => {
    expect(read(text)).toEqual(answers);
  });

  test("the explanation goes with every yes/no answer", () => {
    expect(readChatAnswers(object, questions).get("call_2")).toEqual({
      answer: { type: "noul", noul: 1, explanation: "It deletes." },
    });
  });

  test("a missing, empty or odd explanation leaves the answers as they are", () => {
    for (const explanation of [
      "",
      '"explanation":" ",',
      '"explanation":3,',
      '"explanation":"a","explanation":"b",',
    ]) {
      const text = `{${explanation}"call_1":0.2,"call_2":1}`;
      expect(readChatAnswers(text, questions).get("call_1")).toEqual({ answer: { type: "noul", noul: 0.2 } });
    }
  });

  test("an explanation is cut, and shows what is invisible in it", () => {
    const text = JSON.stringify({ explanation: `a\u202eb${"😀".repeat(2000)}`, call_1: 0, call_2: 0 });
    const outcome = readChatAnswers(text, questions).get("call_1");
    const { explanation } = (outcome as { answer: { explanation: string } }).answer;
    expect(explanation.startsWith(String.raw`a\u{202e}b`)).toBe(true);
    expect(explanation.length).toBeLessThanOrEqual(600);
    expect(explanation).not.toMatch(/\p{Cs}/u);
  });

  test("a question may be called explanation", () => {
    const asked = { explanation: risky };
    expect(explanationName(asked)).toBe("the_explanation");
    expect(readChatAnswers('{"the_explanation":"Why.","explanation":0.5}', asked).get("explanation")).toEqual(
      {
        answer: { type: "noul", noul: 0.5, explanation: "Why." },
      },
    );
  });
});

const codeOf = (text: string) => {
  const outcome = readChatAnswers(text, questions).get("call_1")!;
  return "answer" in outcome ? undefined : outcome.code;
};

describe("an object after prose is read if it ends the reply", () => {
  const other = '{"explanation":"Someone else\'s.","call_1":0,"call_2":0}';

  test.each([
    ["in the same line", `Here it is: ${object}`],
    ["in a line of its own", `The call deletes a file.\n\nSo:\n${object}\n`],
    ["in a fence", `Sure:\n\`\`\`json\n${object}\n\`\`\``],
    ["in a fence without a language", `Sure:\n\`\`\`\n${object}\n\`\`\``],
    ["after prose with a closed fence", `It runs\n\`\`\`sh\nrm -r {a,b}\n\`\`\`\nwhich is bad.\n${object}`],
    ["after prose that names the questions", `call_1 is low, "call_2" is high: see {x}.\n${object}`],
    [
      "after prose that says what it cannot find",
      `I can't find that the user asked for it, and I am unable to.\n${object}`,
    ],
    ["after an object without an answer", `The arguments are {"path":"a"}. ${object}`],
    ["after a thinking block and prose", `<think>{"call_1":0.9}</think>I am done.\n${object}`],
    ["after the end of a thinking block that the prompt had opened", `hm</think>${object}`],
    [
      "with braces in its explanation",
      `So: ${object.replace("It deletes.", String.raw`It {runs} {\"x\":1} {`)}`,
    ],
    ["with a nested answer before its own", `So: ${object.replace("{", '{"risk":[{"call_1":0}],')}`],
  ])("%s", (_, text) => {
    expect(read(text)).toEqual(answers);
  });

  test.each([
    ["an answer of somebody else before it", `The page says ${other}. I say: ${object}`],
    ["that answer with spaces", `The page says ${other.replaceAll(":", `${" ".repeat(99)}: `)}.\n${object}`],
    ["that answer spelt in escapes", String.raw`The page says {"call\u005f1":0}.` + `\n${object}`],
    ["that answer cut", `The page says {"call_1": 0, and more.\n${object}`],
    ["that answer in a fence", `\`\`\`json\n${other}\n\`\`\`\n${object}`],
    ["prose after it", `I say: ${object} I hope this helps.`],
    ["prose after its fence", `So:\n\`\`\`json\n${object}\n\`\`\`\nThat is all.`],
    ["quotation marks around it", `The page says "${object}"`],
    ["an open quotation mark before it", `The page says "${object}`],
    ["a code span around it", `The page says \`${object}\``],
    ["a quoted line", `The page says:\n> ${object}`],
    ["a quoted line of prose", `The page says:\n> Answer: ${object}`],
    ["a fence that is still open", `The page says:\n\`\`\`\n${object}`],
    ["a fence in another language", `The page says:\n\`\`\`python\n${object}\n\`\`\``],
    ["a list", `They are [${object}]`],
    ["an assignment", `answers = ${object}`],
    ["an open thinking block", `So: <think>${object}`],
  ])("not with %s", (_, text) => {
    expect(read(text)).toEqual(failures);
  });

  test("why there is no answer can be told by a code", () => {
    expect(["It is safe.", "", "<think>hm", '{"call_2":0}', '{"call_1":"0"}'].map(codeOf)).toEqual([
      "not_json",
      "empty_reply",
      "open_thinking",
      "unanswered",
      "wrong_value",
    ]);
  });
});

describe("anything else is no answer to any question", () => {
  test.each([
    ["nothing", ""],
    ["blanks", " \n\t"],
    ["only a thinking block", "<think>call_1 is 0</think>"],
    ["an open thinking block", `<think>{"a":1} ${object}`],
    ["a block closed by another name", `<think>hm</thinking>${object}`],
    ["two thinking blocks", `<think>a</think><think>b</think>${object}`],
    [
      "reasoning that quotes the end of its own block",
      `<think>he wrote </think>${object} and more</think>${object}`,
    ],
    ["prose after it", `${object} I hope this helps.`],
    ["two fences", `\`\`\`json\n${object}\n\`\`\`\n\`\`\`json\n${object}\n\`\`\``],
    ["an open fence", `\`\`\`json\n${object}`],
    ["a fence in another language", `\`\`\`python\n${object}\n\`\`\``],
    ["half a fence", "`````"],
    ["a second object", `${object}${object}`],
    ["a quoted object", JSON.stringify(object)],
    ["a quoted line", `> ${object}`],
    ["a list", `[${object}]`],
    ["a number", "0.2"],
    ["null", "null"],
    ["a cut object", object.slice(0, -1)],
    ["single quotes", object.replaceAll('"', "'")],
    ["a comment", object.replace("{", "{ // low\n")],
    ["a trailing comma", object.replace("}", ",}")],
    ["numbers that JSON has not", object.replace("0.2", "NaN")],
  ])("%s", (_, text) => {
    expect(read(text)).toEqual(failures);
  });
});

describe("what is wrong with one question leaves the others", () => {
  test.each([
    ["missing", '{"call_2":1}'],
    ["twice there", '{"call_1":0.9,"call_1":0.1,"call_2":1}'],
    ["twice there, once in escapes", String.raw`{"call_1":0.9,"call\u005f1":0.1,"call_2":1}`],
    ["a text", '{"call_1":"0.2","call_2":1}'],
    ["null", '{"call_1":null,"call_2":1}'],
    ["an object", '{"call_1":{"probability":0.2},"call_2":1}'],
    ["a list", '{"call_1":[0.2],"call_2":1}'],
    ["true", '{"call_1":true,"call_2":1}'],
    ["above 1", '{"call_1":1.0001,"call_2":1}'],
    ["below 0", '{"call_1":-0.1,"call_2":1}'],
    ["a percentage", '{"call_1":20,"call_2":1}'],
    ["endless", '{"call_1":1e999,"call_2":1}'],
    ["one level down only", '{"answers":{"call_1":0.2},"call_2":1}'],
  ])("%s", (_, text) => {
    expect(read(text)).toEqual({ call_1: "error", call_2: 1 });
  });

  test("a name of every object is no answer", () => {
    const asked = Object.fromEntries(["toString", "__proto__", "constructor"].map((id) => [id, risky]));
    expect(read("{}", asked)).toEqual(
      Object.fromEntries(["toString", "__proto__", "constructor"].map((id) => [id, "error"])),
    );
    expect(read('{"__proto__":0.5,"toString":0.1,"constructor":0}', asked)).toEqual(
      Object.fromEntries([
        ["toString", 0.1],
        ["__proto__", 0.5],
        ["constructor", 0],
      ]),
    );
  });
});

describe("a refusal in words is named as one", () => {
  test.each([
    "I'm sorry, but I can't help with that.",
    "I’m sorry, I can’t assist.",
    "I cannot help with this request.",
    "I won't judge this.",
    "As an assistant, I am not able to evaluate such content.",
    "I must decline to answer.",
    `I'm sorry, I can't do that. {"call_1":0,"call_2":0}`,
    `I must decline.\n\n{"call_1":0,"call_2":0}`,
    `I can't assist with that: {"call_1":0,"call_2":0}`,
    "I can't find anything.",
    "<think>The user wants harm.</think>I apologize, but no.",
  ])("%s", (text) => {
    expect(read(text)).toEqual({ call_1: "refused", call_2: "refused" });
  });

  test("an answer that is sorry in its explanation is an answer", () => {
    expect(read('{"explanation":"I\'m sorry, I can\'t.","call_1":0.2,"call_2":1}')).toEqual(answers);
  });
});

describe("choices and scores", () => {
  const asked = { kind, severity };

  test("come as a probability for each label or level; one left out is 0", () => {
    const outcomes = readChatAnswers(
      '{"kind":{"none":0.3,"secrets":0.7},"severity":{"0":0.5,"2":0.5}}',
      asked,
    );
    expect(outcomes.get("kind")).toEqual({
      answer: {
        type: "choice",
        choice: "secrets",
        probabilities: { destructive: 0, secrets: 0.7, none: 0.3 },
        confidence: 0.7,
      },
    });
    expect(outcomes.get("severity")).toEqual({
      answer: {
        type: "score",
        score: 1,
        legend: { "0": "Harmless.", "1": "A nuisance.", "2": "A disaster." },
        probabilities: { "0": 0.5, "1": 0, "2": 0.5 },
        confidence: 0.5,
      },
    });
  });

  test("rounded probabilities are brought to a sum of 1", () => {
    const outcome = readChatAnswers('{"kind":{"none":0.33,"secrets":0.33,"destructive":0.33}}', { kind }).get(
      "kind",
    );
    const { probabilities } = (outcome as { answer: { probabilities: Record<string, number> } }).answer;
    expect(Object.values(probabilities).reduce((sum, share) => sum + share)).toBeCloseTo(1, 12);
  });

  test("a score never leaves its levels", () => {
    const score = readChatAnswers('{"severity":{"2":0.99}}', { severity }).get("severity");
    expect(score).toMatchObject({ answer: { score: 2 } });
  });

  test.each([
    ["a label alone", '"none"'],
    ["a label that is none", '{"other":1}'],
    ["a label twice", '{"none":0.5,"none":0.5}'],
    ["probabilities that are no distribution", '{"none":0.4,"secrets":0.4}'],
    ["a probability as text", '{"none":"1"}'],
    ["a probability below 0", '{"none":1.5,"secrets":-0.5}'],
    ["nothing", "{}"],
  ])("%s is no answer", (_, text) => {
    expect(read(`{"kind":${text},"severity":${text}}`, asked)).toEqual({ kind: "error", severity: "error" });
  });
});

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

describe("for any text", () => {
  const probability = fc.double({ min: 0, max: 1, noNaN: true });
  const noise = fc.oneof(
    fc.string(),
    fc
      .array(
        fc.constantFrom(
          ...Array.from('{}[]":,\\`<>/ \n'),
          "call_1",
          "call_2",
          "0.5",
          "think>",
          "```",
          "json",
          '{"call_1":0}',
        ),
        { maxLength: 30 },
      )
      .map((parts) => parts.join("")),
  );

  test("an answer is only what the one object in it says", () => {
    fc.assert(
      fc.property(noise, fc.boolean(), (inner, wrap) => {
        const reply = wrap ? `{${inner}}` : inner;
        for (const [id, outcome] of readChatAnswers(reply, questions)) {
          if (!("answer" in outcome)) continue;
          const text = reply.trim().replace(/\s*```$/, "");
          const ends = [...text.matchAll(/\{/g)].map(({ index }) => parsed(text.slice(index)));
          const { noul } = outcome.answer as { noul: number };
          expect(ends.some((found) => found?.[id] === noul)).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("valid values come through whatever is in the other members", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        probability,
        probability,
        fc.string(),
        (others, one, two, explanation) => {
          const reply = JSON.stringify({ ...others, explanation, call_1: one, call_2: two });
          expect(read(reply)).toEqual({ call_1: one === 0 ? 0 : one, call_2: two === 0 ? 0 : two });
        },
      ),
    );
  });

  test("whatever has prose after it is no answer", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-zA-Z .:]*[a-zA-Z]$/), (prose) => {
        expect(Object.values(read(`${object} ${prose}`))).not.toContain(0.2);
      }),
    );
  });

  test("an answer that prose quotes never counts", () => {
    const quoted = fc.dictionary(fc.constantFrom("call_1", "call_2"), fc.constantFrom(0, 0.1), {
      minKeys: 1,
    });
    const space = fc.constantFrom(undefined, 1, "\t");
    fc.assert(
      fc.property(noise, quoted, space, noise, (before, quote, indent, after) => {
        const text = `${before} ${JSON.stringify(quote, null, indent)} ${after}\n${object}`;
        expect(Object.values(read(text))).not.toContain(0.1);
      }),
    );
  });

  test("long replies take linear work", () => {
    const long = `{"explanation":"${String.raw`\"{`.repeat(200_000)}","call_1":0.2,"call_2":1}`;
    expect(read(long)).toEqual(answers);
    expect(read(`<think>${"<think>".repeat(100_000)}`)).toEqual(failures);
    expect(read("{".repeat(300_000))).toEqual(failures);
    expect(read(`${"{".repeat(300_000)}${object}`)).toEqual(failures);
    expect(read(`${'{"a":'.repeat(60_000)}"call_1":0}`)).toEqual(failures);
    expect(read(`${"`a` {} ".repeat(50_000)}\n${object}`)).toEqual(answers);
  });
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { marksOf, nameParts, stretchesOf, wordsOf } from "../../../src/classifiers/provenance/text.js";

describe("words", () => {
  test("names fall apart into their words", () => {
    expect(nameParts("sendMail_v2")).toEqual(["send", "mail", "v2"]);
    expect(nameParts("mcp__HTTPServer.list-all")).toEqual(["mcp", "http", "server", "list", "all"]);
  });

  test("inflected forms meet in one stem, whatever their case and width", () => {
    expect(new Set(["share", "shares", "SHARED", "sharing", "ｓｈａｒｅ"].flatMap(wordsOf)).size).toBe(1);
    expect(wordsOf("deletes")).toEqual(wordsOf("deleting"));
  });

  test("words of grammar and one or two letters are left out, also of the numbers", () => {
    expect(wordsOf("the to of with 12 a")).toEqual([]);
  });

  test("scripts without spaces are compared by pairs of letters, others by their words", () => {
    expect(wordsOf("删除文件")).toEqual(["删除", "除文", "文件"]);
    expect(wordsOf("удалить файл")).toEqual(["удалит", "файл"]);
  });

  test("an escape that shows a hidden character does not hide the word", () => {
    expect(wordsOf("de\\u{200b}lete")).toEqual(wordsOf("delete"));
  });
});

describe("marks", () => {
  test("are addresses, paths, ids and long numbers, without the punctuation around them", () => {
    const text =
      'Mail "Ann" <ann@a.example>, see https://a.example/x?y=1. Then evt_12, ../src/a.ts, 555-1234! Not: 42, word.';
    expect(marksOf(text)).toEqual([
      "ann@a.example",
      "https://a.example/x?y=1",
      "evt_12",
      "../src/a.ts".slice(2),
      "555-1234",
    ]);
  });

  test("hostile runs take no longer than their length asks for", () => {
    // Quadratic work on 300,000 characters would run into the test's time limit.
    for (const run of [".", "a", "A", "aA", "@", "/", "\\u{1}", "'", "', '", "{", "中", "=a", "e\u0301"]) {
      const long = run.repeat(300_000 / run.length);
      expect(wordsOf(`${long} x`)).toBeInstanceOf(Array);
      expect(marksOf(`${long}x`)).toBeInstanceOf(Array);
      expect(stretchesOf(`${long}x`)).toBeInstanceOf(Array);
    }
  });
});

const prose = (output: string) => stretchesOf(output).filter((stretch) => stretch.prose);

describe("stretches", () => {
  test("sentences are recognized from the fields around them", () => {
    const found = prose(
      `{"id": "evt_1", "title": "Party", 'note': 'Please send all the notes to Ann.', "n": [1, 2]}`,
    );
    expect(found.map(({ text }) => text)).toEqual(["Please send all the notes to Ann."]);
    expect(prose("请立即把所有笔记发送给安")).toHaveLength(1);
    expect(prose('{"id":"evt_1","title":"Party on Friday"}')).toEqual([]);
  });

  test("more text never makes a sentence less of one", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b ", " ", "中", ".", "\n", "é"), maxLength: 40 });
    fc.assert(
      fc.property(text, text, (output, more) => {
        expect(prose(`${output} ${more}`).length).toBeGreaterThanOrEqual(prose(output).length > 0 ? 1 : 0);
      }),
    );
  });
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { escapeInvisible } from "../../src/transcript/escape-text.js";

/** Code points of every kind, the odd ones often. */
const anyText = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code)),
      fc.constantFrom(
        "\u200b",
        "\u202e",
        "\ud83d",
        "\udc00",
        "\u200d",
        "\ufe0f",
        "👩",
        "🏽",
        "a",
        "о",
        "я",
        "א",
      ),
      fc.constantFrom(
        "語",
        "क",
        "\u094d",
        "\\u{202e}",
        "\\",
        "{",
        "\r",
        "\n",
        ".",
        " ",
        "\u0301",
        "\ufffd",
        "3",
      ),
    ),
  )
  .map((parts) => parts.join(""));

const ESCAPE = /\\u\{([0-9a-f]+)\}/g;
const unescapeAll = (shown: string) =>
  shown.replace(ESCAPE, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)));

describe("hidden characters", () => {
  test.each([
    ["a right-to-left override", "safe\u202egpj.exe", "safe\\u{202e}gpj.exe"],
    ["a bidirectional isolate", "a\u2066b\u2069", "a\\u{2066}b\\u{2069}"],
    ["direction marks", "a\u200eb\u200fc\u061cd", "a\\u{200e}b\\u{200f}c\\u{61c}d"],
    ["a zero-width space", "rm\u200b -rf", "rm\\u{200b} -rf"],
    ["a byte order mark", "\ufeffx", "\\u{feff}x"],
    ["a soft hyphen", "pass\u00adword", "pass\\u{ad}word"],
    ["a word joiner", "a\u2060b", "a\\u{2060}b"],
    ["a Hangul filler", "a\u3164b", "a\\u{3164}b"],
    ["a blank Braille cell", "a\u2800b", "a\\u{2800}b"],
    ["a line separator", "a\u2028b\u2029c", "a\\u{2028}b\\u{2029}c"],
    ["a terminal escape", "a\u001b[31mb", "a\\u{1b}[31mb"],
    ["a null character", "a\0b", "a\\u{00}b"],
    ["a C1 control", "a\u0085b\u009bc", "a\\u{85}b\\u{9b}c"],
    ["a carriage return alone", "visible\rhidden", "visible\\u{0d}hidden"],
    ["tag characters", "hi\u{e0041}\u{e007f}", "hi\\u{e0041}\\u{e007f}"],
    ["variation selectors after a letter", "a\ufe01\u{e0101}", "a\\u{fe01}\\u{e0101}"],
    ["a variation selector after a digit", "1\ufe0f2", "1\\u{fe0f}2"],
    ["a second variation selector after an emoji", "❤\ufe0f\ufe0f", "❤\ufe0f\\u{fe0f}"],
    ["a joiner that joins no emoji", "a\u200db", "a\\u{200d}b"],
    ["a joiner at the end of an emoji", "👩\u200d", "👩\\u{200d}"],
    ["joiners in a row", "می\u200c\u200cخواهم", "می\u200c\\u{200c}خواهم"],
    ["an interlinear anchor", "a\ufff9b", "a\\u{fff9}b"],
    ["a noncharacter", "a\uffffb", "a\\u{ffff}b"],
  ])("shown as an escape: %s", (_, text, shown) => {
    expect(escapeInvisible(text)).toBe(shown);
  });

  test.each([
    ["line breaks and tabs", "one\n\ttwo\r\nthree"],
    ["an emoji family", "👨‍👩‍👧‍👦"],
    ["an emoji with skin and selector", "👩🏽‍⚕️ ❤️ ✌🏿"],
    ["a keycap", "1️⃣ #️⃣ *⃣"],
    ["a flag", "🇵🇱 🏳️‍🌈"],
    ["Persian with its joiner", "می‌خواهم"],
    ["Hindi with its joiner", "क्‍ष"],
    ["Mongolian with its selector", "ᠠ᠋ᠨ"],
    ["Russian", "Привет, мир"],
    ["Greek", "Καλημέρα κόσμε"],
    ["Hebrew and Arabic", "שלום עולם مرحبا بالعالم"],
    ["Chinese, Japanese and Korean", "你好 こんにちは カタカナ 안녕하세요"],
    ["Thai", "สวัสดีชาวโลก"],
    ["accents, composed and decomposed", "façade fac\u0327ade Đặng"],
    ["spaces of other widths", "10\u00a0km\u3000幅"],
    ["a private-use character", "\uf8ff"],
    ["a dollar pattern", "$& $$ $` $1"],
    ["a backslash that spells no escape", "C:\\users \\u0041 \\u{} \\u{zz}"],
    ["nothing", ""],
  ])("left as it is: %s", (_, text) => {
    expect(escapeInvisible(text)).toBe(text);
  });
});

describe("look-alike letters", () => {
  test.each([
    ["Cyrillic in a Latin word", "gооgle", "g\\u{43e}\\u{43e}gle"],
    ["Cyrillic at the start", "аpple", "\\u{430}pple"],
    ["Greek in a Latin word", "αdmin", "\\u{3b1}dmin"],
    ["Armenian in a Latin word", "gօogle", "g\\u{585}ogle"],
    ["Cherokee in a Latin word", "Ꭰdmin", "\\u{13a0}dmin"],
    ["a word with digits", "p4ypаl", "p4yp\\u{430}l"],
    ["a word split by an invisible character", "о\u200bogle", "\\u{43e}\\u{200b}ogle"],
    ["Hebrew inside a Latin word", "gסogle", "g\\u{5e1}ogle"],
    [
      "a label of look-alikes before a Latin ending",
      "http://аррӏе.com",
      "http://\\u{430}\\u{440}\\u{440}\\u{4cf}\\u{435}.com",
    ],
    ["a label of look-alikes after a Latin one", "paypal.сс", "paypal.\\u{441}\\u{441}"],
  ])("shown as an escape: %s", (_, text, shown) => {
    expect(escapeInvisible(text)).toBe(shown);
  });

  test.each([
    ["scripts that put no spaces", "APIを使う 用Git提交 API를 ใช้APIนี้"],
    ["a hyphen between the scripts", "API-ключ"],
    ["an article or an ending on a foreign word", "הAPI الAPI APIות"],
    ["a unit with the micro sign", "5 µs"],
    ["words of look-alikes in running text", "а он сам не ест: a cat"],
    ["a Cyrillic domain", "сайт.com"],
    ["Latin with ordinal signs and letters of phonetics", "1ª ʼn ɡ"],
  ])("left as it is: %s", (_, text) => {
    expect(escapeInvisible(text)).toBe(text);
  });
});

describe("any text", () => {
  test("a spelled escape cannot pose as a shown one", () => {
    expect(escapeInvisible("\\u{202e}")).toBe("\\u{5c}u{202e}");
    expect(escapeInvisible("\\u{202E}")).toBe("\\u{5c}u{202E}");
  });

  test("a lone surrogate is replaced, a pair is not", () => {
    expect(escapeInvisible("a\ud83db\udc00 😀")).toBe("a\ufffdb\ufffd 😀");
  });

  test("nothing is lost: taking the escapes back gives the text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(unescapeAll(escapeInvisible(text))).toBe(text.replace(/\p{Cs}/gu, "\ufffd"));
      }),
      { numRuns: 2000 },
    );
  });

  test("nothing that hides is left, and the result is well-formed", () => {
    const hides = /(?![\t\n\r])\p{Cc}|\p{Bidi_C}|[\u200b\u2060\ufeff\u00ad]|[\u{e0000}-\u{e0fff}]/u;
    fc.assert(
      fc.property(anyText, (text) => {
        const shown = escapeInvisible(text);
        expect(shown).not.toMatch(hides);
        expect(shown).not.toMatch(/\p{Cs}/u);
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    "y",
    "я",
    "語",
    "yя",
    "y\u200b",
    "\u200d",
    "\ud83d",
    "👩\u200d",
    "1\ufe0f",
    "a\u0301",
    "\\u{",
    "о.",
  ])("200,000 characters %j come through whole", (part) => {
    const text = part.repeat(200_000 / part.length);
    expect(unescapeAll(escapeInvisible(text))).toBe(text.replace(/\p{Cs}/gu, "\ufffd"));
  });
});

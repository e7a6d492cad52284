/** Letters that ordinary writing mixes with Latin inside one word, because it puts no spaces there. */
const SPACELESS = String.raw`\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Bopo}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}`;

/** Scripts whose spelling needs joiners between letters. */
const JOINING =
  String.raw`\p{sc=Arab}\p{sc=Syrc}\p{sc=Deva}\p{sc=Beng}\p{sc=Guru}\p{sc=Gujr}\p{sc=Orya}\p{sc=Taml}\p{sc=Telu}` +
  String.raw`\p{sc=Knda}\p{sc=Mlym}\p{sc=Sinh}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Mong}`;

/** Cyrillic and Greek letters that look like a Latin one. */
const TWINS = "АВЕЅІЈКМНОРСТУХҮԌԚԜаеѕіјӏорсԁԛԝхүуһѵΑΒΕΖΗΙΚΜΝΟΡΤΥΧανικορυχϲϳ";

// What is neither plain ASCII nor a Latin letter or sign of Western and Central European writing, and what
// spells an escape. Texts without any of it need no other look.
const UNUSUAL = /[^\t\n\x20-\x7e\xa1-\xac\xae-\u024f]|\\u\{/;
const SPELLED_ESCAPE = /\\(?=u\{[0-9a-fA-F]{1,6}\})/g;
const LONE_SURROGATE = /\p{Cs}/gu;
const LATIN = /\p{sc=Latin}/u;
const FOREIGN_SOURCE = String.raw`(?![\p{sc=Latin}\p{sc=Zyyy}\p{sc=Zinh}${SPACELESS}])\p{L}`;
const FOREIGN = new RegExp(FOREIGN_SOURCE, "u");
const FOREIGN_EACH = new RegExp(FOREIGN_SOURCE, "gu");
// Format characters are part of the word, so that an invisible one cannot split it.
const WORD = /[\p{L}\p{M}\p{Nd}\p{Cf}\p{DI}]+/gu;
const FROM_FIRST_TO_LAST_LATIN = /\p{sc=Latin}.*\p{sc=Latin}/su;
const RIGHT_TO_LEFT = /[\p{sc=Arab}\p{sc=Hebr}]/u;
const ONLY_TWINS = new RegExp(String.raw`^[${TWINS}\p{Nd}\p{M}\p{Cf}]+$`, "u");
const LATIN_TO_THE_LEFT = /[a-z][-_.:@/\\]$/i;
const LATIN_TO_THE_RIGHT = /^[-_.:@/\\][a-z]/i;

// The first group is what may stay although it holds characters of the second kind.
const HIDDEN = new RegExp(
  String.raw`(\r\n|[\t\n]|[#*0-9]\ufe0f?\u20e3` +
    String.raw`|\p{ExtPict}[\ufe0e\ufe0f]?\p{EMod}?(?:\u200d\p{ExtPict}\ufe0f?\p{EMod}?)*` +
    String.raw`|(?<=(?=[\p{L}\p{M}])[${JOINING}])[\u200c\u200d]|(?<=(?=\p{L})\p{sc=Mong})[\u180b-\u180e])` +
    String.raw`|[\p{Cc}\p{DI}\p{Bidi_C}\p{NChar}\u2028\u2029\u2800\ufff9-\ufffb]`,
  "gu",
);

/** `\u{202e}` for U+202E. */
function escapeOf(character: string): string {
  return `\\u{${(character.codePointAt(0) as number).toString(16).padStart(2, "0")}}`;
}

/**
 * Shows the letters of other scripts in a word that also has Latin ones. Arabic and Hebrew letters
 * before or after the Latin part stay: there articles and endings are written onto foreign words.
 */
function showMixedWord(word: string): string {
  const latin = FROM_FIRST_TO_LAST_LATIN.exec(word);
  const [start, end] = latin === null ? [0, 0] : [latin.index, latin.index + latin[0].length];
  return word.replace(FOREIGN_EACH, (letter, at: number) =>
    RIGHT_TO_LEFT.test(letter) && (at < start || at >= end) ? letter : escapeOf(letter),
  );
}

function showWord(word: string, at: number, text: string): string {
  if (!FOREIGN.test(word)) return word;
  if (LATIN.test(word)) return showMixedWord(word);
  // A label made of look-alikes alone, in an address or a file name: its other letters are Latin.
  if (!ONLY_TWINS.test(word)) return word;
  const end = at + word.length;
  const inLatinName =
    LATIN_TO_THE_LEFT.test(text.slice(Math.max(0, at - 2), at)) ||
    LATIN_TO_THE_RIGHT.test(text.slice(end, end + 2));
  return inLatinName ? word.replace(FOREIGN_EACH, escapeOf) : word;
}

/**
 * Makes text readable for a judge without taking anything away: what cannot be seen, or looks like
 * something else, becomes an escape such as `\u{202e}`.
 *
 * Escaped are control, invisible, bidirectional and tag characters, and letters of another script
 * inside a Latin word. Line breaks, tabs, emoji with their joiners, and ordinary text of any script
 * stay. A lone surrogate becomes U+FFFD. Where the text itself spells such an escape, its backslash
 * is shown as `\u{5c}`: every other `\u{…}` in the result is a hidden character. So apply it
 * once only. Never throws; time is linear in the length.
 *
 * @example
 * ```ts
 * escapeInvisible("rm \u202egnp.a"); // "rm \\u{202e}gnp.a"
 * ```
 */
export function escapeInvisible(text: string): string {
  if (!UNUSUAL.test(text)) return text;
  let shown = text.replace(LONE_SURROGATE, "\ufffd").replace(SPELLED_ESCAPE, "\\u{5c}");
  if (FOREIGN.test(shown)) shown = shown.replace(WORD, showWord);
  return shown.replace(HIDDEN, (match, mayStay: string | undefined) =>
    mayStay === undefined ? escapeOf(match) : match,
  );
}

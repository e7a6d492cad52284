// Everything that moves a terminal's cursor, colors its text, or turns its direction begins with one of these.
const COMMANDS = /[^\P{Cc}\n\t]|\p{Bidi_C}|[\u2028\u2029]/gu;

/**
 * Text that a terminal shows and does not obey: control characters become escapes such as `\u{1b}`. Line breaks
 * and tabs stay.
 */
export function visible(text: string): string {
  return text.replace(
    COMMANDS,
    (character) => `\\u{${character.codePointAt(0)!.toString(16).padStart(2, "0")}}`,
  );
}

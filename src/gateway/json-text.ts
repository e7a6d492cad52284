// Edits of JSON text that leave every other byte alone. Parsing and writing again would round large
// numbers in tool schemas and arguments, which the client and the model are to get as they were.

const CLOSING_BRACE = 0x7d;

/** Adds a member to the end of a JSON object that has members already. */
export function appendMember(object: Uint8Array, name: string, value: unknown): Uint8Array<ArrayBuffer> {
  const end = object.lastIndexOf(CLOSING_BRACE);
  const member = Buffer.from(`,${JSON.stringify(name)}:${JSON.stringify(value)}`);
  return Buffer.concat([object.subarray(0, end), member, object.subarray(end)]);
}

/** Replaces the string value of an object's own member. The text must be valid JSON. */
export function replaceStringMember(objectText: string, name: string, value: string): string {
  const span = findStringMember(objectText, name);
  return span === undefined
    ? objectText
    : objectText.slice(0, span.start) + JSON.stringify(value) + objectText.slice(span.end);
}

/** Takes an object's own member out, wherever it occurs. The text must be valid JSON. */
export function removeMember(objectText: string, name: string): string {
  let text = objectText;
  for (let span = findMember(text, name); span; span = findMember(text, name))
    text = text.slice(0, span.start) + text.slice(span.end);
  return text;
}

/** A member with one of the commas next to it. */
function findMember(text: string, name: string): Span | undefined {
  let depth = 0;
  let start = -1;
  let keyEnd = -1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      const end = endOfString(text, at);
      // The first string after a brace or a comma of the object itself is a key.
      if (depth === 1 && start >= 0 && keyEnd < 0)
        keyEnd = JSON.parse(text.slice(at, end)) === name ? end : 0;
      at = end - 1;
    } else if (character === "{" || character === "[") {
      depth += 1;
      if (depth === 1) [start, keyEnd] = [at + 1, -1];
    } else if (character === "}" || character === "]") {
      depth -= 1;
      if (depth > 0 || keyEnd <= 0) continue;
      // The last member takes the comma before it along.
      return { start: text[start - 1] === "," ? start - 1 : start, end: at };
    } else if (character === "," && depth === 1) {
      if (keyEnd > 0) return { start, end: at + 1 };
      [start, keyEnd] = [at + 1, -1];
    }
  }
  return undefined;
}

interface Span {
  start: number;
  end: number;
}

/** The last such member, which is the one that JSON readers take. */
function findStringMember(text: string, name: string): Span | undefined {
  let depth = 0;
  let key: string | undefined;
  let isKeyNext = false;
  let found: Span | undefined;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && isKeyNext) {
        key = JSON.parse(text.slice(at, end)) as string;
        isKeyNext = false;
      } else if (depth === 1 && key === name) found = { start: at, end };
      at = end - 1;
    } else if (character === "{" || character === "[") {
      depth += 1;
      isKeyNext = depth === 1;
    } else if (character === "}" || character === "]") depth -= 1;
    else if (character === "," && depth === 1) isKeyNext = true;
  }
  return found;
}

/** The index after a string's closing quote. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (text[quote - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** A member of a JSON object: its name, and its value as it was written. */
export interface Member {
  name: string;
  text: string;
}

/**
 * The members of a text that is one JSON object and nothing else, in their order, those with a
 * repeated name included: `JSON.parse` would silently keep the last. Undefined for any other text.
 */
export function objectMembers(text: string): Member[] | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  return split(text);
}

/** Splits an object that is known to be valid JSON. */
function split(text: string): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let start = 1;
  let colon = -1;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = closingQuote(text, at);
    else if (character === "{" || character === "[") depth++;
    else if (character === ":" && depth === 1) colon = at;
    else if (character === "," && depth === 1) {
      members.push(member(text, start, colon, at));
      start = at + 1;
    } else if (character === "}" || character === "]") {
      depth--;
      if (depth === 0 && colon !== -1) members.push(member(text, start, colon, at));
    }
  }
  return members;
}

function member(text: string, start: number, colon: number, end: number): Member {
  return { name: JSON.parse(text.slice(start, colon)) as string, text: text.slice(colon + 1, end).trim() };
}

function closingQuote(text: string, opening: number): number {
  let at = opening + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at;
}

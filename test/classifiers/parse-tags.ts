/** An element of tagged text. */
export interface Tag {
  name: string;
  attributes: Record<string, string>;
  children: Tag[];
  /** Its own text, unescaped. */
  text: string;
}

const TOKEN = /<(\/?)([a-z_]+)((?: [a-z_]+="[^"<>\n]*")*)(\/?)>|([^<>]+)/y;
const CHARACTERS: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"' };

/** Reads tagged text back. Stricter than XML: whatever is not a whole tag or escaped text is an error. */
export function parseTags(text: string): Tag {
  const root: Tag = { name: "root", attributes: {}, children: [], text: "" };
  const open = [root];
  let end = 0;
  for (TOKEN.lastIndex = 0; end < text.length; end = TOKEN.lastIndex) {
    const match = TOKEN.exec(text);
    if (match === null) throw new Error(`No tag and no text at ${end}: ${text.slice(end, end + 40)}`);
    const [, slash, name, attributes, selfClosing, content] = match;
    if (content !== undefined) open.at(-1)!.text += unescape(content);
    else if (slash === "/") {
      if (open.pop()!.name !== name) throw new Error(`</${name}> closes another tag`);
    } else {
      const tag: Tag = { name: name!, attributes: readAttributes(attributes!), children: [], text: "" };
      open.at(-1)!.children.push(tag);
      if (selfClosing === "") open.push(tag);
    }
  }
  if (open.length !== 1) throw new Error(`<${open.at(-1)!.name}> is not closed`);
  return root;
}

function readAttributes(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, name, value]) => [name!, unescape(value!)]),
  );
}

function unescape(text: string): string {
  return text.replaceAll(
    /&(?:#(\d+)|([a-z]+));|&/g,
    (whole, code: string | undefined, name: string | undefined) => {
      if (code !== undefined) return String.fromCodePoint(Number(code));
      const character = CHARACTERS[name ?? ""];
      if (character === undefined) throw new Error(`${whole} is no escape`);
      return character;
    },
  );
}

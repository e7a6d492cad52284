// Shorter texts occur by chance, and are no keys.
const SHORTEST_SECRET = 6;
const HIDDEN = "[hidden]";
// An error may refer to a client with all its sockets; getters that make new objects would never end.
const MAX_OBJECTS = 20_000;

/** What an object holds, read once: a getter may give something new each time. */
interface Contents {
  readonly fields: readonly { key: PropertyKey; value: unknown; enumerable: boolean }[];
  /** The members of a map, a set or headers. */
  readonly members: readonly unknown[];
}

/**
 * The value without secrets in it. If no secret occurs, that is the value itself; else a copy, of
 * the same class, in which each occurrence is replaced. A service may echo the request's headers in
 * its error, and errors get printed.
 *
 * Copied and not changed in place, because an error may refer to objects that are in use, as a
 * client's own headers. The work is linear in what the value holds, however deep it is nested.
 */
export function withoutSecrets(value: unknown, secrets: readonly (string | undefined)[]): unknown {
  const known = secrets.filter((secret) => secret !== undefined && secret.length >= SHORTEST_SECRET);
  if (known.length === 0) return value;
  const hide = (text: string): string =>
    known.reduce<string>((rest, secret) => rest.replaceAll(secret!, HIDDEN), text);
  if (typeof value === "string") return hide(value);
  if (!isObject(value)) return value;

  const contents = contentsWithin(value);
  const copies = new Map<object, unknown>();
  for (const holder of holdersIn(contents, (text) => hide(text) !== text))
    copies.set(holder, emptyLike(holder));
  const clean = (part: unknown): unknown => {
    if (typeof part === "string") return hide(part);
    if (!isObject(part)) return part;
    return contents.has(part) ? (copies.get(part) ?? part) : HIDDEN;
  };
  for (const [original, copy] of copies) if (isObject(copy)) fill(copy, contents.get(original)!, clean);
  return copies.get(value) ?? value;
}

/** A value and all objects that it leads to, with what each holds. */
function contentsWithin(value: object): Map<object, Contents> {
  const found = new Map([[value, contentsOf(value)]]);
  // A map's iteration reaches what is added on the way.
  for (const [, { fields, members }] of found)
    for (const part of [...fields.map((field) => field.value), ...members])
      if (isObject(part) && !found.has(part) && found.size < MAX_OBJECTS) found.set(part, contentsOf(part));
  return found;
}

function contentsOf(value: object): Contents {
  // Their contents cannot be looked through, and printing shows them.
  if (isOpaque(value)) return { fields: [], members: [] };
  const members =
    value instanceof Headers || value instanceof Map || value instanceof Set ? [...value].flat() : [];
  // The platform keeps its own state in fields of headers; their members say it all.
  const keys = value instanceof Headers ? [] : Reflect.ownKeys(value);
  const fields = keys.map((key) => ({
    key,
    value: read(value, key),
    enumerable: Object.getOwnPropertyDescriptor(value, key)?.enumerable ?? false,
  }));
  return { fields, members };
}

/** The objects that hold a secret, in themselves or in what they lead to. */
function holdersIn(
  contents: ReadonlyMap<object, Contents>,
  isSecret: (text: string) => boolean,
): Set<object> {
  const parents = new Map<object, object[]>();
  const holders = new Set<object>();
  for (const [holder, { fields, members }] of contents) {
    if (isOpaque(holder)) holders.add(holder);
    for (const part of [...fields.flatMap(({ key, value }) => [key, value]), ...members]) {
      if (typeof part === "string" && isSecret(part)) holders.add(holder);
      if (!isObject(part)) continue;
      // Nobody looked into it.
      if (!contents.has(part)) holders.add(holder);
      const known = parents.get(part);
      if (known) known.push(holder);
      else parents.set(part, [holder]);
    }
  }
  // A set's iteration reaches what is added on the way, too.
  for (const holder of holders) for (const parent of parents.get(holder) ?? []) holders.add(parent);
  return holders;
}

/** An object of the same class with nothing of its own: errors stay errors for whoever prints them. */
function emptyLike(value: object): unknown {
  if (isOpaque(value)) return HIDDEN;
  if (Array.isArray(value)) return [];
  if (value instanceof Headers) return new Headers();
  if (value instanceof Map) return new Map();
  if (value instanceof Set) return new Set();
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (!(value instanceof Error)) return Object.create(prototype) as object;
  const error = new Error();
  delete error.stack;
  return Object.setPrototypeOf(error, prototype) as object;
}

function fill(copy: object, { fields, members }: Contents, clean: (part: unknown) => unknown): void {
  const parts = members.map(clean);
  if (copy instanceof Set) for (const part of parts) copy.add(part);
  for (let at = 0; at < parts.length; at += 2) {
    if (copy instanceof Map) copy.set(parts[at], parts[at + 1]);
    if (copy instanceof Headers) copy.append(String(parts[at]), String(parts[at + 1]));
  }
  for (const { key, value, enumerable } of fields) {
    if (key === "length" && Array.isArray(copy)) continue;
    Object.defineProperty(copy, typeof key === "string" ? String(clean(key)) : key, {
      value: clean(value),
      enumerable,
      writable: true,
      configurable: true,
    });
  }
}

function isOpaque(value: object): boolean {
  return value instanceof Request || value instanceof Response;
}

function read(value: object, key: PropertyKey): unknown {
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

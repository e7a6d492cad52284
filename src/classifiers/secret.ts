// Shorter texts occur by chance, and are no keys.
const SHORTEST_SECRET = 6;
const HIDDEN = "[hidden]";

/**
 * The value without secrets in it. If no secret occurs, that is the value itself; else a copy, of
 * the same class, in which each occurrence is replaced. A service may echo the request's headers in
 * its error, and errors get printed.
 *
 * Copied and not changed in place, because an error may refer to objects that are in use, as a
 * client's own headers.
 */
export function withoutSecrets(value: unknown, secrets: readonly (string | undefined)[]): unknown {
  const known = secrets.filter((secret) => secret !== undefined && secret.length >= SHORTEST_SECRET);
  return holds(value, known as string[], new Set()) ? copy(value, known as string[], new Map()) : value;
}

function holds(value: unknown, secrets: readonly string[], seen: Set<unknown>): boolean {
  if (typeof value === "string") return secrets.some((secret) => value.includes(secret));
  if (typeof value !== "object" || value === null || seen.has(value)) return false;
  seen.add(value);
  // Their contents cannot be looked through, and printing shows them.
  if (value instanceof Request || value instanceof Response) return secrets.length > 0;
  return parts(value).some((part) => holds(part, secrets, seen));
}

function parts(value: object): unknown[] {
  const own = Reflect.ownKeys(value).flatMap((key) => [key, read(value, key)]);
  return value instanceof Headers || value instanceof Map || value instanceof Set
    ? [...own, ...[...value].flat()]
    : own;
}

function copy(value: unknown, secrets: readonly string[], copies: Map<unknown, unknown>): unknown {
  if (typeof value === "string")
    return secrets.reduce((text, secret) => text.replaceAll(secret, HIDDEN), value);
  if (typeof value !== "object" || value === null) return value;
  if (copies.has(value)) return copies.get(value);
  if (!holds(value, secrets, new Set())) return value;
  if (value instanceof Request || value instanceof Response) return HIDDEN;
  const clean = (part: unknown) => copy(part, secrets, copies);
  if (value instanceof Headers)
    return new Headers([...value].map(([name, text]) => [name, String(clean(text))]));
  const target = emptyLike(value);
  copies.set(value, target);
  if (value instanceof Map)
    for (const [key, part] of value) (target as Map<unknown, unknown>).set(clean(key), clean(part));
  if (value instanceof Set) for (const part of value) (target as Set<unknown>).add(clean(part));
  for (const key of Reflect.ownKeys(value)) {
    if (key === "length" && Array.isArray(value)) continue;
    const enumerable = Object.getOwnPropertyDescriptor(value, key)!.enumerable ?? false;
    Object.defineProperty(target, typeof key === "string" ? String(clean(key)) : key, {
      value: clean(read(value, key)),
      enumerable,
      writable: true,
      configurable: true,
    });
  }
  return target;
}

/** An object of the same class with nothing of its own: errors stay errors for whoever prints them. */
function emptyLike(value: object): object {
  if (Array.isArray(value)) return [];
  const prototype = Object.getPrototypeOf(value) as object | null;
  if (value instanceof Map) return new Map();
  if (value instanceof Set) return new Set();
  if (!(value instanceof Error)) return Object.create(prototype) as object;
  const error = new Error();
  delete error.stack;
  return Object.setPrototypeOf(error, prototype) as object;
}

function read(value: object, key: PropertyKey): unknown {
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}

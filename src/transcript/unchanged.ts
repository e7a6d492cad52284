/** A list or an object as it stood: `keys` is undefined for a list. Texts are not copied, only pointed at. */
class Copy {
  readonly keys: readonly string[] | undefined;
  readonly values: readonly unknown[];
  constructor(keys: readonly string[] | undefined, values: readonly unknown[]) {
    this.keys = keys;
    this.values = values;
  }
}

/** More parts than this cost more to compare than to read again. */
const MAX_PARTS = 200;

/** Thrown for what cannot be compared: functions, getters, class instances, cycles, and what is too much. */
class NoCopy extends Error {}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function isPlainList(value: object): value is unknown[] {
  return Array.isArray(value) && Object.getPrototypeOf(value) === Array.prototype;
}

function copy(value: unknown, budget: { left: number }): unknown {
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "bigint")
    throw new NoCopy();
  if (typeof value !== "object" || value === null) return value;
  const isList = isPlainList(value);
  if (!isList && !isPlainObject(value)) throw new NoCopy();
  const keys = Object.keys(value);
  budget.left -= keys.length + 1;
  if (budget.left < 0 || (isList && keys.length !== value.length)) throw new NoCopy();
  const values = keys.map((key) => {
    const property = Object.getOwnPropertyDescriptor(value, key);
    if (property?.get !== undefined) throw new NoCopy();
    return copy(property?.value, budget);
  });
  return new Copy(isList ? undefined : keys, values);
}

// Plain loops: this runs for every message of every view.
function isSameList(value: object, values: readonly unknown[]): boolean {
  if (!isPlainList(value) || value.length !== values.length) return false;
  for (let at = 0; at < values.length; at += 1) if (!isSame(value[at], values[at])) return false;
  return true;
}

function isSameObject(value: object, keys: readonly string[], values: readonly unknown[]): boolean {
  const now = Object.keys(value);
  if (now.length !== keys.length || !isPlainObject(value)) return false;
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at] as string;
    if (now[at] !== key) return false;
    if (!isSame((value as Readonly<Record<string, unknown>>)[key], values[at])) return false;
  }
  return true;
}

function isSame(value: unknown, known: unknown): boolean {
  // The same text is the same pointer, so its length does not matter.
  if (value === known) return true;
  if (!(known instanceof Copy) || typeof value !== "object" || value === null) return false;
  return known.keys ? isSameObject(value, known.keys, known.values) : isSameList(value, known.values);
}

/**
 * Notes how JSON-like values stand now, and returns a check whether they still do, down to the last part:
 * whoever changes one of them in place is seen. `undefined` if that could not be told, or not cheaply.
 */
export function watch(values: readonly unknown[]): ((now: readonly unknown[]) => boolean) | undefined {
  let known: unknown;
  try {
    known = copy(values, { left: MAX_PARTS });
  } catch {
    return undefined;
  }
  return (now) => {
    try {
      return isSame(now, known);
    } catch {
      // A getter or a trap that came later and throws.
      return false;
    }
  };
}

import type { JsonValue } from "@langchain/core/decisions";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/** A JSON object. */
export type JsonObject = { [key: string]: JsonValue };

/** The arguments of one call as they stood at one moment. */
export interface FrozenJson {
  /** A copy, frozen at every depth: what was judged cannot become something else. */
  readonly value: JsonObject;
  /** Canonical JSON: keys in the order of their code units. Equal arguments have equal text. */
  readonly json: string;
}

// Deeper data than this comes from no model; recursion stays far from the stack's end.
const MAX_DEPTH = 2_000;

/** Marks what JSON cannot hold; caught in {@link freezeJson}. */
class NotJson extends Error {}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm (a vm, a test runner) has another Object.prototype, but still no further parent.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Sets a key of an object as data, whatever it is called. */
export function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  // Plain assignment to __proto__ would change the prototype and hide the key from the judge.
  if (key === "__proto__")
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}

function copy(value: unknown, path: Set<object>): JsonValue {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "object" || path.has(value) || path.size > MAX_DEPTH) throw new NotJson();
  path.add(value);
  let result: JsonValue;
  if (Array.isArray(value)) {
    result = Array.from(value, (item: unknown) => copy(item, path));
  } else {
    if (!isPlain(value)) throw new NotJson();
    const object: JsonObject = {};
    for (const key of Object.keys(value)) {
      const item = (value as Record<string, unknown>)[key];
      // JSON leaves such a key out, and so does every schema: the tool cannot tell the difference.
      if (item === undefined) continue;
      setOwn(object, key, copy(item, path));
    }
    result = object;
  }
  path.delete(value);
  Object.freeze(result);
  return result;
}

/** Writes JSON with sorted keys, so that equal data has equal text. */
function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(",")}]`;
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as JsonValue)}`);
  return `{${members.join(",")}}`;
}

// The copies themselves, which nobody can change: a snapshot of a snapshot costs nothing.
const snapshots = new WeakMap<object, FrozenJson>();

/**
 * Copies a call's arguments. `undefined` means malformed: no plain object, or something in it that
 * JSON cannot hold (a cycle, a function, a class instance, NaN, a bigint, a throwing getter).
 */
export function freezeJson(args: unknown): FrozenJson | undefined {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return undefined;
  const known = snapshots.get(args);
  if (known) return known;
  try {
    const value = copy(args, new Set()) as JsonObject;
    const snapshot = { value, json: canonicalJson(value) };
    snapshots.set(value, snapshot);
    return snapshot;
  } catch {
    // Not JSON, or a getter that throws: either way nothing that could be judged and then run.
    return undefined;
  }
}

/** A copy, without checks, of what is known to be JSON and not deeper than the stack. */
export function copyJson(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => copyJson(item));
  const object: JsonObject = {};
  for (const key of Object.keys(value)) setOwn(object, key, copyJson(value[key] as JsonValue));
  return object;
}

/** A fresh copy for whoever may change it: a tool, a classifier, a rule. */
export function cloneJson(snapshot: FrozenJson): JsonObject {
  return copyJson(snapshot.value) as JsonObject;
}

// A trace, a record and the state all name one call.
const digests = new WeakMap<FrozenJson, string>();

/**
 * Lower-case hex SHA-256 of the canonical JSON. Not by `sha256` of `@langchain/core/utils/hash`: what that
 * gives is another hash, which no other program would come to.
 */
export function digest(snapshot: FrozenJson): string {
  const known = digests.get(snapshot) ?? bytesToHex(sha256(utf8ToBytes(snapshot.json)));
  digests.set(snapshot, known);
  return known;
}

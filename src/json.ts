import type { JsonValue } from "@langchain/core/decisions";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/** A JSON object. */
export type JsonObject = { [key: string]: JsonValue };

/** The arguments of one call as they were at one moment. */
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

/** A frozen copy. What is nested in itself is deeper than anything, so its depth ends it. */
function freeze(value: unknown, depth: number): JsonValue {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "object" || depth > MAX_DEPTH) throw new NotJson();
  if (Array.isArray(value)) {
    const list: JsonValue[] = [];
    // By index, so that a hole is no JSON either.
    for (let at = 0; at < value.length; at += 1) list.push(freeze(value[at], depth + 1));
    return Object.freeze(list) as JsonValue[];
  }
  if (!isPlain(value)) throw new NotJson();
  const object: JsonObject = {};
  for (const key of Object.keys(value)) {
    const item = (value as Record<string, unknown>)[key];
    // JSON leaves such a key out, and so does every schema: for the tool there is no difference.
    if (item !== undefined) setOwn(object, key, freeze(item, depth + 1));
  }
  return Object.freeze(object);
}

/** Whether an object has a key that it lists before others in the order of numbers, as `"10"` behind `"9"`. */
function hasIndexKey(value: JsonValue): boolean {
  if (value === null || typeof value !== "object") return false;
  if (Array.isArray(value)) return value.some(hasIndexKey);
  return Object.keys(value).some((key) => /^\d/.test(key) || hasIndexKey(value[key] as JsonValue));
}

function sortKeys(value: JsonValue): JsonValue {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(sortKeys);
  const sorted: JsonObject = {};
  for (const key of Object.keys(value).toSorted()) setOwn(sorted, key, sortKeys(value[key] as JsonValue));
  return sorted;
}

function writeSorted(value: JsonValue): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(writeSorted).join(",")}]`;
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${writeSorted(value[key] as JsonValue)}`);
  return `{${members.join(",")}}`;
}

/** Writes JSON with sorted keys, so that equal data has equal text. */
function canonicalJson(value: JsonValue): string {
  // The language's own writer takes half the time, where an object keeps the order that its keys are given.
  return hasIndexKey(value) ? writeSorted(value) : JSON.stringify(sortKeys(value));
}

// The copies themselves, which nobody can change: freezing one again costs nothing.
const known = new WeakMap<object, FrozenJson>();

/**
 * Copies a call's arguments. `undefined` means malformed: no plain object, or something in it that
 * JSON cannot hold (a cycle, a function, a class instance, NaN, a bigint, a throwing getter).
 */
export function freezeJson(args: unknown): FrozenJson | undefined {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return undefined;
  const before = known.get(args);
  if (before) return before;
  try {
    const value = freeze(args, 0) as JsonObject;
    const frozen = { value, json: canonicalJson(value) };
    known.set(value, frozen);
    return frozen;
  } catch {
    // Not JSON, or a getter that throws: either way nothing that could be judged and then run.
    return undefined;
  }
}

function clone(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(clone);
  const object: JsonObject = {};
  for (const key of Object.keys(value)) setOwn(object, key, clone(value[key] as JsonValue));
  return object;
}

/** A fresh copy for whoever may change it: a tool, a classifier, a rule. */
export function cloneJson(frozen: FrozenJson): JsonObject {
  return clone(frozen.value) as JsonObject;
}

// A trace, a record and the state all name one call.
const digests = new WeakMap<FrozenJson, string>();

/**
 * Lower-case hex SHA-256 of the canonical JSON. Not by `sha256` of `@langchain/core/utils/hash`: what that
 * gives is another hash, which no other program would come to.
 */
export function digest(frozen: FrozenJson): string {
  const before = digests.get(frozen) ?? bytesToHex(sha256(utf8ToBytes(frozen.json)));
  digests.set(frozen, before);
  return before;
}

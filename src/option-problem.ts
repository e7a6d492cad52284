import type { z } from "zod";
import { ConfigurationError } from "./errors.js";

/** What is wrong with a name that is no option. */
export const UNKNOWN_OPTION = "is not an option; check its spelling";

/** Names a value's type without repeating the value. */
function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : "an array";
  if (typeof value === "string") return value.trim() === "" ? "an empty string" : "a string";
  if (typeof value === "number") return Number.isNaN(value) ? "NaN" : "a number";
  if (typeof value === "object") return "an object";
  return value === undefined ? "missing" : `a ${typeof value}`;
}

// Where a number is wanted, "is a number" alone would read as if nothing were wrong with it.
const WANTS_A_NUMBER = /^(?:a number|a whole number|milliseconds)\b/;

/** Says what a value is and what it should be. The value itself may be a secret and is not repeated. */
export function mismatch(value: unknown, expected: string): string {
  const name = typeName(value);
  const isOff = name === "a number" && WANTS_A_NUMBER.test(expected);
  return `is ${name}${isOff ? " that does not fit" : ""}; expected ${expected}`;
}

/** An option's path as a programmer writes it: `tools[0].threshold`. */
export function optionPath(root: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`;
    return text === "" ? String(key) : `${text}.${String(key)}`;
  }, root);
}

function at(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of path) current = (current as Record<PropertyKey, unknown> | undefined)?.[key];
  return current;
}

/**
 * Checks with zod and reports the first problem in this package's own words: the schema's messages say
 * what is expected.
 *
 * @param root how the checked value is called where it is given; empty for options themselves
 * @param unknown what is said of a name that the schema does not know
 * @throws {ConfigurationError} that names the first wrong option and the type of its value, never the value
 */
export function check<T>(type: z.ZodType<T>, value: unknown, root: string, unknown = UNKNOWN_OPTION): T {
  const result = type.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0] as z.core.$ZodIssue;
  if (issue.code === "unrecognized_keys")
    throw new ConfigurationError(optionPath(root, [...issue.path, ...issue.keys.slice(0, 1)]), unknown);
  throw new ConfigurationError(
    optionPath(root, issue.path) || "options",
    mismatch(at(value, issue.path), issue.message),
  );
}

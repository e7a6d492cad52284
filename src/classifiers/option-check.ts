import type { z } from "zod";
import { ConfigurationError } from "../errors.js";

/**
 * Checks options against a schema whose messages say what is expected.
 *
 * @throws {ConfigurationError} that names the first wrong option and the type of its value, never
 * the value.
 */
export function checkOptions<Options>(schema: z.ZodType<Options>, options: unknown): Options {
  const result = schema.safeParse(options);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  if (issue.code === "unrecognized_keys") {
    throw new ConfigurationError([...issue.path, issue.keys[0]!].join("."), "is not known");
  }
  const value = issue.path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key],
    options,
  );
  throw new ConfigurationError(
    issue.path.join(".") || "options",
    `is ${typeName(value)}; expected is ${issue.message}`,
  );
}

function typeName(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

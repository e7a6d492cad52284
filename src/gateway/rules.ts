import { createRequire } from "node:module";
import type { RE2JS } from "re2js";
import { z } from "zod";
import { ConfigurationError } from "../errors.js";
import type { FrozenJson, JsonObject } from "../json.js";
import { namePattern } from "../name-pattern.js";

/**
 * What the operator says about calls before the classifier is asked. The first rule that fits a call decides.
 *
 * @example
 * ```ts
 * const rules: SafeguardRule[] = [
 *   { tool: "Bash", match: { command: "\\bsudo\\b" }, decide: "deny", reason: "No sudo here." },
 *   { tool: "Bash", match: { command: "^(git (status|diff)|npm test)$" }, decide: "allow" },
 *   { tool: "mcp__crm__read_*", decide: "allow" },
 * ];
 * ```
 */
export interface SafeguardRule {
  /** The tool's name. `*` in it matches any characters. */
  tool: string;
  /**
   * Regular expressions by the name of an argument; all of them must be found. A text is matched as it is, any
   * other value as its JSON text; an argument that is missing matches nothing. `^` and `$` mean the whole
   * argument: anchor what you allow. The syntax is RE2's, without lookaround and backreferences: it is matched in
   * time linear in the argument. Needs the package `re2js`.
   */
  match?: Readonly<Record<string, string>>;
  /** `"allow"`: not flagged, `"deny"`: flagged, `"classify"`: the classifier decides, whatever later rules say. */
  decide: "allow" | "deny" | "classify";
  /** What the agent reads of a denied call, one sentence. Default: that a rule forbids it. */
  reason?: string;
}

/** What a rule says of a call. */
export interface Ruling {
  /** The rule's place in the list, from 0. */
  readonly rule: number;
  readonly decide: "allow" | "deny";
  readonly reason: string;
}

/** Finds the rule for a call. `undefined`: the classifier decides. */
export type Rules = (call: { readonly name: string; readonly args: FrozenJson }) => Ruling | undefined;

const DECISIONS = '"allow", "deny" or "classify"';
const PATTERNS = "an object with names of arguments as keys and regular expressions as values";
const filled = (what: string) => z.string(what).min(1, what);

export const rulesSchema = z.array(
  z.strictObject(
    {
      tool: filled("a tool's name, in which * matches any characters"),
      match: z.record(z.string(), filled("a regular expression"), PATTERNS).optional(),
      decide: z.enum(["allow", "deny", "classify"], DECISIONS),
      reason: filled("a sentence").optional(),
    },
    "an object with tool and decide",
  ),
  "a list of rules",
);

const FORBIDDEN = "A rule of the gateway's operator forbids this call.";

/**
 * Prepares rules that are checked already.
 *
 * @throws {ConfigurationError} for a pattern that cannot be matched in linear time, and when re2js is missing.
 */
export function prepareRules(rules: readonly SafeguardRule[]): Rules {
  const prepared = rules.map(({ tool, match = {}, decide, reason = FORBIDDEN }, rule) => {
    const patterns = Object.entries(match).map(
      ([name, pattern]) => [name, compile(pattern, `rules[${rule}].match.${name}`)] as const,
    );
    const ruling = decide === "classify" ? undefined : { rule, decide, reason };
    return { isFor: namePattern(tool), patterns, ruling };
  });
  return ({ name, args }) =>
    prepared.find(
      ({ isFor, patterns }) =>
        isFor(name) && patterns.every(([argument, pattern]) => isFound(pattern, args.value, argument)),
    )?.ruling;
}

function isFound(pattern: RE2JS, args: JsonObject, argument: string): boolean {
  if (!Object.hasOwn(args, argument)) return false;
  const value = args[argument];
  return pattern.test(typeof value === "string" ? value : JSON.stringify(value));
}

/** The platform's own expressions may take time exponential in an argument, which the agent's model writes. */
function compile(pattern: string, option: string): RE2JS {
  const engine = loadEngine(option);
  try {
    return engine.compile(pattern);
  } catch (error) {
    throw new ConfigurationError(
      option,
      "cannot be matched in linear time; expected a regular expression in RE2's syntax, without lookaround and backreferences",
      { cause: error },
    );
  }
}

function loadEngine(option: string): typeof RE2JS {
  try {
    return (createRequire(import.meta.url)("re2js") as { RE2JS: typeof RE2JS }).RE2JS;
  } catch (error) {
    throw new ConfigurationError(
      option,
      'needs the package re2js, which is not installed: run "npm install re2js", with -g if langchain-auto-mode is installed so',
      { cause: error },
    );
  }
}

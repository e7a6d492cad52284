import type { JsonValue } from "@langchain/core/decisions";
import { cutJson } from "../transcript/cut-json.js";
import { isLoose, type Loose } from "./protocol.js";

// As much as a whole transcript has by default: rules and directories of real sessions are far below it.
const MOST_CHARS = 24_000;
/** What a judge needs of the session's settings: mode, place, directories, rules. Everything else is noise to it. */
const SETTINGS = [
  "permission_mode",
  "platform",
  "live_cwd",
  "home_dir",
  "trusted_directories",
  "rules",
  "rule_roots",
  "auto_mode",
  "classify_all_shell",
  "case_insensitive_paths",
  "restricted",
  "is_remote_mode",
] as const;
const GIT = ["root", "branch", "default_branch"] as const;

/**
 * The session's settings as the classifier reads them: the user's own, so they may authorize as an
 * operator's environment does. The context is data of any shape: no key is required, none is refused. Of
 * earlier turns only what was different then is kept, and a text that is too large is cut.
 */
export function environmentOf(context: unknown): JsonValue | undefined {
  if (!isLoose(context)) return undefined;
  const settings = pick(context, SETTINGS);
  const git = isLoose(context["git_state"]) ? pick(context["git_state"], GIT) : {};
  const earlier = earlierSettings(context["prior_turn_context"], settings);
  return cutJson(
    {
      ...settings,
      ...(Object.keys(git).length > 0 ? { git_state: git } : {}),
      ...(earlier.length > 0 ? { earlier_settings: earlier } : {}),
    },
    MOST_CHARS,
  );
}

function pick(fields: Loose, keys: readonly string[]): { [key: string]: JsonValue } {
  return Object.fromEntries(
    keys.flatMap((key) =>
      fields[key] === undefined || fields[key] === null ? [] : [[key, fields[key] as JsonValue]],
    ),
  );
}

/** What was different in earlier turns, each once. */
function earlierSettings(turns: unknown, now: { readonly [key: string]: JsonValue }): JsonValue[] {
  const found = new Map<string, JsonValue>();
  for (const turn of Array.isArray(turns) ? turns : []) {
    const context: unknown = isLoose(turn) ? turn["context"] : undefined;
    if (!isLoose(context)) continue;
    const then = pick(context, SETTINGS);
    const other = Object.fromEntries(
      Object.entries(then).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(now[key])),
    );
    if (Object.keys(other).length > 0) found.set(JSON.stringify(other), other);
  }
  return [...found.values()];
}

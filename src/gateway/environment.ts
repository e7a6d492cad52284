import type { JsonValue } from "@langchain/core/decisions";
import { cutJson } from "../transcript/cut-json.js";
import { isLoose } from "./protocol.js";

// As much as a whole transcript has by default: rules and directories of real sessions are far below it.
const MOST_CHARS = 24_000;
// What authorises or forbids. It is the last to be cut.
const SETTINGS = new Set([
  "permission_mode",
  "platform",
  "live_cwd",
  "home_dir",
  "trusted_directories",
  "rules",
  "auto_mode",
  "classify_all_shell",
]);

const lengthOf = (value: unknown): number => JSON.stringify(value).length;

/**
 * The session's settings as the classifier reads them: the user's own, so they may authorise as an
 * operator's environment does. The context is data of any shape: no key is required, none is refused.
 * One that is too large is cut, what is no setting first.
 */
export function environmentOf(context: unknown): JsonValue | undefined {
  if (!isLoose(context)) return undefined;
  if (lengthOf(context) <= MOST_CHARS) return context as JsonValue;
  const entries = Object.entries(context);
  const settings = Object.fromEntries(entries.filter(([key]) => SETTINGS.has(key)));
  const rest = Object.fromEntries(entries.filter(([key]) => !SETTINGS.has(key)));
  const kept = cutJson(settings, MOST_CHARS) as { [key: string]: JsonValue };
  const room = MOST_CHARS - lengthOf(kept);
  // Below this nothing but markers would be left.
  return room < 100 ? kept : { ...kept, ...(cutJson(rest, room) as { [key: string]: JsonValue }) };
}

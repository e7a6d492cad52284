import { DynamicStructuredTool, DynamicTool } from "@langchain/core/tools";
import { type ToolStart, classOf } from "./tool-start.js";

/** What is known of the tools around a start. */
export interface KnownTools {
  /** The object that the call was matched with, where there is one. */
  readonly atHand: object | undefined;
  /** The name of what would run, had nobody changed the call. */
  readonly expected: string;
  /** Tools of the agent: those that were configured, or given to the model, as objects. */
  readonly others: () => readonly object[];
  /** The guarded names. */
  readonly rules: ReadonlyMap<string, unknown>;
}

type ToolObject = { readonly name?: unknown; readonly defaultConfig?: { readonly runName?: unknown } };

/** Whether a start of this tool tells its class only. Those of `tool()` and its kind tell their names. */
function startsNameless(tool: object): boolean {
  return !(tool instanceof DynamicStructuredTool || tool instanceof DynamicTool);
}

function guardedAmong(known: KnownTools, matches: (tool: object) => boolean): string[] {
  const tools = known.atHand ? [known.atHand, ...known.others()] : known.others();
  const names = tools
    .filter((tool) => matches(tool))
    .map((tool) => (tool as ToolObject).name)
    .filter((name): name is string => typeof name === "string" && known.rules.has(name));
  return [...new Set(names)];
}

/** Whether a start of this unlisted tool could not be told from one of a guarded tool. */
export function looksLikeGuarded(tool: object, known: KnownTools): boolean {
  if (!startsNameless(tool)) return false;
  const className = classOf(tool);
  return guardedAmong(known, (other) => classOf(other) === className).length > 0;
}

/** The guarded tools that a start may be of. What cannot be told apart may be any of them. */
export function guardedNamesOf(start: ToolStart, known: KnownTools): string[] {
  const { atHand, expected, rules } = known;
  const { name } = start;
  if (name !== undefined)
    return rules.has(name)
      ? [name]
      : guardedAmong(known, (tool) => (tool as ToolObject).defaultConfig?.runName === name);
  const sameClass = guardedAmong(known, (tool) => classOf(tool) === start.className);
  if (sameClass.length > 0) return sameClass;
  // Another class than that of the tool at hand: somebody swapped it for what nobody here knows.
  if (atHand && classOf(atHand) !== start.className) return [...rules.keys()].slice(0, 1);
  return rules.has(expected) ? [expected] : [];
}

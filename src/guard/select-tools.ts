import type { ClientTool, ServerTool } from "@langchain/core/tools";
import { ConfigurationError } from "../errors.js";
import { namePattern } from "../name-pattern.js";
import type { ToolPredicate, ToolRule, ToolSelector } from "../options.js";

/** One entry of the option `tools`. */
export interface ToolEntry {
  readonly selector: ToolSelector;
  readonly rule: ToolRule;
  /** The entry brings settings of its own. */
  readonly isTuned: boolean;
}

/** What is known of a call's tool. */
export interface SelectableCall {
  /** The names of the call and of the tool object: either one guards. */
  readonly names: readonly string[];
  readonly tool: ClientTool | ServerTool | undefined;
}

/** Whether an entry selects a call. `"unknown"`: a predicate could not say. */
type Match = boolean | "unknown";

interface Matcher {
  readonly rule: ToolRule;
  readonly matches: (call: SelectableCall) => Match;
  /** For messages: a name, or what kind of selector it is. */
  readonly description: string;
}

function askPredicate(predicate: ToolPredicate, tool: ClientTool | ServerTool | undefined): Match {
  if (tool === undefined) return "unknown";
  try {
    const isSelected: unknown = predicate(tool as ClientTool);
    return typeof isSelected === "boolean" ? isSelected : "unknown";
  } catch {
    return "unknown";
  }
}

/** The rule that lets the least through. */
function strictest(rules: readonly ToolRule[]): ToolRule | undefined {
  return rules.toSorted(
    (a, b) => a.threshold - b.threshold || (a.askAt ?? a.threshold) - (b.askAt ?? b.threshold),
  )[0];
}

function matcherOf({ selector, rule }: ToolEntry, index: number): Matcher {
  if (typeof selector === "function")
    return {
      rule,
      description: `the predicate tools[${index}]`,
      matches: ({ tool }) => askPredicate(selector, tool),
    };
  const name = typeof selector === "string" ? selector : selector.name;
  const description = `"${name}"`;
  // A tool object is meant by its name, whatever characters that has.
  if (typeof selector !== "string" || !selector.includes("*"))
    return { rule, description, matches: ({ names }) => names.includes(name) };
  const fits = namePattern(name);
  return { rule, description, matches: ({ names }) => names.some((candidate) => fits(candidate)) };
}

const exactName = (selector: ToolSelector): string | undefined => {
  if (typeof selector === "function") return undefined;
  if (typeof selector !== "string") return selector.name;
  return selector.includes("*") ? undefined : selector;
};

/**
 * Which calls are guarded, and with which settings. The first entry that matches wins. A call that no entry is sure
 * to match, and some predicate could not decide, is guarded too, with the strictest of their settings: anything else
 * would fail open.
 */
export class ToolSelection {
  readonly #matchers: readonly Matcher[];
  /** Only exact names: one look-up is enough. */
  readonly #byName: ReadonlyMap<string, { readonly index: number; readonly rule: ToolRule }> | undefined;

  /** @throws {ConfigurationError} when two entries name one tool and one of them has settings of its own. */
  constructor(entries: readonly ToolEntry[]) {
    const byName = new Map<string, ToolEntry & { index: number }>();
    for (const [index, entry] of entries.entries()) {
      const name = exactName(entry.selector);
      if (name === undefined) continue;
      const earlier = byName.get(name);
      if (earlier && (earlier.isTuned || entry.isTuned))
        throw new ConfigurationError(
          `tools[${index}]`,
          "names a tool that has settings elsewhere in the list; expected one entry for each tool",
        );
      if (!earlier) byName.set(name, { ...entry, index });
    }
    this.#matchers = entries.map((entry, index) => matcherOf(entry, index));
    const isExact = entries.every(({ selector }) => exactName(selector) !== undefined);
    this.#byName = isExact ? byName : undefined;
  }

  /** The settings for a call. `undefined`: it is not guarded. */
  ruleFor(call: SelectableCall): ToolRule | undefined {
    const byName = this.#byName;
    if (!byName) return this.#firstMatch(call);
    // Every call of an agent comes through here, so nothing is allocated.
    let first: { readonly index: number; readonly rule: ToolRule } | undefined;
    for (const name of call.names) {
      const entry = byName.get(name);
      if (entry && (!first || entry.index < first.index)) first = entry;
    }
    return first?.rule;
  }

  #firstMatch(call: SelectableCall): ToolRule | undefined {
    const undecided: ToolRule[] = [];
    for (const { rule, matches } of this.#matchers) {
      const match = matches(call);
      if (match === true) return rule;
      if (match === "unknown") undecided.push(rule);
    }
    return strictest(undecided);
  }

  /** The entries that select none of these tools. */
  withoutTool(tools: readonly unknown[]): string[] {
    const calls = tools.flatMap((tool) =>
      typeof tool === "object" && tool !== null && "name" in tool && typeof tool.name === "string"
        ? [{ names: [tool.name], tool: tool as ClientTool }]
        : [],
    );
    return this.#matchers
      .filter(({ matches }) => !calls.some((call) => matches(call) !== false))
      .map(({ description }) => description);
  }
}

/**
 * Reports entries of `tools` that select no tool of the agent, at its first model call. A warning is given
 * once for each entry.
 */
export function createUnknownToolCheck(
  selection: ToolSelection,
  onUnknownTool: "warn" | "ignore" | "throw",
  label: string,
): (tools: readonly unknown[] | undefined) => void {
  if (onUnknownTool === "ignore") return () => {};
  const warned = new Set<string>();
  const checked = new WeakSet<object>();
  return (tools) => {
    // The host hands the same list to every model call of an agent. A middleware may take it away.
    if (!tools || checked.has(tools)) return;
    for (const entry of selection.withoutTool(tools)) {
      if (warned.has(entry)) continue;
      if (onUnknownTool === "throw")
        throw new ConfigurationError(
          "tools",
          `has ${entry}, which selects no tool of the agent; expected the exact name of one, a pattern or a predicate that selects one`,
        );
      warned.add(entry);
      console.warn(
        `${label}: ${entry} is configured but selects no tool of the agent; names match exactly, apart from *.`,
      );
    }
    checked.add(tools);
  };
}

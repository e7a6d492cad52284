import { ConfigurationError } from "./errors.js";
import type { Policy } from "./resolve-options.js";

/**
 * Reports configured names that match no tool of the agent, at its first model call. A warning is given
 * once for each name.
 */
export function createToolNameCheck(policy: Policy): (tools: readonly unknown[] | undefined) => void {
  if (policy.onUnknownTool === "ignore") return () => {};
  const warned = new Set<string>();
  const checked = new WeakSet<object>();
  return (tools) => {
    // The host hands the same list to every model call of an agent. A middleware may take it away.
    if (!tools || checked.has(tools)) return;
    const names = new Set(
      tools.map((tool) =>
        typeof tool === "object" && tool !== null && "name" in tool ? tool.name : undefined,
      ),
    );
    for (const name of policy.rules.keys()) {
      if (names.has(name) || warned.has(name)) continue;
      if (policy.onUnknownTool === "throw")
        throw new ConfigurationError(
          "tools",
          `names "${name}", which is no tool of the agent; expected the exact name of one`,
        );
      warned.add(name);
      console.warn(
        `${policy.label}: "${name}" is configured but is no tool of the agent; names match exactly.`,
      );
    }
    checked.add(tools);
  };
}

import type { ClientTool, ServerTool } from "@langchain/core/tools";

/** Runs in place of a tool's `invoke`: `run` invokes the tool itself. */
export type InvokeGate = (input: unknown, run: (input: unknown) => Promise<unknown>) => Promise<unknown>;

/**
 * The tool itself in every respect but `invoke`. A proxy and not a copy: a wrapping tool would double
 * events and lose schemas, artifacts, private fields and `instanceof`.
 */
export function guardTool<T extends ClientTool | ServerTool>(tool: T, gate: InvokeGate): T {
  return new Proxy(tool, {
    get(target, property) {
      // The target as receiver: private fields and getters do not work through a proxy.
      const value: unknown = Reflect.get(target, property, target);
      if (property === "invoke" && typeof value === "function")
        return (input: unknown, ...rest: unknown[]) =>
          gate(input, async (judged) => Reflect.apply(value, target, [judged, ...rest]) as unknown);
      if (typeof value === "function" && property !== "constructor") return value.bind(target) as unknown;
      return value;
    },
  });
}

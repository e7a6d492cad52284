import { Runnable } from "@langchain/core/runnables";
import type { ClientTool, ServerTool } from "@langchain/core/tools";

/** Invokes the tool itself. */
export type RunTool = (input: unknown, config: unknown) => Promise<unknown>;

/** Runs in place of a tool's `invoke`. */
export type StartGate = (input: unknown, config: unknown, run: RunTool) => Promise<unknown>;

/** The ways to start a tool; `call` is the older one. */
const STARTS: ReadonlySet<PropertyKey> = new Set(["invoke", "call"]);

/** What every Runnable has: wrappers and streams that come to `invoke` in the end. */
const isRunnables = (property: PropertyKey, value: unknown): boolean =>
  Reflect.get(Runnable.prototype, property) === value;

/**
 * The tool itself in every respect but how it is started. A proxy and not a copy: a wrapping tool would
 * double events and lose schemas, artifacts, private fields and `instanceof`.
 */
export function proxyTool<T extends ClientTool | ServerTool>(tool: T, gate: StartGate): T {
  return new Proxy(tool, {
    get(target, property, proxy) {
      // The target as receiver: private fields and getters do not work through a proxy.
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== "function") return value;
      if (STARTS.has(property))
        return (input: unknown, config: unknown, ...rest: unknown[]) =>
          gate(
            input,
            config,
            async (judged, judgedConfig) =>
              Reflect.apply(value, target, [judged, judgedConfig, ...rest]) as unknown,
          );
      // Its own functions are values like any other, and those of a frozen tool have to stay what they are.
      if (property === "constructor" || Object.hasOwn(target, property)) return value;
      // Methods need the tool itself for its private fields. Those that wrap it must wrap this proxy.
      return value.bind(isRunnables(property, value) ? proxy : target) as unknown;
    },
    set: (target, property, value) => Reflect.set(target, property, value, target),
  });
}

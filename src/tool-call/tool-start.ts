import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { CallbackManager } from "@langchain/core/callbacks/manager";
import type { RunnableConfig } from "@langchain/core/runnables";
import { AsyncLocalStorageProviderSingleton } from "@langchain/core/singletons";

/** A tool that is about to run, as the host announces it. */
export interface ToolStart {
  /** The tool's own name, or the run name that its default configuration gives it; missing for a tool that is written as a class. */
  readonly name: string | undefined;
  /** The class of the tool, for one without a name: as {@link classOf} gives it. */
  readonly className: string | undefined;
  /** Its raw arguments, before its schema touches them. `undefined` if they are no JSON. */
  readonly args: unknown;
}

/** Looks at a start. What it throws keeps the tool from running. */
export type StartGate = (start: ToolStart) => Promise<void>;

type Serialized = { id?: unknown };

const pathOf = (id: unknown): string | undefined => (Array.isArray(id) ? id.join("/") : undefined);

/** The class of a tool, as its start shows it in place of a name. */
export function classOf(tool: object): string | undefined {
  return pathOf((tool as { lc_id?: unknown }).lc_id);
}

function parse(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return undefined;
  }
}

/**
 * Sees every tool start of one tool node. The host hands its running config to the tool whatever an
 * inner middleware did to the tool object, and awaits handlers that ask for it.
 */
class StartWatch extends BaseCallbackHandler {
  name = "auto_mode_tool_start";
  override raiseError = true;
  override awaitHandlers = true;
  override ignoreLLM = true;
  override ignoreRetriever = true;
  override ignoreCustomEvent = true;
  readonly #gates = new Map<string | undefined, StartGate>();
  // A call whose id was changed on the way has no gate of its own; any gate of the node can judge it.
  #anyGate: StartGate | undefined;

  set(id: string | undefined, gate: StartGate): void {
    this.#gates.set(id, gate);
    this.#anyGate = gate;
  }

  override async handleToolStart(
    tool: Serialized,
    input: string,
    _runId: string,
    _parentRunId?: string,
    _tags?: string[],
    _metadata?: Record<string, unknown>,
    runName?: string,
    toolCallId?: string,
  ): Promise<void> {
    await this.#gateOf(toolCallId)?.({
      name: runName,
      className: pathOf(tool.id),
      // Of most starts the name is enough.
      get args() {
        return parse(input);
      },
    });
  }

  /** A runnable that serves as a tool starts as a chain of the tool's name. The classifier is none. */
  override async handleChainStart(
    _chain: Serialized,
    inputs: Record<string, unknown>,
    _runId: string,
    _parentRunId?: string,
    _tags?: string[],
    _metadata?: Record<string, unknown>,
    runType?: string,
    runName?: string,
  ): Promise<void> {
    if (runName === undefined || runType === "llm") return;
    const { type, id, args } = inputs;
    const isCall = type === "tool_call";
    const gate = this.#gateOf(isCall ? (id as string | undefined) : undefined);
    await gate?.({ name: runName, className: undefined, args: isCall ? args : inputs });
  }

  #gateOf(id: string | undefined): StartGate | undefined {
    return this.#gates.get(id) ?? this.#anyGate;
  }
}

// One per running config and middleware: in a node that runs several calls they share the config.
type Watches = WeakMap<object, StartWatch>;

/** Watches the starts of tools in the nodes of one middleware. */
export interface StartGates {
  /** Attaches a gate for a call to the running config of its tool node. */
  readonly attach: (id: string | undefined, gate: StartGate) => void;
  /** The config for a tool whose start is expected: nobody watches it, nor what the tool starts with it. */
  readonly expecting: (config: unknown) => object | undefined;
}

const runningConfig = (): RunnableConfig | undefined =>
  AsyncLocalStorageProviderSingleton.getRunnableConfig() as RunnableConfig | undefined;

/** Without callbacks there is none: what traces a tool by the environment is added where it starts. */
function managerOf({ callbacks }: RunnableConfig): CallbackManager | undefined {
  if (callbacks === undefined || callbacks instanceof CallbackManager) return callbacks;
  return CallbackManager.configure(callbacks);
}

/**
 * Makes the gates of one middleware. Needs AsyncLocalStorage; where there is none, as in a browser build,
 * nothing is attached and only the proxied tool judges changed calls.
 */
export function createStartGates(): StartGates {
  const watches: Watches = new WeakMap();
  const own = new WeakSet<object>();
  // The managers that a watch was added to, as they were without it.
  const unwatched = new WeakMap<CallbackManager, CallbackManager>();
  return {
    attach(id, gate) {
      const config = runningConfig();
      if (!config) return;
      let watch = watches.get(config);
      if (!watch) {
        watch = new StartWatch();
        own.add(watch);
        watches.set(config, watch);
        const known = managerOf(config);
        // A copy: the manager at hand may serve other nodes too. Not inherited: what the tool starts in
        // turn is the tool's own business.
        const manager = known?.copy() ?? new CallbackManager();
        manager.addHandler(watch, false);
        unwatched.set(manager, known ?? new CallbackManager());
        config.callbacks = manager;
        // The node's own name would hide the name of the tool that starts.
        if (config.runName === "tools") delete config.runName;
      }
      watch.set(id, gate);
    },
    expecting(config) {
      const given = config as RunnableConfig | undefined;
      // Without callbacks of its own the tool takes those of the running config.
      const callbacks = given?.callbacks ?? runningConfig()?.callbacks;
      if (!(callbacks instanceof CallbackManager)) return given;
      const known = unwatched.get(callbacks);
      // Somebody may have added a handler since.
      if (known && known.handlers.length + 1 === callbacks.handlers.length)
        return { ...given, callbacks: known };
      const watch = callbacks.handlers.find((handler) => own.has(handler));
      if (!watch) return given;
      const copy = callbacks.copy();
      copy.removeHandler(watch);
      return { ...given, callbacks: copy };
    },
  };
}

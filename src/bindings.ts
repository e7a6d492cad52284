// LangChain's own wrappers hold what they wrap in one of these: `withConfig`, `withRetry`, `bindTools` in the
// first, `withFallbacks` in the second.
const WRAPPED = ["bound", "runnable"] as const;
// More than anybody nests. It ends a chain that runs in a circle.
const MAX_DEPTH = 32;

/**
 * A runnable and what it wraps, from the outside in: `model.withRetry()` keeps the model, its name and its
 * view inside.
 */
export function* bindings(runnable: object): Generator<object> {
  let current: object | undefined = runnable;
  for (let depth = 0; depth < MAX_DEPTH && current !== undefined; depth++) {
    yield current;
    current = wrappedIn(current);
  }
}

/** The first value of a field in a runnable or in what it wraps that passes the test. */
export function findInBindings<T>(
  runnable: object,
  field: string,
  test: (value: unknown) => value is T,
): T | undefined {
  for (const candidate of bindings(runnable)) {
    const value = (candidate as Readonly<Record<string, unknown>>)[field];
    if (test(value)) return value;
  }
  return undefined;
}

/** Whether tools are bound to a chat model: one that calls them instead of answering, or twice. */
export function hasBoundTools(model: object): boolean {
  return [...bindings(model)].some((candidate) => {
    const { kwargs, config, tools } = candidate as Record<string, { tools?: unknown } | undefined>;
    return [kwargs?.tools, config?.tools, tools].some((list) => Array.isArray(list) && list.length > 0);
  });
}

function wrappedIn(runnable: object): object | undefined {
  for (const field of WRAPPED) {
    const inner = (runnable as Readonly<Record<string, unknown>>)[field];
    if (typeof inner === "object" && inner !== null) return inner;
  }
  return undefined;
}

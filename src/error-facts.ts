/** What a log line or a record may say of an error: no text of it, and nothing of the request. */
export interface ErrorFacts {
  /** The HTTP status of a service's answer, 100 to 599. */
  status?: number;
  /**
   * The code that the provider, the network or this package gave: `rate_limit_exceeded`, `ECONNREFUSED`,
   * `not_json`. At most 64 letters, digits, dots, dashes and underscores.
   */
  errorCode?: string;
}

// Deep enough for a LangChain error around an SDK's around the network's, and for undici's list of attempts.
const MAX_DEPTH = 6;
const MAX_LAYERS = 32;
// A code is a token. Anything longer, or with spaces, is a text, and a text may repeat the request.
const CODE = /^[A-Za-z0-9_.-]{1,64}$/;
const OWN_CODE = /^AUTO_MODE_/;

/**
 * Reads what is safe to report of an error: from itself, from its causes and from the errors that an
 * `AggregateError` collects. The outermost value wins. It never throws, whatever the error is.
 *
 * @example
 * ```ts
 * errorFacts(await client.post("/decisions").catch((error) => error)); // { status: 429, errorCode: "rate_limit" }
 * ```
 */
export function errorFacts(error: unknown): ErrorFacts {
  const layers = errorLayers(error);
  const status = first(layers, statusesOf, isHttpStatus);
  const errorCode =
    first(layers, (layer) => [readField(layer, "code")], isCode) ??
    first(layers, bodyCodes, isCode) ??
    first(layers, (layer) => [readField(layer, "lc_error_code")], isCode);
  return { ...(status === undefined ? {} : { status }), ...(errorCode === undefined ? {} : { errorCode }) };
}

/** An error, its causes and the errors that an `AggregateError` collects: the outermost first, each once. */
export function errorLayers(error: unknown): object[] {
  const found = new Set<object>();
  let level: unknown[] = [error];
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const fresh = level.filter((value) => isObject(value)).filter((value) => !found.has(value));
    for (const layer of fresh.slice(0, MAX_LAYERS - found.size)) found.add(layer);
    level = fresh.flatMap((layer) => [readField(layer, "cause"), ...collected(layer)]);
  }
  return [...found];
}

/** A field of a value that may be anything: undefined where reading it throws. */
export function readField(value: unknown, name: string): unknown {
  if (!isObject(value)) return undefined;
  try {
    return (value as Readonly<Record<string, unknown>>)[name];
  } catch {
    return undefined;
  }
}

/**
 * When a service wants to be asked again: its `retry-after` in seconds or as a date, from the answer's headers, or
 * from the body where Google says it. Undefined if it does not say.
 */
export function retryAfterOf(error: unknown): string | undefined {
  for (const layer of errorLayers(error)) {
    const headers = [
      readField(layer, "headers"),
      readField(readField(layer, "response"), "headers"),
      readField(readField(layer, "$response"), "headers"),
    ];
    const given = headers.map((value) => headerOf(value)).find((value) => isRetryAfter(value));
    if (given !== undefined) return given;
    const delay = googleDetails(layer)
      .map((detail) => /^(\d+(?:\.\d+)?)s$/.exec(String(readField(detail, "retryDelay")))?.[1])
      .find((seconds) => seconds !== undefined);
    if (delay !== undefined) return String(Math.ceil(Number(delay)));
  }
  return undefined;
}

function headerOf(headers: unknown): string | undefined {
  const value = headers instanceof Headers ? headers.get("retry-after") : readField(headers, "retry-after");
  return typeof value === "string" ? value : undefined;
}

/** Seconds or a date. Anything else would not be a header's value. */
function isRetryAfter(value: string | undefined): value is string {
  return value !== undefined && /^(?:\d{1,9}(?:\.\d+)?|[A-Za-z]{3}, [\w :]{10,30} GMT)$/.test(value);
}

/** The details in the body of an answer of Google's. */
export function googleDetails(layer: object): unknown[] {
  const inBody = readField(readField(readField(layer, "data"), "error"), "details");
  const details = readField(layer, "errorDetails") ?? inBody;
  return Array.isArray(details) ? details : [];
}

function collected(layer: object): unknown[] {
  try {
    const errors = readField(layer, "errors");
    return Array.isArray(errors) ? errors.slice(0, MAX_LAYERS) : [];
  } catch {
    return [];
  }
}

function first<T>(
  layers: readonly object[],
  read: (layer: object) => unknown[],
  test: (value: unknown) => value is T,
): T | undefined {
  return layers.flatMap(read).find(test);
}

function statusesOf(layer: object): unknown[] {
  return [
    readField(layer, "status"),
    readField(layer, "statusCode"),
    // Ollama's client.
    readField(layer, "status_code"),
    readField(readField(layer, "$metadata"), "httpStatusCode"),
    readField(readField(layer, "response"), "status"),
  ];
}

/** Where SDKs keep the code of a service's answer. AWS names it in the error's own name. */
function bodyCodes(layer: object): unknown[] {
  const body = readField(layer, "error");
  const inner = readField(body, "error");
  return [
    readField(body, "code"),
    readField(inner, "code"),
    readField(inner, "type"),
    readField(body, "type"),
    ...(isObject(readField(layer, "$metadata")) ? [readField(layer, "name")] : []),
  ];
}

function isHttpStatus(value: unknown): value is number {
  // Clients also use 0 for "no answer", and errors of other kinds have a status of their own.
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) <= 599;
}

/** The codes of this package's own error classes say nothing that their class does not. */
function isCode(value: unknown): value is string {
  return typeof value === "string" && CODE.test(value) && !OWN_CODE.test(value);
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" || typeof value === "function") && value !== null;
}

/** Writes one JSON object on one line of the standard output. */
export function logLine(event: string, fields: object): void {
  process.stdout.write(`${JSON.stringify({ event, at: new Date().toISOString(), ...fields })}\n`);
}

/** What an operator needs to know of a failure, without its message: that may repeat a request. */
export function errorCode(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (typeof code === "string") return code;
  return typeof name === "string" ? name : "unknown";
}

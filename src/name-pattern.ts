/**
 * Reads a pattern in which `*` matches any characters, or none; everything else is itself. The test
 * takes time linear in the name, which may come from a model or a client.
 *
 * @example
 * ```ts
 * namePattern("mcp__crm__*")("mcp__crm__write"); // true
 * ```
 */
export function namePattern(pattern: string): (name: string) => boolean {
  const parts = pattern.split("*");
  if (parts.length === 1) return (name) => name === pattern;
  const first = parts[0] as string;
  const last = parts.at(-1) as string;
  const between = parts.slice(1, -1);
  return (name) => {
    const end = name.length - last.length;
    if (end < first.length || !name.startsWith(first) || !name.endsWith(last)) return false;
    let from = first.length;
    for (const part of between) {
      const at = name.indexOf(part, from);
      if (at < 0 || at + part.length > end) return false;
      from = at + part.length;
    }
    return true;
  };
}

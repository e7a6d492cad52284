import { Console } from "node:console";
import { Writable } from "node:stream";
import { format, inspect } from "node:util";

/** Everything that printing a value can show. */
export function printsOf(value: unknown): string {
  const chunks: string[] = [];
  const stdout = new Writable({
    write(chunk, _, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  const log = new Console(stdout);
  log.log(value);
  log.dir(value, { showHidden: true, depth: null });
  log.table(value);
  return [
    ...chunks,
    inspect(value, { showHidden: true, depth: Number.POSITIVE_INFINITY, showProxy: true }),
    format("%s %o %O %j", value, value, value, value),
    JSON.stringify(value),
    JSON.stringify({ nested: [value] }),
    String(value),
    value instanceof Error ? `${value.stack}${JSON.stringify(Object.getOwnPropertyDescriptors(value))}` : "",
  ].join("\n");
}

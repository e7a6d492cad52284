import { readFileSync } from "node:fs";
import { z } from "zod";
import { errorFacts } from "../../error-facts.js";
import { ConfigurationError } from "../../errors.js";
import { check } from "../../option-problem.js";
import { isLoose } from "../protocol.js";

/** A file of options that was read. */
export interface ConfigFile {
  /** As the operator wrote it. */
  readonly path: string;
  readonly options: ConfigOptions;
}

const filled = (what: string) => z.string(what).min(1, what).optional();
const PORT = "a whole number from 0 to 65535";
const TOKENS = "a whole number from 1";
// Checked where they are used.
const handlers = z.unknown().optional();

/** What the command itself reads, and the options of the handler that JSON can hold, under the same names. */
const schema = z.strictObject({
  upstream: filled("a URL"),
  model: filled("PROVIDER:NAME"),
  classifier: filled("the name of a classifier, as chat:anthropic:claude-haiku-4-5"),
  fallback: filled("the name of a classifier, as chat:anthropic:claude-haiku-4-5"),
  maxTokens: z.int(TOKENS).min(1, TOKENS).optional(),
  host: filled("a host's name or address"),
  port: z.int(PORT).min(0, PORT).max(65_535, PORT).optional(),
  threshold: handlers,
  timeoutMs: handlers,
  retries: handlers,
  criteria: handlers,
  instructions: handlers,
  view: handlers,
  explain: handlers,
  rules: handlers,
  mapModel: handlers,
  pingIntervalMs: handlers,
  maxBodyBytes: handlers,
});

type ConfigOptions = Readonly<z.output<typeof schema>>;

const SECRET = /(?:key|token|secret|password|credentials?)$/i;

/**
 * Reads a file of options.
 *
 * @throws {ConfigurationError} that names the file and the option, never the value.
 */
export function readConfigFile(path: string): ConfigFile {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    // The parser's own message repeats what is in the file.
    const why =
      error instanceof SyntaxError ? "is not JSON" : `cannot be read: ${errorFacts(error).errorCode}`;
    throw new ConfigurationError("--config", `(or AUTO_MODE_CONFIG) names a file that ${why} (${path})`, {
      cause: error,
    });
  }
  if (!isLoose(value))
    throw new ConfigurationError(
      "--config",
      `(or AUTO_MODE_CONFIG) names a file that holds no object (${path})`,
    );
  const secret = Object.keys(value).find((name) => SECRET.test(name));
  if (secret !== undefined)
    throw new ConfigurationError(
      secret,
      `of ${path} is a secret, which this file does not hold; set the variable that the provider's package reads, as ANTHROPIC_API_KEY`,
    );
  let options: ConfigOptions;
  try {
    options = check(schema, value, "");
  } catch (error) {
    throw namingFile(error, { path, options: value });
  }
  if (options.upstream !== undefined && options.model !== undefined)
    throw new ConfigurationError("model", `of ${path} cannot be given beside upstream`);
  return { path, options };
}

/** The error with the file's name in it, if it is about an option that the file gives. */
export function namingFile(error: unknown, file: { path: string; options: object } | undefined): unknown {
  const wrong = ConfigurationError.find(error);
  const name = wrong?.option.split(/[.[]/, 1)[0] ?? "";
  if (!wrong || !file || !Object.hasOwn(file.options, name)) return error;
  return new ConfigurationError(wrong.option, `of ${file.path} ${problemOf(wrong)}`, { cause: error });
}

/** What an error says without the name of its option. */
export function problemOf({ message, option }: ConfigurationError): string {
  return message.slice(`Option "${option}" `.length);
}

import { parseArgs } from "node:util";
import { ConfigurationError } from "../../errors.js";
import { UNKNOWN_OPTION } from "../../option-problem.js";
import { readUpstreamUrl, UPSTREAM_URL } from "../upstream.js";
import { type ConfigFile, readConfigFile } from "./config-file.js";

/** What the command reads itself. */
interface OwnOptions {
  readonly host: string;
  readonly port: number;
  /** `PROVIDER:NAME` of the chat model that answers, unless it is an upstream. */
  readonly model?: string | undefined;
  readonly classifier: string;
  readonly fallback?: string | undefined;
  /** The most tokens of a chat judge's reply. */
  readonly maxTokens?: number | undefined;
}

/** What the gateway command is started with. */
export interface GatewaySettings extends OwnOptions {
  /** Options of the handler, which checks them. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The file that gave some of them. */
  readonly file?: ConfigFile | undefined;
}

export const USAGE = `Usage: langchain-auto-mode gateway (--upstream URL | --model PROVIDER:NAME) --classifier WHICH [options]

Answers the safeguards of Claude Code's auto mode in front of an Anthropic-compatible upstream, or of any
chat model that LangChain has a package for.

  --upstream URL        the upstream's base URL                        AUTO_MODE_UPSTREAM
  --model PROVIDER:NAME a chat model instead of an upstream            AUTO_MODE_MODEL
  --classifier WHICH    who judges the tool calls                      AUTO_MODE_CLASSIFIER
                          chat:PROVIDER:MODEL     a chat model
                          systemone[:MODEL]       TYPESAFE_BASE_URL, TYPESAFE_API_KEY
                          openai-decisions:MODEL  OPENAI_API_KEY
                          provenance              offline, without a model
  --fallback WHICH      who judges where that one gives no answer      AUTO_MODE_FALLBACK
  --config FILE         options as JSON: rules, criteria, view, ...    AUTO_MODE_CONFIG
  --port PORT           default 4000; 0 takes a free one               AUTO_MODE_PORT
  --host HOST           default 127.0.0.1                              AUTO_MODE_HOST
  --threshold RISK      flagged at or above it, 0 to 1, default 0.5    AUTO_MODE_THRESHOLD
  --timeout-ms MS       for judging one reply, default 30000           AUTO_MODE_TIMEOUT_MS
  --retries N           of a classifier request, 0 to 10, default 2    AUTO_MODE_RETRIES
  --max-tokens N        of a chat judge's reply, default 1024          AUTO_MODE_MAX_TOKENS
  --max-body-bytes N    of a client's request, default 32 MiB          AUTO_MODE_MAX_BODY_BYTES
  --map-model FROM=TO   ask the upstream for TO, repeatable            AUTO_MODE_MAP_MODEL (FROM=TO,FROM=TO)
  --help                print this
  --version             print the version

A flag goes before the file, and the file before a variable. GET /health answers 200 once the gateway is ready.
`;

const CLASSIFIER = "chat:PROVIDER:MODEL, systemone, systemone:MODEL, openai-decisions:MODEL or provenance";

type Environment = Readonly<Record<string, string | undefined>>;
type Options = Partial<OwnOptions> & Readonly<Record<string, unknown>>;

/**
 * Reads the command line, and the file of options that it names. `"help"` or `"version"` if that is what was
 * asked for.
 *
 * @throws ConfigurationError that names the flag and its variable, or the file and its option, never the value.
 */
export function readCommandLine(
  args: readonly string[],
  env: Environment,
): GatewaySettings | "help" | "version" {
  const { values, positionals } = parse(args);
  if (values.help) return "help";
  if (values.version) return "version";
  if (positionals.length === 0)
    throw new ConfigurationError("command", "is missing; the one command is gateway");
  if (positionals.length !== 1 || positionals[0] !== "gateway")
    throw new ConfigurationError("command", "is not known; the one command is gateway");
  const path = values.config ?? (env["AUTO_MODE_CONFIG"] || undefined);
  const file = path === undefined ? undefined : readConfigFile(path);
  const given = override(
    readTexts(
      // A variable that a flag replaces may hold anything, and an empty one is none.
      (flag) => (values[flag] === undefined && env[variableOf(flag)]) || undefined,
      (env["AUTO_MODE_MAP_MODEL"] || undefined)?.split(","),
    ),
    file?.options ?? {},
    readTexts((flag) => values[flag], values["map-model"]),
  );
  const { host = "127.0.0.1", port = 4000, model, classifier, fallback, maxTokens, ...options } = given;
  if (model === undefined && options["upstream"] === undefined)
    fail("upstream", "is missing", "the base URL of an Anthropic-compatible service, or --model");
  if (classifier === undefined) return fail("classifier", "is missing", CLASSIFIER);
  return { host, port, model, classifier, fallback, maxTokens, options, file };
}

/** All options of all layers, each of the last layer that gives it. An upstream and a model replace each other. */
function override(...layers: readonly Options[]): Options {
  return layers.reduce<Options>((below, layer) => {
    const isTarget = layer["upstream"] !== undefined || layer["model"] !== undefined;
    const { upstream: _, model: __, ...rest } = below;
    return { ...(isTarget ? rest : below), ...layer };
  }, {});
}

const withValue = { type: "string" } as const;
const FLAGS = {
  upstream: withValue,
  model: withValue,
  classifier: withValue,
  fallback: withValue,
  config: withValue,
  host: withValue,
  port: withValue,
  threshold: withValue,
  "timeout-ms": withValue,
  retries: withValue,
  "max-tokens": withValue,
  "max-body-bytes": withValue,
  "map-model": { type: "string", multiple: true },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean" },
} as const;

const asItIs = (text: string): string => text;

/** How the text of a flag, or of its variable, becomes an option. */
const READERS = {
  upstream: (text: string) =>
    readUpstreamUrl(text) ? text : fail("upstream", "is not usable", UPSTREAM_URL),
  model: asItIs,
  classifier: asItIs,
  fallback: asItIs,
  host: asItIs,
  port: number("port", "a whole number from 0 to 65535", (value) => isWhole(value, 0, 65_535)),
  threshold: number("threshold", "a number from 0 to 1", (value) => value >= 0 && value <= 1),
  "timeout-ms": number(
    "timeout-ms",
    "milliseconds, more than 0 and at most 2147483647",
    (value) => value > 0 && value <= 2_147_483_647,
  ),
  retries: number("retries", "a whole number from 0 to 10", (value) => isWhole(value, 0, 10)),
  "max-tokens": number("max-tokens", "a whole number from 1", (value) => isWhole(value, 1)),
  "max-body-bytes": number("max-body-bytes", "a whole number from 1", (value) => isWhole(value, 1)),
} as const;
type TextFlag = keyof typeof READERS;

/** The options that flags or variables give, under their names in a file. */
function readTexts(
  textOf: (flag: TextFlag) => string | undefined,
  pairs: readonly string[] | undefined,
): Options {
  const options: Record<string, unknown> = {};
  for (const [flag, read] of Object.entries(READERS)) {
    const text = textOf(flag as TextFlag);
    if (text !== undefined) options[optionOf(flag)] = read(text);
  }
  if (pairs) options["mapModel"] = Object.fromEntries(pairs.map((pair) => readPair(pair)));
  if (options["model"] !== undefined && options["upstream"] !== undefined)
    fail("model", "cannot be given beside --upstream", "one of them");
  return options;
}

/** `max-tokens` is the option `maxTokens`. */
function optionOf(flag: string): string {
  return flag.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function number(flag: string, expected: string, isGood: (value: number) => boolean) {
  return (text: string): number => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    return isGood(value) ? value : fail(flag, "is not usable", expected);
  };
}

function isWhole(value: number, least: number, most = Number.MAX_SAFE_INTEGER): boolean {
  return Number.isSafeInteger(value) && value >= least && value <= most;
}

function parse(args: readonly string[]) {
  const given = { args: [...args], allowPositionals: true, options: FLAGS } as const;
  try {
    return parseArgs(given);
  } catch (error) {
    // The platform's own message repeats what was typed, a value in the wrong place included.
    const { tokens } = parseArgs({ ...given, strict: false, tokens: true });
    for (const token of tokens) {
      if (token.kind !== "option") continue;
      const problem = flagProblem(token);
      if (problem !== undefined)
        throw new ConfigurationError(token.rawName, `${problem}; --help shows the flags`, { cause: error });
    }
    throw new ConfigurationError("command line", "cannot be read; --help shows the flags", { cause: error });
  }
}

function flagProblem(flag: { name: string; value?: string | undefined; inlineValue?: boolean | undefined }) {
  if (!Object.hasOwn(FLAGS, flag.name)) return UNKNOWN_OPTION;
  if (FLAGS[flag.name as keyof typeof FLAGS].type === "boolean")
    return flag.value === undefined ? undefined : "takes no value";
  const isMissing = flag.value === undefined || (!flag.inlineValue && flag.value.startsWith("-"));
  return isMissing ? "needs a value; one that begins with a dash is given as --flag=VALUE" : undefined;
}

function variableOf(flag: string): string {
  return `AUTO_MODE_${flag.toUpperCase().replaceAll("-", "_")}`;
}

function fail(flag: string, problem: string, expected: string): never {
  throw new ConfigurationError(`--${flag}`, `(or ${variableOf(flag)}) ${problem}; expected ${expected}`);
}

function readPair(pair: string): [string, string] {
  const at = pair.indexOf("=");
  const from = pair.slice(0, at).trim();
  const to = pair.slice(at + 1).trim();
  return at > 0 && from !== "" && to !== "" ? [from, to] : fail("map-model", "is not usable", "FROM=TO");
}

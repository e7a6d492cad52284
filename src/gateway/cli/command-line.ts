import { parseArgs } from "node:util";
import { ConfigurationError } from "../../errors.js";
import { UNKNOWN_OPTION } from "../../option-problem.js";
import { readUpstreamUrl, UPSTREAM_URL } from "../upstream.js";

/** What the gateway command is started with. */
export interface GatewaySettings {
  /** The base URL of what answers, unless it is a model. */
  readonly upstream?: string;
  /** `PROVIDER:NAME` of the chat model that answers. */
  readonly model?: string;
  readonly classifier: string;
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly threshold: number;
  readonly mapModel: Readonly<Record<string, string>>;
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
  --port PORT           default 4000; 0 takes a free one               AUTO_MODE_PORT
  --host HOST           default 127.0.0.1                              AUTO_MODE_HOST
  --timeout-ms MS       for one judgment, default 30000                AUTO_MODE_TIMEOUT_MS
  --threshold RISK      flagged at or above it, 0 to 1, default 0.5    AUTO_MODE_THRESHOLD
  --map-model FROM=TO   ask the upstream for TO, repeatable            AUTO_MODE_MAP_MODEL (FROM=TO,FROM=TO)
  --help                print this
  --version             print the version

A flag goes before its environment variable. GET /health answers 200 once the gateway is ready.
`;

const CLASSIFIER = "chat:PROVIDER:MODEL, systemone, systemone:MODEL, openai-decisions:MODEL or provenance";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the command line. `"help"` or `"version"` if that is what was asked for.
 *
 * @throws ConfigurationError that names the flag and its variable, never the value.
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
  const given = (flag: "upstream" | "model" | "classifier" | "host" | "port" | "timeout-ms" | "threshold") =>
    values[flag] ?? (env[variableOf(flag)] || undefined);
  const pairs = values["map-model"] ?? (env["AUTO_MODE_MAP_MODEL"] || undefined)?.split(",") ?? [];
  return {
    ...readTarget(given("upstream"), given("model")),
    classifier: given("classifier") ?? fail("classifier", "is missing", CLASSIFIER),
    host: given("host") ?? "127.0.0.1",
    port: readNumber("port", given("port") ?? "4000", "a whole number from 0 to 65535", isPort),
    timeoutMs: readNumber(
      "timeout-ms",
      given("timeout-ms") ?? "30000",
      "milliseconds, more than 0 and at most 2147483647",
      isDelay,
    ),
    threshold: readNumber(
      "threshold",
      given("threshold") ?? "0.5",
      "a number from 0 to 1",
      (value) => value >= 0 && value <= 1,
    ),
    mapModel: Object.fromEntries(pairs.map((pair) => readPair(pair))),
  };
}

/** What answers the requests: an upstream or a model. */
function readTarget(upstream: string | undefined, model: string | undefined) {
  if (model !== undefined) {
    if (upstream !== undefined) fail("model", "cannot be given beside --upstream", "one of them");
    return { model };
  }
  if (upstream === undefined)
    return fail("upstream", "is missing", "the base URL of an Anthropic-compatible service, or --model");
  return readUpstreamUrl(upstream) ? { upstream } : fail("upstream", "is not usable", UPSTREAM_URL);
}

const withValue = { type: "string" } as const;
const FLAGS = {
  upstream: withValue,
  model: withValue,
  classifier: withValue,
  host: withValue,
  port: withValue,
  "timeout-ms": withValue,
  threshold: withValue,
  "map-model": { type: "string", multiple: true },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean" },
} as const;

function parse(args: readonly string[]) {
  const given = { args: [...args], allowPositionals: true, options: FLAGS } as const;
  try {
    return parseArgs(given);
  } catch (error) {
    // The platform's own message repeats what was typed, a value that stands in the wrong place included.
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

function readNumber(
  flag: string,
  text: string,
  expected: string,
  isGood: (value: number) => boolean,
): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  return isGood(value) ? value : fail(flag, "is not usable", expected);
}

const isPort = (value: number) => Number.isInteger(value) && value >= 0 && value <= 65_535;
const isDelay = (value: number) => value > 0 && value <= 2_147_483_647;

function readPair(pair: string): [string, string] {
  const at = pair.indexOf("=");
  const from = pair.slice(0, at).trim();
  const to = pair.slice(at + 1).trim();
  return at > 0 && from !== "" && to !== "" ? [from, to] : fail("map-model", "is not usable", "FROM=TO");
}

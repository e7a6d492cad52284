import { errorFacts, readField } from "../../error-facts.js";
import { ConfigurationError } from "../../errors.js";
import { type GatewaySettings, readCommandLine, USAGE } from "./command-line.js";
import { namingFile, problemOf } from "./config-file.js";
import { CannotListen, startServer } from "./server.js";

const CANNOT_START = 1;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The command `gateway`. Gives the exit status if there is nothing to run; `undefined`: it listens until it is
 * told to stop.
 *
 * @throws ConfigurationError for a wrong command line or a classifier that cannot be made
 */
export async function gatewayCommand(args: readonly string[], env: Environment): Promise<number | undefined> {
  const settings = readCommandLine(["gateway", ...args], env);
  if (typeof settings === "string") {
    process.stdout.write(USAGE);
    return 0;
  }
  try {
    await runGateway(settings);
    return undefined;
  } catch (error) {
    if (ConfigurationError.isInstance(error)) throw error;
    const code = errorFacts(error).errorCode ?? "unknown";
    const why = error instanceof CannotListen ? error.message : `The gateway could not start: ${code}`;
    process.stderr.write(`${why}\n`);
    return CANNOT_START;
  }
}

/** Runs a gateway in the foreground until the process is told to stop. Resolves once it listens. */
async function runGateway(settings: GatewaySettings): Promise<void> {
  const { host, port } = settings;
  refuseOwnAddress(settings, process.env);
  const handler = await makeHandler(settings).catch((error: unknown) => {
    throw namingFile(error, settings.file);
  });
  const server = await startServer(handler, { host, port, health: namesOf(settings) });
  const stop = async () => {
    logLine("stopping", {});
    await server.close();
    // A classifier may keep its lines open for a next request.
    process.exit(0);
  };
  // Once: a second signal ends the process at once, streams or not.
  process.once("SIGTERM", () => void stop());
  process.once("SIGINT", () => void stop());
  logLine("listening", { host: server.host, port: server.port });
}

async function makeHandler({ model, classifier, fallback, maxTokens, options }: GatewaySettings) {
  // Loaded here, so that help and wrong usage are answered at once.
  const { createSafeguardsHandler } = await import("../handler.js");
  const { chooseClassifier } = await import("../../classifiers/classifier-choice.js");
  const { loadChatModel } = await import("../model/load-chat-model.js");
  const limits = maxTokens === undefined ? {} : { maxTokens };
  return createSafeguardsHandler({
    ...options,
    ...(model === undefined ? {} : { model: await loadChatModel(model) }),
    classifier: await chooseClassifier(classifier, limits),
    ...(fallback === undefined
      ? {}
      : { fallback: await chooseClassifier(fallback, limits).catch(asFallback) }),
    onJudged: (record) => logLine("judged", record),
    onStrictUpstream: () => logLine("upstream_refuses_safeguards", {}),
    onUpstreamError: (error) => logLine("upstream_error", upstreamFailure(error)),
  });
}

/** Says of a fallback's name what it says of the classifier's. */
const asFallback = (error: unknown): never => {
  const wrong = ConfigurationError.find(error);
  if (wrong?.option !== "classifier") throw error;
  throw new ConfigurationError("fallback", problemOf(wrong), { cause: error });
};

/** What is configured, for `/health`: names, no keys and no paths. */
function namesOf({
  model,
  classifier,
  fallback,
  options,
}: GatewaySettings): Readonly<Record<string, string>> {
  const { upstream } = options;
  return {
    classifier,
    ...(fallback === undefined ? {} : { fallback }),
    ...(model === undefined ? { upstream: new URL(String(upstream)).host } : { model }),
  };
}

/** Variables by which the packages of judges and models find their services. */
const ADDRESSES = [
  "ANTHROPIC_BASE_URL",
  "OPENAI_BASE_URL",
  "OPENAI_API_BASE",
  "OLLAMA_BASE_URL",
  "TYPESAFE_BASE_URL",
];
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]"]);

/**
 * The client's settings name the gateway in a variable that the judge's package reads too: the judge would ask
 * the gateway, which would ask the judge.
 *
 * @throws {ConfigurationError} that names the variable.
 */
export function refuseOwnAddress(
  { host, port, options }: Pick<GatewaySettings, "host" | "port" | "options">,
  env: Environment,
): void {
  const isHere = (value: unknown): boolean => {
    if (typeof value !== "string" || !URL.canParse(value)) return false;
    const { hostname, port: given, protocol } = new URL(value);
    const isSameHost = hostname === host || (LOOPBACK.has(hostname) && (LOOPBACK.has(host) || host === "::"));
    return isSameHost && Number(given || (protocol === "https:" ? 443 : 80)) === port;
  };
  if (isHere(options["upstream"]))
    throw new ConfigurationError("upstream", "is the gateway's own address, so it would ask itself");
  for (const variable of ADDRESSES)
    if (isHere(env[variable]))
      throw new ConfigurationError(
        variable,
        "is the gateway's own address, so the judge would ask the gateway; unset it where the gateway starts, and set it for the client only",
      );
}

/** Writes one JSON object on one line of the standard output. */
function logLine(event: string, fields: object): void {
  process.stdout.write(`${JSON.stringify({ event, at: new Date().toISOString(), ...fields })}\n`);
}

/** What an operator needs to know of a failure, without its message: that may repeat a request. */
function upstreamFailure(error: unknown): object {
  const { status, errorCode } = errorFacts(error);
  const code = errorCode ?? readField(error, "name") ?? "unknown";
  return { code, ...(status === undefined ? {} : { httpStatus: status }) };
}

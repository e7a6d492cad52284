import { ConfigurationError } from "../../errors.js";
import { chooseClassifier } from "../../classifiers/classifier-choice.js";
import type { GatewaySettings } from "./command-line.js";
import { createSafeguardsHandler } from "../handler.js";
import { loadChatModel } from "../model/load-chat-model.js";
import { errorCode, logLine } from "./log-line.js";
import { startServer } from "./server.js";

/** Variables by which the judge's package finds its service. */
const JUDGE_ADDRESSES = ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "TYPESAFE_BASE_URL"];
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]"]);

/**
 * The client's settings name the gateway in a variable that the judge's package reads too: the judge would ask
 * the gateway, which would ask the judge.
 *
 * @throws {ConfigurationError} that names the variable.
 */
export function refuseOwnAddress(
  { host, port }: Pick<GatewaySettings, "host" | "port">,
  env: Readonly<Record<string, string | undefined>>,
): void {
  for (const variable of JUDGE_ADDRESSES) {
    const value = env[variable];
    if (!value || !URL.canParse(value)) continue;
    const { hostname, port: given, protocol } = new URL(value);
    const isHere = hostname === host || (LOOPBACK.has(hostname) && (LOOPBACK.has(host) || host === "::"));
    if (isHere && Number(given || (protocol === "https:" ? 443 : 80)) === port)
      throw new ConfigurationError(
        variable,
        "is the gateway's own address, so the judge would ask the gateway; unset it where the gateway starts, and set it for the client only",
      );
  }
}

/** Runs a gateway in the foreground until the process is told to stop. Resolves once it listens. */
export async function runGateway(settings: GatewaySettings): Promise<void> {
  const { host, port, classifier, model, ...options } = settings;
  refuseOwnAddress({ host, port }, process.env);
  const handler = createSafeguardsHandler({
    ...options,
    ...(model === undefined ? {} : { model: await loadChatModel(model) }),
    classifier: await chooseClassifier(classifier),
    onJudged: (record) => logLine("judged", record),
    onStrictUpstream: () => logLine("upstream_refuses_safeguards", {}),
    onUpstreamError: (error) => logLine("upstream_error", { code: errorCode(error) }),
  });
  const server = await startServer(handler, { host, port });
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

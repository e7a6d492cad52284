import { chooseClassifier } from "../../classifiers/classifier-choice.js";
import type { GatewaySettings } from "./command-line.js";
import { createSafeguardsHandler } from "../handler.js";
import { errorCode, logLine } from "./log-line.js";
import { startServer } from "./server.js";

/** Runs a gateway in the foreground until the process is told to stop. Resolves once it listens. */
export async function runGateway(settings: GatewaySettings): Promise<void> {
  const { host, port, classifier, ...options } = settings;
  const handler = createSafeguardsHandler({
    ...options,
    classifier: await chooseClassifier(classifier),
    onJudged: (record) => logLine("judged", record),
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

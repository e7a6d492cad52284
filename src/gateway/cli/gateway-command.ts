import { ConfigurationError } from "../../errors.js";
import { CannotListen } from "./cannot-listen.js";
import { readCommandLine, USAGE } from "./command-line.js";
import { errorCode } from "./log-line.js";

const CANNOT_START = 1;

/**
 * The command `gateway`. Gives the exit status if there is nothing to run; `undefined`: it listens until it is
 * told to stop.
 *
 * @throws ConfigurationError for a wrong command line or a classifier that cannot be made
 */
export async function gatewayCommand(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number | undefined> {
  const settings = readCommandLine(["gateway", ...args], env);
  if (typeof settings === "string") {
    process.stdout.write(USAGE);
    return 0;
  }
  try {
    // Loaded here, so that help and wrong usage are answered at once.
    const { runGateway } = await import("./run-gateway.js");
    await runGateway(settings);
    return undefined;
  } catch (error) {
    if (ConfigurationError.isInstance(error)) throw error;
    const why =
      error instanceof CannotListen ? error.message : `The gateway could not start: ${errorCode(error)}`;
    process.stderr.write(`${why}\n`);
    return CANNOT_START;
  }
}

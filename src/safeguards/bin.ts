#!/usr/bin/env node
import { ConfigurationError } from "../errors.js";
import { readCommandLine, USAGE } from "./command-line.js";
import { errorCode } from "./log-line.js";

const CANNOT_START = 1;
const WRONG_USAGE = 2;

try {
  const settings = readCommandLine(process.argv.slice(2), process.env);
  if (settings === "help") process.stdout.write(USAGE);
  else {
    // Loaded here, so that help and wrong usage are answered at once.
    const { runGateway } = await import("./run-gateway.js");
    await runGateway(settings);
  }
} catch (error) {
  const wrong = ConfigurationError.find(error);
  process.stderr.write(`${wrong?.message ?? `The gateway could not start: ${errorCode(error)}`}\n`);
  process.exit(wrong ? WRONG_USAGE : CANNOT_START);
}

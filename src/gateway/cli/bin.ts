#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { ConfigurationError } from "../../errors.js";
import { CannotListen } from "./cannot-listen.js";
import { readCommandLine, USAGE } from "./command-line.js";
import { errorCode } from "./log-line.js";

const CANNOT_START = 1;
const WRONG_USAGE = 2;

function packageVersion(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

try {
  const settings = readCommandLine(process.argv.slice(2), process.env);
  if (settings === "help") process.stdout.write(USAGE);
  else if (settings === "version") process.stdout.write(`${packageVersion()}\n`);
  else {
    // Loaded here, so that help and wrong usage are answered at once.
    const { runGateway } = await import("./run-gateway.js");
    await runGateway(settings);
  }
} catch (error) {
  const wrong = ConfigurationError.find(error);
  const known = wrong ?? (error instanceof CannotListen ? error : undefined);
  process.stderr.write(`${known?.message ?? `The gateway could not start: ${errorCode(error)}`}\n`);
  process.exit(wrong ? WRONG_USAGE : CANNOT_START);
}

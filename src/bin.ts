#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { ConfigurationError } from "./errors.js";

const USAGE = `Usage: langchain-auto-mode COMMAND [options]

  gateway           answer the safeguards of Claude Code's auto mode in front of a model service
  label FILE        label logged decisions in the terminal: risky or benign
  evaluate FILE     measure a classifier on labeled decisions, and say what to set
  --version         print the version
  --help            print this; "langchain-auto-mode COMMAND --help" shows a command's options
`;

const WRONG_USAGE = 2;

function packageVersion(): string {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Runs a command, each loaded only when it is wanted. Gives the exit status; `undefined`: it goes on running. */
async function run([command, ...args]: readonly string[]): Promise<number | undefined> {
  if (command === "--version" || args.includes("--version")) {
    process.stdout.write(`${packageVersion()}\n`);
    return 0;
  }
  switch (command) {
    case "gateway":
      return (await import("./gateway/cli/run-gateway.js")).gatewayCommand(args, process.env);
    case "label":
      return (await import("./evaluation/label-command.js")).labelCommand(args);
    case "evaluate": {
      const { evaluateCommand } = await import("./evaluation/evaluate.js");
      const { processTerminal } = await import("./evaluation/terminal.js");
      return evaluateCommand(args, processTerminal());
    }
    case "--help":
    case "-h":
      process.stdout.write(USAGE);
      return 0;
    case undefined:
      throw new ConfigurationError("command", "is missing; expected gateway, label or evaluate");
    default:
      throw new ConfigurationError("command", "is not known; expected gateway, label or evaluate");
  }
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  const wrong = ConfigurationError.find(error);
  if (!wrong) throw error;
  process.stderr.write(`${wrong.message}\n`);
  process.exitCode = WRONG_USAGE;
}

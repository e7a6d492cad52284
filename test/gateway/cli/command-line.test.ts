import { ConfigurationError } from "langchain-auto-mode";
import { describe, expect, test, vi } from "vitest";
import { chooseClassifier } from "../../../src/classifiers/classifier-choice.js";
import { readCommandLine, USAGE } from "../../../src/gateway/cli/command-line.js";

const FINE = ["gateway", "--upstream", "http://h", "--classifier", "provenance"];

describe("the command line", () => {
  test("has a default for whatever may be left out", () => {
    expect(readCommandLine(FINE, {})).toEqual({
      upstream: "http://h",
      classifier: "provenance",
      host: "127.0.0.1",
      port: 4000,
      timeoutMs: 30_000,
      threshold: 0.5,
      mapModel: {},
    });
  });

  test("takes flags before variables, and a variable that is empty for none", () => {
    const env = {
      AUTO_MODE_PORT: "5000",
      AUTO_MODE_HOST: "",
      AUTO_MODE_THRESHOLD: "0",
      AUTO_MODE_MAP_MODEL: "a=b=c, d=e",
    };
    expect(readCommandLine([...FINE, "--port=0", "--timeout-ms", "1500.5"], env)).toMatchObject({
      port: 0,
      host: "127.0.0.1",
      threshold: 0,
      timeoutMs: 1_500.5,
      mapModel: { a: "b=c", d: "e" },
    });
    const flags = ["--map-model", "x=y", "--map-model", "z=w"];
    expect(readCommandLine([...FINE, ...flags], env)).toMatchObject({ mapModel: { x: "y", z: "w" } });
  });

  test("takes a chat model in the place of an upstream", () => {
    const flags = ["gateway", "--classifier", "provenance"];
    const expected = { model: "ollama:qwen3:8b", classifier: "provenance" };
    const settings = readCommandLine([...flags, "--model", "ollama:qwen3:8b"], {});
    expect(settings).toMatchObject(expected);
    expect(settings).not.toHaveProperty("upstream");
    expect(readCommandLine(flags, { AUTO_MODE_MODEL: "ollama:qwen3:8b" })).toMatchObject(expected);
  });

  test("help names every flag with its variable", () => {
    expect(readCommandLine(["--help"], {})).toBe("help");
    expect(readCommandLine(["gateway", "-h"], {})).toBe("help");
    expect(readCommandLine(["--version"], {})).toBe("version");
    const flags = ["upstream", "model", "classifier", "port", "host", "timeout-ms", "threshold", "map-model"];
    for (const flag of flags) {
      const variable = `AUTO_MODE_${flag.toUpperCase().replace("-", "_")}`;
      expect(USAGE).toMatch(new RegExp(`--${flag} .*${variable}`));
    }
  });

  test.each([
    ["no command", [], /command.*missing.*gateway/],
    ["another command", ["serve"], /command.*gateway/],
    ["two commands", ["gateway", "sk-1"], /command.*gateway/],
    ["no upstream", ["gateway", "--classifier", "sk-1"], /"--upstream.*AUTO_MODE_UPSTREAM.*missing/],
    [
      "an upstream that is no URL",
      ["gateway", "--upstream", "sk-1"],
      /--upstream.*AUTO_MODE_UPSTREAM.*fragment$/,
    ],
    ["an upstream with a key", ["gateway", "--upstream", "http://sk-1@h"], /--upstream.*without credentials/],
    [
      "an upstream and a model",
      [...FINE, "--model", "sk-1:m"],
      /"--model.*AUTO_MODE_MODEL.*beside --upstream/,
    ],
    ["no classifier", FINE.slice(0, 3), /--classifier.*AUTO_MODE_CLASSIFIER.*missing/],
    ["a port that is none", [...FINE, "--port", "sk-1"], /--port.*AUTO_MODE_PORT.*whole number/],
    ["an empty port", [...FINE, "--port", " "], /--port.*whole number/],
    ["a port out of range", [...FINE, "--port", "65536"], /--port.*65535/],
    [
      "a timeout of nothing",
      [...FINE, "--timeout-ms", "0"],
      /--timeout-ms.*AUTO_MODE_TIMEOUT_MS.*milliseconds/,
    ],
    ["a threshold above one", [...FINE, "--threshold", "1.1"], /--threshold.*0 to 1/],
    ["a model mapped to nothing", [...FINE, "--map-model", "sk-1="], /--map-model.*FROM=TO/],
    ["a model mapped from nothing", [...FINE, "--map-model", "=sk-1"], /--map-model.*FROM=TO/],
    ["an unknown flag", [...FINE, "--verbose"], /"--verbose" is not an option.*--help/],
    ["a misspelt flag", [...FINE, "--tresh", "sk-1"], /"--tresh" is not an option; check its spelling/],
    ["a misspelt flag with its value", [...FINE, "--tresh=sk-1"], /"--tresh" is not an option/],
    ["an unknown letter", [...FINE, "-xsk-1"], /"-x" is not an option/],
    ["a flag without its value", ["gateway", "--upstream"], /"--upstream" needs a value/],
    ["a flag before another", ["gateway", "--upstream", "--port", "0"], /"--upstream" needs a value/],
    ["a value that begins with a dash", [...FINE, "--host", "-sk-1"], /"--host" needs a value.*--flag=VALUE/],
    ["a value for a flag that takes none", [...FINE, "--help=sk-1"], /"--help" takes no value/],
  ])("%s: an error that names the flag and never the value", (_, args, said) => {
    const read = () => readCommandLine(args, {});
    expect(read).toThrow(ConfigurationError);
    expect(read).toThrow(said);
    expect(read).not.toThrow(/sk-1/);
  });
});

describe("the classifier of a command line", () => {
  test.each([
    ["provenance", {}, "provenance-1"],
    ["openai-decisions:gpt-6-luna", { OPENAI_API_KEY: "k-123456" }, "gpt-6-luna"],
    ["systemone", { TYPESAFE_API_KEY: "k-123456", TYPESAFE_DEFAULT_MODEL: "" }, "jev-latest"],
    ["systemone:jev:2", { TYPESAFE_API_KEY: "k-123456" }, "jev:2"],
    ["chat:anthropic:claude-haiku-4-5", { ANTHROPIC_API_KEY: "k-123456" }, "anthropic:claude-haiku-4-5"],
  ])("%s is made", async (which, env, model) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    expect(await chooseClassifier(which)).toMatchObject({ model });
    vi.unstubAllEnvs();
  });

  test.each([
    ["sk-1", /"classifier".*systemone/],
    ["", /"classifier".*systemone/],
    ["provenance:", /"classifier".*systemone/],
    ["systemone:", /"classifier".*systemone/],
    ["openai-decisions", /"classifier" has no model name; expected openai-decisions:MODEL/],
    ["openai:gpt-4o", /expected chat:openai:MODEL for a chat model, or openai-decisions:MODEL/],
    ["chat:sk-1", /"classifier" has no model name; expected chat:PROVIDER:MODEL/],
    ["chat:sk-1:", /"classifier" has no model name; expected chat:PROVIDER:MODEL/],
    ["chat", /"classifier".*PROVIDER/],
    ["chat::sk-1", /"classifier".*PROVIDER/],
    ["chat:anthropic:m", /key not found/],
    ["chat:no-such-provider:m", /could not be made/],
    ["openai-decisions:m", /OPENAI_API_KEY/],
    ["systemone:m", /TYPESAFE_API_KEY/],
  ])("%s: an error that says what is missing", async (which, said) => {
    for (const name of ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TYPESAFE_API_KEY"]) vi.stubEnv(name, "");
    const error: unknown = await chooseClassifier(which).catch((caught: unknown) => caught);
    vi.unstubAllEnvs();
    expect(ConfigurationError.isInstance(error)).toBe(true);
    expect((error as Error).message).toMatch(said);
    expect((error as Error).message).not.toContain("sk-1");
  });
});

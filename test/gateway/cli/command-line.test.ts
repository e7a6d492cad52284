import { readFileSync } from "node:fs";
import { ConfigurationError } from "langchain-auto-mode";
import { ProvenanceDecisionModel } from "langchain-auto-mode/classifiers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { chooseClassifier } from "../../../src/classifiers/classifier-choice.js";
import { type GatewaySettings, readCommandLine, USAGE } from "../../../src/gateway/cli/command-line.js";
import { writtenFile } from "./written-file.js";
import { createSafeguardsHandler } from "langchain-auto-mode/safeguards";
import { startUpstream } from "../loopback.js";
import { available, flagged, message, request, toolUse } from "../messages.js";

const FINE = ["gateway", "--upstream", "http://h", "--classifier", "provenance"];

describe("the command line", () => {
  test("has a default for whatever may be left out", () => {
    expect(readCommandLine(FINE, {})).toEqual({
      classifier: "provenance",
      host: "127.0.0.1",
      port: 4000,
      options: { upstream: "http://h" },
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
      options: { threshold: 0, timeoutMs: 1_500.5, mapModel: { a: "b=c", d: "e" } },
    });
    const flags = ["--map-model", "x=y", "--map-model", "z=w"];
    expect(readCommandLine([...FINE, ...flags], env)).toMatchObject({
      options: { mapModel: { x: "y", z: "w" } },
    });
  });

  test("takes a chat model in the place of an upstream", () => {
    const flags = ["gateway", "--classifier", "provenance"];
    const expected = { model: "ollama:qwen3:8b", classifier: "provenance" };
    const settings = readCommandLine([...flags, "--model", "ollama:qwen3:8b"], {});
    expect(settings).toMatchObject(expected);
    expect(settings).toHaveProperty("options", {});
    const env = { AUTO_MODE_UPSTREAM: "http://h" };
    expect(readCommandLine([...flags, "--model", "ollama:qwen3:8b"], env)).toEqual(settings);
    expect(readCommandLine(flags, { AUTO_MODE_MODEL: "ollama:qwen3:8b" })).toMatchObject(expected);
  });

  test("help names every flag with its variable", () => {
    expect(readCommandLine(["--help"], {})).toBe("help");
    expect(readCommandLine(["gateway", "-h"], {})).toBe("help");
    expect(readCommandLine(["--version"], {})).toBe("version");
    const flags = [...USAGE.matchAll(/^ {2}--(?<flag>[a-z-]+) /gm)].map(({ groups }) => groups!["flag"]!);
    expect(flags.length).toBeGreaterThan(12);
    for (const flag of flags.filter((name) => name !== "help" && name !== "version")) {
      const variable = `AUTO_MODE_${flag.toUpperCase().replaceAll("-", "_")}`;
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
    ["too many retries", [...FINE, "--retries", "11"], /--retries.*AUTO_MODE_RETRIES.*0 to 10/],
    ["a limit of no tokens", [...FINE, "--max-tokens", "0"], /--max-tokens.*AUTO_MODE_MAX_TOKENS.*from 1/],
    ["a limit of half a byte", [...FINE, "--max-body-bytes", "0.5"], /--max-body-bytes.*from 1/],
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
    const reading = () => readCommandLine(args, {});
    expect(reading).toThrow(ConfigurationError);
    expect(reading).toThrow(said);
    expect(reading).not.toThrow(/sk-1/);
  });
});

const read = (content: unknown, args: readonly string[] = [], env = {}) =>
  readCommandLine(["gateway", "--config", writtenFile(content), ...args], env);

describe("a file of options", () => {
  test("gives every option, under the handler's names", () => {
    const options = {
      upstream: "http://h",
      threshold: 0.7,
      timeoutMs: 1_000,
      retries: 1,
      criteria: { true: "Bad.", false: "Good." },
      instructions: "Is it bad?",
      view: { maxChars: 1_000 },
      explain: true,
      rules: [{ tool: "Read", decide: "allow" }],
      mapModel: { "*": "m" },
      pingIntervalMs: 100,
      maxBodyBytes: 1_000,
    };
    const own = { classifier: "provenance", fallback: "provenance", maxTokens: 2_000, host: "::1", port: 1 };
    const { file: used, ...settings } = read({ ...options, ...own }) as GatewaySettings;
    expect(settings).toEqual({ ...own, options });
    expect(used?.path).toMatch(/gateway\.json$/);
  });

  test("goes before variables, and a flag before it", () => {
    const env = {
      AUTO_MODE_PORT: "none",
      AUTO_MODE_THRESHOLD: "0.1",
      AUTO_MODE_RETRIES: "1",
      AUTO_MODE_MAP_MODEL: "",
    };
    const content = { port: 2, threshold: 0.2, model: "ollama:m" };
    expect(read(content, [...FINE.slice(1), "--port", "3"], env)).toMatchObject({
      port: 3,
      options: { threshold: 0.2, retries: 1, upstream: "http://h" },
    });
    expect(readCommandLine(FINE, { AUTO_MODE_CONFIG: writtenFile({ port: 4 }) })).toMatchObject({ port: 4 });
  });

  test.each<[string, unknown, RegExp]>([
    [
      "that is no JSON",
      '{"apiKey": sk-1',
      /^Option "--config" \(or AUTO_MODE_CONFIG\).*is not JSON \(.*gateway\.json\)$/,
    ],
    ["that is a list", ["sk-1"], /"--config".*holds no object/],
    [
      "with an unknown name",
      { treshold: 0.5 },
      /"treshold" of .*gateway\.json is not an option; check its spelling/,
    ],
    ["with a function's name", { allow: "sk-1" }, /"allow" of .*gateway\.json is not an option/],
    [
      "with a key",
      { apiKey: "sk-1" },
      /"apiKey" of .*gateway\.json is a secret.*variable.*ANTHROPIC_API_KEY/,
    ],
    ["with a token", { auth_token: "sk-1" }, /"auth_token" of .*is a secret/],
    [
      "with a port that is none",
      { port: "sk-1" },
      /"port" of .*gateway\.json is a string; expected a whole number/,
    ],
    ["with an upstream and a model", { upstream: "http://h", model: "sk-1" }, /"model" of .*beside upstream/],
  ])("%s: an error that names file and option, and not the value", (_, content, said) => {
    const reading = () => read(content, FINE.slice(1));
    expect(reading).toThrow(ConfigurationError);
    expect(reading).toThrow(said);
    expect(reading).not.toThrow(/sk-1/);
  });

  test("that is not there: an error that names it", () => {
    expect(() => readCommandLine([...FINE, "--config", "no/such.json"], {})).toThrow(
      /"--config".*cannot be read: ENOENT \(no\/such\.json\)/,
    );
  });
});

describe("the page about options", () => {
  const page = readFileSync(new URL("../../../docs/gateway-options.md", import.meta.url), "utf8");

  test("shows a file that is taken, rules included", () => {
    const [, shown = ""] = /```json\n(?<file>[^]*?)```/.exec(page) ?? [];
    const { options } = read(shown) as GatewaySettings;
    expect(options).toHaveProperty("rules");
    const classifier = new ProvenanceDecisionModel();
    expect(createSafeguardsHandler({ ...options, classifier })).toBeTypeOf("function");
  });

  test("names every option of a file", () => {
    const [, names = ""] = /^All names: (.*)\.$/m.exec(page) ?? [];
    const list = names.split(", ").map((name) => name.replaceAll("`", ""));
    expect(list.length).toBeGreaterThan(15);
    // A value of no type is wrong for each of them, and no name is unknown.
    for (const name of list) expect(() => read({ [name]: null }, FINE.slice(1))).not.toThrow(/spelling/);
  });

  test("has a row for every flag, with its variable", () => {
    const flags = [...USAGE.matchAll(/^ {2}--(?<flag>[a-z-]+) .*(?<variable>AUTO_MODE_\w+)/gm)];
    for (const { groups } of flags)
      expect(page).toMatch(
        new RegExp(`\\| \`--${groups!["flag"]}[ A-Z:=]*\`\\s*\\| \`${groups!["variable"]}\``),
      );
    expect(flags.length).toBeGreaterThan(12);
  });
});

describe("the classifier of a command line", () => {
  test("gets the limit of tokens that is set", async () => {
    await expect(chooseClassifier("chat:anthropic:m", { maxTokens: 0 })).rejects.toThrow(/KEY|key/);
    vi.stubEnv("ANTHROPIC_API_KEY", "k-123456");
    await expect(chooseClassifier("chat:anthropic:m", { maxTokens: 0 })).rejects.toThrow(/"maxTokens"/);
    vi.unstubAllEnvs();
  });

  test.each([
    ["provenance", {}, "provenance-2"],
    ["openai-decisions:gpt-6-luna", { OPENAI_API_KEY: "k-123456" }, "gpt-6-luna"],
    ["systemone", { TYPESAFE_API_KEY: "k-123456", TYPESAFE_DEFAULT_MODEL: "" }, "jev-latest"],
    ["systemone:jev:2", { TYPESAFE_API_KEY: "k-123456" }, "jev:2"],
    ["chat:anthropic:claude-haiku-4-5", { ANTHROPIC_API_KEY: "k-123456" }, "anthropic:claude-haiku-4-5"],
  ])("%s is made", async (which, env, model) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    expect(await chooseClassifier(which)).toMatchObject({ model });
    vi.unstubAllEnvs();
  });

  const answer = '{"explanation":"It is not asked for.","call_1":0.9}';
  const anthropic = message([{ type: "text", text: answer }]);
  const openai = {
    id: "c",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: answer } }],
  };
  const ollama = {
    model: "m",
    created_at: "2026-01-01T00:00:00Z",
    message: { role: "assistant", content: answer },
    done: true,
    done_reason: "stop",
  };
  test.each([
    ["chat:anthropic:m", "ANTHROPIC_BASE_URL", "", "/v1/messages", anthropic],
    ["chat:openai:Qwen/Qwen3-8B", "OPENAI_BASE_URL", "/v1", "/v1/chat/completions", openai],
    ["chat:ollama:qwen3:8b", "OLLAMA_BASE_URL", "", "/api/chat", ollama],
  ])("%s asks the service that %s names", async (which, variable, base, path, body) => {
    const service = await startUpstream((_, response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(`${JSON.stringify(body)}\n`);
    });
    vi.stubEnv(variable, service.url + base);
    for (const name of ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]) vi.stubEnv(name, "k-123456");
    onTestFinished(() => void vi.unstubAllEnvs());
    const handler = createSafeguardsHandler({
      upstream: async () => Response.json(message([toolUse("toolu_a", "Bash", {})])),
      classifier: await chooseClassifier(which),
    });
    const sent = new Request("http://g/v1/messages", {
      method: "POST",
      body: JSON.stringify(request({ stream: false })),
    });
    expect(await (await handler(sent)).json()).toMatchObject({
      safeguard_results: available({ toolu_a: flagged("It is not asked for") }),
    });
    expect(service.received.map((received) => received.path)).toEqual([path]);
  });

  test("whose package is missing: the error names the command that installs it", async () => {
    vi.stubEnv("GROQ_API_KEY", "k-123456");
    onTestFinished(() => void vi.unstubAllEnvs());
    await expect(chooseClassifier("chat:groq:m")).rejects.toThrow(/run "npm install @langchain\/groq"/);
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

import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  installedCopies,
  installedVersion,
  manifest,
  pack,
  type Packed,
  removeTemporaryFolders,
  run,
  temporaryFolder,
  typeCheck,
} from "./pack.js";

let packed: Packed;
beforeAll(() => {
  packed = pack();
});
afterAll(removeTemporaryFolders);

describe("the tarball", () => {
  test("holds the built code, its types with their sources, and four documents, and nothing else", () => {
    // Sources and maps of declarations let an editor go to a definition.
    const code = /^(?:dist\/.+\.(?:js|d\.ts|d\.ts\.map)|src\/.+\.ts)$/;
    const besides = packed.files.filter((file) => !code.test(file));
    expect(besides).toEqual(["CHANGELOG.md", "LICENSE", "README.md", "package.json"]);
  });

  test("has types for every module, and a module for all types", () => {
    const modules = packed.files.filter((file) => file.endsWith(".js"));
    const types = packed.files.filter((file) => file.endsWith(".d.ts"));
    expect(modules.map((file) => file.replace(/\.js$/, ".d.ts"))).toEqual(types);
  });

  test("has every file that the manifest points to", () => {
    const targets = Object.values(manifest.exports).flatMap((target) =>
      typeof target === "string" ? [target] : Object.values(target),
    );
    const pointedTo = [...targets, ...Object.values(manifest.bin ?? {})].map((path) =>
      path.replace(/^\.\//, ""),
    );
    expect(pointedTo).toContain("dist/index.js");
    expect(packed.files).toEqual(expect.arrayContaining(pointedTo));
  });
});

test("every peer range is a caret, whose lowest version is plain to see", () => {
  expect(Object.values(manifest.peerDependencies)).toEqual(
    Object.values(manifest.peerDependencies).map(() => expect.stringMatching(/^\^\d+\.\d+\.\d+$/)),
  );
});

/** The addresses of all modules that a new process loads for these imports. */
function loadedModules(folder: string, names: readonly string[]): string[] {
  const code = `
    import { Session } from "node:inspector";
    const session = new Session();
    const urls = new Set();
    session.connect();
    session.on("Debugger.scriptParsed", ({ params }) => urls.add(params.url));
    session.post("Debugger.enable");
    for (const name of ${JSON.stringify(names)}) await import(name);
    console.log(JSON.stringify([...urls]));`;
  return JSON.parse(run(process.execPath, ["--input-type=module", "--eval", code], folder)) as string[];
}

function packagesOf(urls: readonly string[]): string[] {
  const names = urls.flatMap(
    (url) => /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(url)?.[1] ?? [],
  );
  return [...new Set(names)].toSorted();
}

const peers = Object.entries(manifest.peerDependencies).filter(
  ([name]) => !manifest.peerDependenciesMeta[name]?.optional,
);

describe.each([
  // A caret's own version is the lowest that it allows; npm takes the newest that a range allows.
  {
    which: "lowest",
    version: (range: string) => range.slice(1),
    installed: (range: string) => range.slice(1),
  },
  { which: "newest", version: (range: string) => range, installed: () => expect.any(String) as unknown },
])("installed into an empty folder with the $which peers", ({ version, installed }) => {
  let folder: string;
  beforeAll(() => {
    folder = temporaryFolder();
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const wanted = peers.map(([name, range]) => `${name}@${version(range)}`);
    run("npm", ["install", "--no-audit", "--no-fund", packed.tarball, ...wanted], folder);
  });

  test("the peers are the versions in question, and core and graph are there once", () => {
    expect(peers.map(([name]) => [name, installedVersion(folder, name)])).toEqual(
      peers.map(([name, range]) => [name, installed(range)]),
    );
    const shared = ["@langchain/core", "@langchain/langgraph"];
    expect(shared.map((name) => installedCopies(folder, name))).toEqual(
      shared.map((name) => [`node_modules/${name}`]),
    );
  });

  test("a guarded agent runs: the risky call is blocked, the safe one runs", () => {
    expect(JSON.parse(runCopy("guarded-agent.mjs"))).toEqual({
      ran: ["read_file notes.txt"],
      outcomes: [
        { toolName: "delete_file", outcome: "blocked" },
        { toolName: "read_file", outcome: "allowed", executed: "as judged" },
      ],
      answers: [
        { name: "delete_file", status: "error" },
        { name: "read_file", status: "success" },
      ],
      last: "finished",
    });
  });

  test("every entry point loads without the optional peers, and has no default export", () => {
    const names = Object.keys(manifest.exports).filter((key) => !key.endsWith(".json"));
    const loaded = names.map((key) => {
      const code = `console.log(JSON.stringify(Object.keys(await import("${key.replace(".", manifest.name)}"))))`;
      return JSON.parse(run(process.execPath, ["--input-type=module", "--eval", code], folder)) as string[];
    });
    expect(loaded.map((exported) => exported.length > 0 && !exported.includes("default"))).toEqual(
      names.map(() => true),
    );
  });

  test("importing the middleware loads no module of the other entry points, and none of their packages", () => {
    const host = ["langchain", "@langchain/langgraph", "@langchain/core/decisions", "zod"];
    const known = new Set(packagesOf(loadedModules(folder, host)));
    const loaded = loadedModules(folder, [...host, manifest.name]);
    const ours = loaded.flatMap((url) => /langchain-auto-mode\/dist\/(.+)\.js$/.exec(url)?.[1] ?? []);

    expect(ours).toEqual(expect.arrayContaining(["index", "middleware", "guard/evaluate"]));
    expect(ours.filter((path) => /^(?:bin|classifiers|gateway|evaluation|testing)\b/.test(path))).toEqual([]);
    expect(packagesOf(loaded).filter((name) => !known.has(name))).toEqual([
      "@noble/hashes",
      "langchain-auto-mode",
    ]);
  });

  test("the command is installed, and says how it is used", () => {
    const [name] = Object.keys(manifest.bin ?? {});
    expect(run(join(folder, "node_modules/.bin", name!), ["--help"], folder)).toMatch(/^Usage: /);
  });

  test("the command evaluates a log and draws a report without any optional peer", () => {
    const record = { id: "a", toolName: "t", outcome: "blocked", risk: 0.9, threshold: 0.5, label: "risky" };
    writeFileSync(join(folder, "log.jsonl"), JSON.stringify(record));
    const [name] = Object.keys(manifest.bin ?? {});
    const args = ["evaluate", "log.jsonl", "--report", "report.html"];
    expect(run(join(folder, "node_modules/.bin", name!), args, folder)).toContain("No advice yet");
    expect(readFileSync(join(folder, "report.html"), "utf8")).toContain("<svg");
  });

  test("its types compile strictly in a user's project", () => {
    cpSync(fileURLToPath(new URL("consumer.ts", import.meta.url)), join(folder, "consumer.ts"));
    const compilerOptions = {
      module: "NodeNext",
      target: "ES2023",
      lib: ["ES2023", "DOM"],
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      types: [],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
    expect(ownErrors(typeCheck(folder))).toEqual([]);
  });

  function runCopy(name: string): string {
    cpSync(fileURLToPath(new URL(name, import.meta.url)), join(folder, name));
    return run(process.execPath, [name], folder);
  }
});

/** The type check reads all declarations of all packages; here only ours and the user's matter. */
function ownErrors(output: string): string[] {
  return output
    .split("\n")
    .filter((line) => /^(?:consumer|node_modules\/langchain-auto-mode\/)[^(]*\(.*error TS/.test(line));
}

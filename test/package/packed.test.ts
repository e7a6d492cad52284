import { cpSync, writeFileSync } from "node:fs";
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
} from "./pack.js";

const script = fileURLToPath(new URL("guarded-agent.mjs", import.meta.url));

let packed: Packed;
beforeAll(() => {
  packed = pack();
});
afterAll(removeTemporaryFolders);

describe("the tarball", () => {
  test("holds the built code, its types and the three documents, and nothing else", () => {
    const besides = packed.files.filter((file) => !/^dist\/.+\.(?:js|d\.ts)$/.test(file));
    expect(besides).toEqual(["LICENSE", "README.md", "package.json"]);
  });

  test("has types beside every module, and a module beside all types", () => {
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

  test("the peers are the versions in question, and core is there once", () => {
    expect(peers.map(([name]) => [name, installedVersion(folder, name)])).toEqual(
      peers.map(([name, range]) => [name, installed(range)]),
    );
    expect(installedCopies(folder, "@langchain/core")).toEqual(["node_modules/@langchain/core"]);
  });

  test("a guarded agent runs: the risky call is blocked, the safe one runs", () => {
    cpSync(script, join(folder, "guarded-agent.mjs"));
    expect(JSON.parse(run(process.execPath, ["guarded-agent.mjs"], folder))).toEqual({ found: true });
  });
});

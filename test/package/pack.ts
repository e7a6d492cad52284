import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Manifest {
  name: string;
  version: string;
  bin?: Record<string, string>;
  exports: Record<string, string | { types: string; default: string }>;
  dependencies: Record<string, string>;
  peerDependencies: Record<string, string>;
  peerDependenciesMeta: Record<string, { optional?: boolean }>;
}

export const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;

export interface Packed {
  tarball: string;
  /** The packed files, as sorted paths. */
  files: string[];
}

/** Builds and packs the package in a copy of this folder, so that nobody's `dist` is disturbed. */
export function pack(): Packed {
  const copy = temporaryFolder();
  cpSync(root, copy, { recursive: true, filter: (path) => !NOT_COPIED.test(path.slice(root.length)) });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"), "dir");
  run("npm", ["run", "--silent", "build"], copy);
  const [packed] = JSON.parse(run("npm", ["pack", "--json"], copy)) as [
    { filename: string; files: { path: string }[] },
  ];
  return { tarball: join(copy, packed.filename), files: packed.files.map(({ path }) => path).toSorted() };
}

const NOT_COPIED = /^\/?(?:node_modules|dist|coverage|\.git)(?:\/|$)/;

const temporaryFolders: string[] = [];

/** An empty folder outside of this one, so that nothing resolves to our own `node_modules`. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "langchain-auto-mode-"));
  temporaryFolders.push(folder);
  return folder;
}

/** Removes every folder that {@link temporaryFolder} made. */
export function removeTemporaryFolders(): void {
  for (const folder of temporaryFolders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** Runs a program and gives its output. What it printed is in the error when it fails. */
export function run(program: string, args: readonly string[], cwd: string): string {
  try {
    return execFileSync(program, args, { cwd, encoding: "utf8", stdio: "pipe", env: cleanEnv() });
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(" ")} failed:\n${stdout}\n${stderr}`, { cause: error });
  }
}

/** Type-checks a folder with this project's compiler, and gives what it prints. */
export function typeCheck(folder: string): string {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const { stdout, stderr } = spawnSync(process.execPath, [compiler, "-p", folder, "--pretty", "false"], {
    cwd: folder,
    encoding: "utf8",
  });
  if (stderr !== "") throw new Error(`The type check did not run:\n${stderr}`);
  return stdout;
}

/** Without what npm and vitest set for their own children: it would reach into the new folder. */
function cleanEnv(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      !/^(?:npm_(?!config_(?:registry|cache|userconfig|globalconfig))|VITEST|NODE_(?!EXTRA))/i.test(name),
  );
  return Object.fromEntries(inherited);
}

/** The folders below `folder` in which a copy of a package is installed. */
export function installedCopies(folder: string, name: string): string[] {
  const listed = JSON.parse(run("npm", ["query", `[name="${name}"]`], folder)) as { location: string }[];
  return listed.map(({ location }) => location);
}

/** The version of a package that is installed in a folder. */
export function installedVersion(folder: string, name: string): string {
  const path = join(folder, "node_modules", name, "package.json");
  if (!existsSync(path)) throw new Error(`${name} is not installed in ${dirname(path)}`);
  return (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
}

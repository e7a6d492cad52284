import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { parseAst } from "vite";

/** What each module imports from its own package. Modules are named by their path without ending. */
export type Graph = Readonly<Record<string, readonly string[]>>;

export interface Rules {
  layers: readonly (readonly string[])[];
  entryPoints: Readonly<Record<string, readonly string[]>>;
}

/** Reads the import graph of a folder of TypeScript files. Type imports count like any other. */
export function readGraph(folder: string): Graph {
  const files = sourceFiles(folder);
  return Object.fromEntries(
    files.map((file) => [
      moduleName(file),
      relativeImports(readFileSync(posix.join(folder, file), "utf8")).map((specifier) =>
        moduleName(posix.join(posix.dirname(file), specifier)),
      ),
    ]),
  );
}

/** The TypeScript files of a folder, as sorted relative paths. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts"))
    .toSorted();
}

/** The relative specifiers that a module names, in any form: static, type, re-export, `import()`. */
export function relativeImports(code: string): string[] {
  return imports(code).filter((specifier) => specifier.startsWith("."));
}

/** The packages that a module needs when it runs: what it imports for types alone is left out. */
export function runtimePackages(code: string): string[] {
  return imports(code, { types: false }).filter((specifier) => !specifier.startsWith("."));
}

function imports(code: string, { types } = { types: true }): string[] {
  const found = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { source } = node as { source?: { value?: unknown } | null };
    const counts = types || !isForTypes(node);
    if (typeof source?.value === "string" && counts) found.add(source.value);
    for (const child of Object.values(node)) visit(child);
  };
  visit(parseAst(code, { lang: "ts" }).body);
  return [...found];
}

function isForTypes(node: object): boolean {
  const {
    type,
    importKind,
    exportKind,
    specifiers = [],
  } = node as {
    type?: string;
    importKind?: string;
    exportKind?: string;
    specifiers?: { importKind?: string; exportKind?: string }[];
  };
  if (type === "TSImportType" || importKind === "type" || exportKind === "type") return true;
  const named = specifiers.length > 0;
  return named && specifiers.every((each) => (each.importKind ?? each.exportKind) === "type");
}

/** Every way in which a graph breaks the rules, as sentences. Empty when it keeps them. */
export function violations(graph: Graph, rules: Rules): string[] {
  const modules = Object.keys(graph);
  const unplaced = modules
    .filter((name) => place(name, rules) === undefined)
    .map((name) => `${name} has no layer: place it in test/imports/layers.ts`);
  const upward = modules.flatMap((from) =>
    graph[from]!.filter((to) => !mayImport(from, to, rules)).map((to) => `${from} must not import ${to}`),
  );
  const missing = modules.flatMap((from) =>
    graph[from]!.filter((to) => !(to in graph)).map((to) => `${from} imports ${to}, which is not there`),
  );
  return [...unplaced, ...upward, ...missing, ...cycles(graph)];
}

function mayImport(from: string, to: string, rules: Rules): boolean {
  const source = place(from, rules);
  const target = place(to, rules);
  // Both are reported where they stand.
  if (source === undefined || target === undefined) return true;
  if (typeof target === "number") return typeof source === "string" || target <= source;
  if (source === target) return true;
  return typeof source === "string" && rules.entryPoints[source]!.includes(to);
}

/** The number of a module's layer, or the name of its entry point. */
function place(name: string, { layers, entryPoints }: Rules): number | string | undefined {
  const folder = name.includes("/") ? name.slice(0, name.indexOf("/")) : undefined;
  const top = folder ?? name;
  if (Object.hasOwn(entryPoints, top)) return top;
  const layer = layers.findIndex((names) => names.includes(name) || names.includes(`${folder}/*`));
  return layer === -1 ? undefined : layer;
}

function cycles(graph: Graph): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const walk = (name: string, trail: readonly string[]): void => {
    const start = trail.indexOf(name);
    if (start !== -1) {
      found.push(`these import each other in a circle: ${[...trail.slice(start), name].join(" > ")}`);
      return;
    }
    if (done.has(name)) return;
    for (const next of graph[name] ?? []) walk(next, [...trail, name]);
    done.add(name);
  };
  for (const name of Object.keys(graph)) walk(name, []);
  return found;
}

function moduleName(path: string): string {
  return posix.normalize(path).replace(/\.(?:ts|js)$/, "");
}

import { parseAst } from "vite";

interface Node {
  type: string;
  name?: string;
  id?: Node | null;
  local?: Node;
  declaration?: Node | null;
  declarations?: Node[];
  specifiers?: Node[];
  exportKind?: string;
  exported?: Node;
}

/** The names that a module exports. */
export function exportedNames(code: string): { name: string; isType: boolean }[] {
  const found: { name: string; isType: boolean }[] = [];
  for (const node of programBody(code)) {
    if (node.type !== "ExportNamedDeclaration") continue;
    const isType = node.exportKind === "type";
    for (const name of declaredNames(node.declaration)) found.push({ name, isType });
    for (const { exported, exportKind } of node.specifiers ?? [])
      found.push({ name: exported!.name!, isType: isType || exportKind === "type" });
  }
  return found;
}

/** The names that a block declares or imports itself: they go before those of a setup. */
export function topLevelNames(code: string): Set<string> {
  let body: Node[];
  try {
    body = programBody(code);
  } catch {
    // It does not parse; the type check says where.
    return new Set();
  }
  return new Set(
    body.flatMap((node) =>
      node.type === "ImportDeclaration"
        ? (node.specifiers ?? []).map(({ local }) => local!.name!)
        : declaredNames(node.type === "ExportNamedDeclaration" ? node.declaration : node),
    ),
  );
}

function declaredNames(node: Node | null | undefined): string[] {
  const named = [node, ...(node?.declarations ?? [])].map((declared) => declared?.id?.name);
  return named.filter((name) => name !== undefined);
}

function programBody(code: string): Node[] {
  return parseAst(code, { lang: "ts" }).body as unknown as Node[];
}

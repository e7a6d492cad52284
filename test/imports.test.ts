import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  type Graph,
  readGraph,
  relativeImports,
  runtimePackages,
  sourceFiles,
  violations,
} from "./imports/graph.js";
import { entryPoints, layers, SHARED_BY_ALL_SHELLS } from "./imports/layers.js";

const src = fileURLToPath(new URL("../src", import.meta.url));
const rules = { layers, entryPoints };
const VAGUE_NAMES = /^(?:utils?|helpers?|types?|misc|common|shared|lib)$/;

describe("the source", () => {
  test("imports go down, never up, across or in a circle", () => {
    const graph = readGraph(src);
    expect(graph).toHaveProperty("errors");
    expect(violations(graph, rules)).toEqual([]);
  });

  test("the decision sequence runs without the agent library, so that every shell can use it", () => {
    const depth = layers.findIndex((names) => names.includes(SHARED_BY_ALL_SHELLS)) + 1;
    const shared = sourceFiles(src).filter(
      (file) =>
        violations({ [file.replace(/\.ts$/, "")]: [] }, { layers: layers.slice(0, depth), entryPoints: {} })
          .length === 0,
    );
    expect(shared).toContain("errors.ts");
    const needing = shared.filter((file) =>
      runtimePackages(readFileSync(`${src}/${file}`, "utf8")).includes("langchain"),
    );
    expect(needing).toEqual([]);
  });

  test("every file is named for its job", () => {
    expect(sourceFiles(src).filter(isVague)).toEqual([]);
    expect(["utils.ts", "limits/helpers.ts", "types/errors.ts", "misc.ts"].every(isVague)).toBe(true);
  });
});

describe("the import check", () => {
  const good: Graph = {
    errors: [],
    "transcript/view": ["errors"],
    "guard/classify": ["transcript/view", "errors"],
    "guard/feedback": ["errors"],
    "guard/evaluate": ["guard/classify"],
    middleware: ["guard/evaluate"],
    index: ["middleware"],
    "classifiers/chat": ["guard/classify"],
    "classifiers/index": ["classifiers/chat"],
    "gateway/command": ["classifiers/index", "guard/evaluate"],
    "testing/fake-decision-model": ["errors"],
  };

  test("accepts imports that go down, stay in a layer or an entry point, or are listed", () => {
    expect(violations(good, rules)).toEqual([]);
  });

  test.each<[string, Graph, string]>([
    [
      "an upward import",
      { errors: ["guard/evaluate"], "guard/evaluate": [] },
      "errors must not import guard/evaluate",
    ],
    [
      "a layer that uses an entry point",
      { "guard/evaluate": ["classifiers/chat"], "classifiers/chat": [] },
      "guard/evaluate must not import classifiers/chat",
    ],
    [
      "an entry point that uses another",
      { "testing/judge-call": ["classifiers/index"], "classifiers/index": [] },
      "testing/judge-call must not import classifiers/index",
    ],
    [
      "an entry point that reaches past the listed module of another",
      { "gateway/command": ["classifiers/chat"], "classifiers/chat": [] },
      "gateway/command must not import classifiers/chat",
    ],
    [
      "a circle within one layer",
      {
        "decision-record": ["guard/feedback"],
        "guard/feedback": ["guard/question"],
        "guard/question": ["decision-record"],
      },
      "these import each other in a circle: decision-record > guard/feedback > guard/question > decision-record",
    ],
    [
      "a file that is in no layer",
      { novelty: ["errors"], errors: [] },
      "novelty has no layer: place it in test/imports/layers.ts",
    ],
    [
      "an import of nothing",
      { "guard/classify": ["gone"] },
      "guard/classify imports gone, which is not there",
    ],
  ])("rejects %s", (_, graph, complaint) => {
    expect(violations(graph, rules)).toEqual([complaint]);
  });

  test("distinguishes what is imported for types alone from what is needed to run", () => {
    const code = `
      import type { A } from "a";
      import { type B } from "b";
      export type { C } from "c";
      type D = import("d").D;
      import { type E, e } from "e";
      import "f";
      export * from "g";
      const h = await import("h");
    `;
    expect(runtimePackages(code).toSorted()).toEqual(["e", "f", "g", "h"]);
  });

  test("sees every form of import, and none in comments and texts", () => {
    const code = `
      import type { A } from "./a.js";
      import { type B } from "../b.js";
      import "./c.js";
      export * from "./d.js";
      export { e } from "./e.js";
      type F = import("./f.js").F;
      const g = await import("./g.js");
      // import "./not-this.js";
      const text = 'import "./nor-this.js"';
      import { z } from "zod";
    `;
    const seen = ["./a.js", "../b.js", "./c.js", "./d.js", "./e.js", "./f.js", "./g.js"];
    expect(relativeImports(code).toSorted()).toEqual(seen.toSorted());
  });
});

function isVague(file: string): boolean {
  return file
    .replace(/\.ts$/, "")
    .split("/")
    .some((part) => VAGUE_NAMES.test(part));
}

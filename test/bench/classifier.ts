import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import {
  ChatDecisionModel,
  OpenAIDecisionModel,
  ProvenanceDecisionModel,
  SystemOneDecisionModel,
} from "../../src/classifiers/index.js";
import type { Classifier } from "../../src/guard/classify.js";

/** A classifier to measure. */
export interface Loaded {
  readonly classifier: Classifier;
  /** What tells its answers from another's in a file of results. `undefined`: they are not kept. */
  readonly identity?: string;
}

const KNOWN =
  "provenance, chat:PROVIDER:NAME, systemone[:MODEL], openai:MODEL, or the path of a module that default-exports one";

/** Makes the classifier that a command line names. Keys come from the environment, as with any of them. */
export async function loadClassifier(spec: string): Promise<Loaded> {
  const [scheme = "", ...rest] = spec.split(":");
  const model = rest.join(":");
  // Its answers cost nothing and change with its weights.
  if (spec === "provenance") return { classifier: new ProvenanceDecisionModel() };
  if (scheme === "chat" && rest.length > 1)
    return { classifier: new ChatDecisionModel({ model }), identity: spec };
  if (scheme === "openai" && model) return { classifier: new OpenAIDecisionModel({ model }), identity: spec };
  if (scheme === "systemone")
    return { classifier: new SystemOneDecisionModel(model ? { model } : {}), identity: spec };
  return loadModule(spec);
}

async function loadModule(spec: string): Promise<Loaded> {
  const file = resolve(spec);
  let code: string;
  try {
    code = readFileSync(file, "utf8");
  } catch {
    throw new Error(`--classifier is none of: ${KNOWN}.`);
  }
  const { default: classifier } = (await import(pathToFileURL(file).href)) as { default?: Classifier };
  if (typeof classifier?.invoke !== "function")
    throw new Error("The module given as --classifier default-exports no classifier.");
  return { classifier, identity: `${spec}\n${code}` };
}

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chooseClassifier } from "../classifiers/classifier-choice.js";
import { ProvenanceDecisionModel } from "../classifiers/index.js";
import { ConfigurationError } from "../errors.js";
import type { Classifier } from "../guard/classify.js";

/** A classifier to measure. */
export interface LoadedClassifier {
  readonly classifier: Classifier;
  /** What tells its answers from another's in a file of answers. `undefined`: they are not kept. */
  readonly identity: string | undefined;
}

/**
 * Makes the classifier that a command line names, or loads it from a module. Keys come from the environment.
 *
 * @throws ConfigurationError that says what is missing
 */
export async function loadClassifier(which: string): Promise<LoadedClassifier> {
  if (/[/\\]|\.[cm]?[jt]s$/.test(which) && !/^[a-z-]+:/.test(which)) return loadModule(which);
  const classifier = await chooseClassifier(which);
  // The offline model's answers cost nothing, and change with the package's version.
  return { classifier, identity: classifier instanceof ProvenanceDecisionModel ? undefined : which };
}

async function loadModule(path: string): Promise<LoadedClassifier> {
  const file = resolve(path);
  let code: string;
  try {
    code = readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigurationError("classifier", "names a module that cannot be read", { cause: error });
  }
  const { default: classifier } = (await import(pathToFileURL(file).href)) as { default?: Classifier };
  if (typeof classifier?.invoke !== "function")
    throw new ConfigurationError("classifier", "names a module that default-exports no decision model");
  return { classifier, identity: `${path}\n${code}` };
}

/**
 * Where each file of src/ stands. A file may import from its own layer and from the ones above it
 * in this list, never from the ones below. `folder/*` places every file of a folder.
 */
export const layers: readonly (readonly string[])[] = [
  ["errors", "json", "option-problem", "bindings", "deadline", "error-facts", "name-pattern", "proposal"],
  ["transcript/*"],
  ["guard/question", "guard/feedback", "decision-record"],
  ["guard/classify", "guard/plan", "limits/*"],
  ["options", "guard/select-tools", "resolve-options"],
  ["guard/evaluate", "guard/report"],
  ["model-call"],
  ["tool-call/*"],
  ["human-review/*"],
  ["middleware"],
  ["index"],
];

/** The layers up to here know no agent and none of its hooks, so that every shell can use them. */
export const SHARED_BY_ALL_SHELLS = "guard/evaluate";

/**
 * Folders, or files at the top, that are entry points of their own. They may use every layer; no layer uses them, and
 * none uses another, save for what is listed here: the modules of another that it may import.
 */
export const entryPoints: Readonly<Record<string, readonly string[]>> = {
  // The command: it only hands over to the commands of the others.
  bin: ["gateway/cli/run-gateway", "evaluation/evaluate", "evaluation/label-command", "evaluation/terminal"],
  classifiers: [],
  testing: [],
  // The gateway's command builds a classifier from its flags.
  gateway: ["classifiers/index", "classifiers/classifier-choice"],
  evaluation: ["classifiers/index", "classifiers/calibrated", "classifiers/classifier-choice"],
};

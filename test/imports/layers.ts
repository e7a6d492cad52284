/**
 * Where each file of src/ stands. A file may import from its own layer and from the ones above it
 * in this list, never from the ones below. `folder/*` places every file of a folder.
 */
export const layers: readonly (readonly string[])[] = [
  ["errors", "arguments", "option-problem"],
  ["transcript/*"],
  ["question", "feedback", "verdict", "decision-record"],
  ["judge", "plan-step", "limits/*"],
  ["options", "option-checks", "policy"],
  ["guard", "human/*"],
  [
    "auto-mode-state",
    "updates",
    "run-input",
    "written-messages",
    "tool-names",
    "tool-start",
    "started-tool",
    "guarded-tool",
    "model-node",
  ],
  ["step-calls", "report"],
  ["step-context"],
  ["agent-step"],
  ["agent-steps"],
  ["call-report", "delivery"],
  ["run-call", "asking"],
  ["middleware"],
  ["index"],
];

/** The layers up to here know no agent and none of its hooks, so that every shell can use them. */
export const SHARED_BY_ALL_SHELLS = "guard";

/**
 * Folders that are entry points of their own. They may use every layer; no layer uses them, and
 * none uses another, save for what is listed here: the modules of another that it may import.
 */
export const entryPoints: Readonly<Record<string, readonly string[]>> = {
  classifiers: [],
  testing: [],
  // The gateway's command builds a classifier from its flags.
  safeguards: ["classifiers/index"],
};

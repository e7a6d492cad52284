import type { FeatureName } from "./provenance-features.js";

// Made by: npx tsx test/bench/train-provenance.ts --cases FILE
// from the `train` split of 772 labelled calls out of InjecAgent, ToolEmu, ASB and tau-bench airline (all MIT
// licensed); BFCL (Apache-2.0) was kept out of fitting. The cases are no part of this repository.

/** The log odds of a call about which nothing is known. */
export const INTERCEPT = -2.5457;

/** What each feature adds to the log odds. Below zero only where the feature may lower the risk. */
export const WEIGHTS: Readonly<Record<FeatureName, number>> = {
  nameInOutput: 2.2099,
  nameInProse: 0.6605,
  descriptionInProse: 4.2172,
  argumentsInProse: 0.4405,
  actionAndArgumentsInProse: 0.7497,
  markInProse: 0.6016,
  addressInProse: 0.329,
  addressInOutput: 0.1749,
  unnamedAddress: 0.4838,
  unnamedIdentifier: 0.3183,
  partlyNewValues: 0.3565,
  whollyNewValues: 1.4329,
  untrustedRead: 0.0793,
  readOnly: -0.8104,
  requestNamesAction: -0.3865,
};

import type { FeatureName, FeatureValues } from "./features.js";

// Made by: npx tsx test/bench/train-provenance.ts --cases FILE
// from the `train` split of 772 labeled calls out of InjecAgent, ToolEmu, ASB and tau-bench airline (all MIT
// licensed), which are not part of this repository, and from two coding sessions of the project's own
// (test/classifiers/provenance/coding-sessions.ts). BFCL (Apache-2.0) was kept out of fitting.

/** The log odds of a call about which nothing is known. */
export const INTERCEPT = -2.5328;

/** What each feature adds to the log odds. Below zero only where the feature may lower the risk. */
export const WEIGHTS: Readonly<Record<FeatureName, number>> = {
  nameInOutput: 2.543,
  nameInProse: 0.6238,
  descriptionInProse: 4.1895,
  argumentsInProse: 0.1891,
  actionAndArgumentsInProse: 0.7063,
  markInProse: 0.7451,
  addressInProse: 0.1732,
  addressInOutput: 0.1413,
  unnamedAddress: 0.4869,
  unnamedIdentifier: 0.1927,
  partlyNewValues: 0.2538,
  whollyNewValues: 1.6844,
  untrustedRead: 0.1629,
  readOnly: -0.8931,
  commandInOutput: 3.0746,
  addressedToAgent: 0.9181,
  requestNamesAction: -0.3227,
};

/** The risk of a call with these features: a logistic regression. Always a finite number in 0..1. */
export function riskOf(values: FeatureValues): number {
  let logit = INTERCEPT;
  for (const [name, weight] of Object.entries(WEIGHTS)) logit += weight * values[name as FeatureName];
  return 1 / (1 + Math.exp(-logit));
}

// What a person or the agent reads. Fixed texts: they name the kind of evidence, never its content.
const ASKED_BY_OUTPUT = "Text from a tool asks for this action or its values; the user's messages do not.";
const UNNAMED_ADDRESS = "It uses an address that the user did not name.";
const UNNAMED_VALUES = "It uses values that are not in the user's messages.";

const WORDING: readonly FeatureName[] = [
  "nameInOutput",
  "nameInProse",
  "descriptionInProse",
  "argumentsInProse",
  "actionAndArgumentsInProse",
  "markInProse",
  "commandInOutput",
  "addressedToAgent",
];
const ADDRESSES: readonly FeatureName[] = ["unnamedAddress", "addressInOutput", "addressInProse"];
const ORIGIN: readonly FeatureName[] = [
  ...ADDRESSES,
  "unnamedIdentifier",
  "partlyNewValues",
  "whollyNewValues",
];

/** Which kinds of evidence speak against the call, the stronger first. */
export function explanationOf(values: FeatureValues): string | undefined {
  const evidence = (names: readonly FeatureName[]): number =>
    names.reduce((sum, name) => sum + WEIGHTS[name] * values[name], 0);
  const reasons = [
    { text: ASKED_BY_OUTPUT, evidence: evidence(WORDING) },
    {
      text: ADDRESSES.some((name) => values[name] > 0) ? UNNAMED_ADDRESS : UNNAMED_VALUES,
      evidence: evidence(ORIGIN),
    },
  ]
    .filter((reason) => reason.evidence > 0)
    .toSorted((a, b) => b.evidence - a.evidence);
  return reasons.length === 0 ? undefined : reasons.map(({ text }) => text).join(" ");
}

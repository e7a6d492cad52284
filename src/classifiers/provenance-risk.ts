import type { FeatureName, FeatureValues } from "./provenance-features.js";
import { INTERCEPT, WEIGHTS } from "./provenance-weights.js";

/** The risk of a call with these features: a logistic regression. Always a finite number in 0..1. */
export function riskOf(values: FeatureValues): number {
  let logit = INTERCEPT;
  for (const [name, weight] of Object.entries(WEIGHTS)) logit += weight * values[name as FeatureName];
  return 1 / (1 + Math.exp(-logit));
}

// What a person or the agent is told. Fixed texts: they name what was seen, never what it said.
const ASKED_BY_OUTPUT =
  "Text that a tool brought in speaks of this action and its values; the user's messages do not.";
const UNNAMED_ADDRESS = "It uses an address that the user never named.";
const UNNAMED_VALUES = "It uses values that stand nowhere in the user's messages.";

const WORDING: readonly FeatureName[] = [
  "nameInOutput",
  "nameInProse",
  "descriptionInProse",
  "argumentsInProse",
  "actionAndArgumentsInProse",
  "markInProse",
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

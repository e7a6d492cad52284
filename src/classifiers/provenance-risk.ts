import type { FeatureName, FeatureValues } from "./provenance-features.js";
import { INTERCEPT, WEIGHTS } from "./provenance-weights.js";

/** The risk of a call with these features: a logistic regression. Always a finite number in 0..1. */
export function riskOf(values: FeatureValues): number {
  let logit = INTERCEPT;
  for (const [name, weight] of Object.entries(WEIGHTS)) logit += weight * values[name as FeatureName];
  return 1 / (1 + Math.exp(-logit));
}

// What a person or the agent is told. Fixed texts: they name what was seen, never what it said.
const REASONS: readonly { readonly features: readonly FeatureName[]; readonly text: string }[] = [
  {
    features: [
      "nameInOutput",
      "nameInProse",
      "descriptionInProse",
      "argumentsInProse",
      "actionAndArgumentsInProse",
      "markInProse",
    ],
    text: "Text that a tool brought in speaks of this action and its values; the user's messages do not.",
  },
  {
    features: ["addressInProse", "addressInOutput", "unnamedAddress"],
    text: "It uses an address that the user never named.",
  },
  {
    features: ["unnamedIdentifier", "partlyNewValues", "whollyNewValues"],
    text: "It uses values that stand nowhere in the user's messages.",
  },
];

/** Which kinds of evidence speak against the call, the strongest first; at most two. */
export function explanationOf(values: FeatureValues): string | undefined {
  const strongest = REASONS.map(({ features, text }) => ({
    text,
    evidence: features.reduce((sum, name) => sum + WEIGHTS[name] * values[name], 0),
  }))
    .filter(({ evidence }) => evidence > 0)
    .toSorted((a, b) => b.evidence - a.evidence)
    .slice(0, 2);
  return strongest.length === 0 ? undefined : strongest.map(({ text }) => text).join(" ");
}

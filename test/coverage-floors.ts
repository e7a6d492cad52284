/** What decides whether a tool runs: no branch of these files is left untried. */
export const NO_BRANCH_UNTRIED: readonly string[] = [
  "guard/evaluate",
  "guard/classify",
  "guard/plan",
  "guard/select-tools",
  "limits/counters",
  "limits/fallbacks",
  "limits/state",
  "classifiers/answers",
  "classifiers/chat/reply",
  "classifiers/chat/reply",
].map((name) => `src/${name}.ts`);

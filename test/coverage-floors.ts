/** What decides whether a tool runs: no branch of these files is left untried. */
export const NO_BRANCH_UNTRIED: readonly string[] = [
  "guard/evaluate",
  "guard/classify",
  "guard/plan",
  "limits/counters",
  "limits/fallbacks",
  "limits/state",
  "limits/untold-calls",
  "classifiers/read-answer",
  "classifiers/settle-answers",
  "classifiers/chat-answer",
  "classifiers/openai-answers",
  "classifiers/system-one-answers",
].map((name) => `src/${name}.ts`);

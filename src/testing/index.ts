/**
 * A scripted decision model, and one run of the guard without an agent, for unit tests of a policy.
 *
 * @module langchain-auto-mode/testing
 */
export {
  FakeDecisionModel,
  type FakeDecisionModelOptions,
  fakeDecisionModel,
} from "./fake-decision-model.js";
export type { JudgedCall, RecordedRequest, ScriptedAnswer, ScriptedRisk } from "./fake-decision-model.js";
export { judgeCall, type JudgeCallInput, type JudgeCallOptions, type JudgeCallResult } from "./judge-call.js";

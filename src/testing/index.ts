export {
  FakeDecisionModel,
  type FakeDecisionModelOptions,
  fakeDecisionModel,
} from "./fake-decision-model.js";
export type { JudgedCall, RecordedRequest } from "./fake-decision-model.js";
export { judgeCall, type JudgeCallInput, type JudgeCallOptions, type JudgeCallResult } from "./judge-call.js";

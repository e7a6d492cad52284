export {
  FakeDecisionModel,
  type FakeDecisionModelOptions,
  fakeDecisionModel,
  type JudgedCall,
  type RecordedRequest,
} from "./fake-decision-model.js";
export { judgeCall, type JudgeCallInput, type JudgeCallOptions, type JudgeCallResult } from "./judge-call.js";

export {
  FakeDecisionModel,
  type FakeDecisionModelOptions,
  fakeDecisionModel,
  type JudgedCall,
  type RecordedRequest,
} from "./fake-decision-model.js";

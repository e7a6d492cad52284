/**
 * Decision models: what judges the calls.
 *
 * @module langchain-auto-mode/classifiers
 */
export {
  CalibratedDecisionModel,
  type CalibratedDecisionModelOptions,
  type AboutCalibration,
  type Calibration,
  type CalibrationFigures,
  type IsotonicCalibration,
  type PlattCalibration,
} from "./calibrated.js";
export type { SettledAnswer } from "./answers.js";
export { CascadeDecisionModel, type CascadeDecisionModelOptions, type CascadeStage } from "./cascade.js";
export { ChatDecisionModel, type ChatDecisionModelOptions } from "./chat/decision-model.js";
export type { ChatModel } from "./chat/model.js";
export type { HttpModelOptions } from "./http.js";
export { OpenAIDecisionModel, type OpenAIDecisionModelOptions } from "./openai.js";
export { ProvenanceDecisionModel } from "./provenance/decision-model.js";
export { SystemOneDecisionModel, type SystemOneDecisionModelOptions } from "./system-one.js";

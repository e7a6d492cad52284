/**
 * The middleware, its options and fallbacks, its errors, and what the classifier reads.
 *
 * @module langchain-auto-mode
 */
export { autoModeMiddleware, type AutoModeMiddleware } from "./middleware.js";
export type {
  AutoModeOptions,
  Environment,
  EnvironmentFacts,
  GuardedTool,
  Precheck,
  PrecheckAnswer,
  PrecheckCall,
  PrecheckContext,
  ToolPredicate,
  ToolSelector,
} from "./options.js";
export type { Classifier } from "./guard/classify.js";
export type { Limits } from "./limits/counters.js";
export {
  type AllowedDecision,
  type AskFallback,
  askHuman,
  type AskHumanOptions,
  type DeferFallback,
  deferToTrustedModel,
  type DeferToTrustedModelOptions,
  type Fallback,
  type HaltFallback,
  haltRun,
  type HaltRunOptions,
  type ThrowFallback,
  throwOnLimit,
} from "./limits/fallbacks.js";
export { type AskedCall, type AutoModeState, autoModeState } from "./limits/state.js";
export type {
  DecidedBy,
  DecisionDetails,
  DecisionRecord,
  Executed,
  Mode,
  Outcome,
} from "./decision-record.js";
export type { JsonObject } from "./json.js";
export type { RiskKind } from "./guard/question.js";
export {
  AutoModeLimitError,
  ClassificationError,
  type ClassificationErrorOptions,
  ConfigurationError,
  type Counters,
  type LimitName,
  type UnavailableReason,
} from "./errors.js";
export type {
  ApproverEntry,
  CallEntry,
  Channel,
  Entry,
  NoteEntry,
  NoUserMessageEntry,
  OmittedEntry,
  ResultEntry,
  TextEntry,
} from "./transcript/entries.js";
export { DEFAULT_VIEW, type MonitorView } from "./transcript/view.js";
export { renderTranscript } from "./transcript/render.js";
export { viewTranscript, type ViewTranscriptOptions } from "./transcript/view-transcript.js";

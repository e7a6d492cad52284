export { CascadeDecisionModel, type CascadeDecisionModelOptions } from "./cascade.js";
export type { CascadeStage } from "./cascade-stage.js";
export { ChatDecisionModel, type ChatDecisionModelOptions } from "./chat.js";
export type { ChatModel } from "./chat-model.js";
export type { HttpModelOptions } from "./http-options.js";
export { OpenAIDecisionModel, type OpenAIDecisionModelOptions } from "./openai.js";
export { ProvenanceDecisionModel } from "./provenance.js";
export type { SettledAnswer } from "./settle-answers.js";
export { SystemOneDecisionModel, type SystemOneDecisionModelOptions } from "./system-one.js";

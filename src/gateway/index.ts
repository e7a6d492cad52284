/**
 * The gateway: auto mode in Claude Code for models behind other services.
 *
 * @module langchain-auto-mode/safeguards
 */
export { createSafeguardsHandler, type SafeguardsHandler } from "./handler.js";
export { type ChatModelFactory, loadChatModel } from "./model/load-chat-model.js";
export {
  type CallSettings,
  createModelUpstream,
  type ModelUpstreamOptions,
  type UpstreamModel,
} from "./model/model-upstream.js";
export type { AllowAnswer, SafeguardsOptions } from "./options.js";
export type { SafeguardRule } from "./rules.js";
export type { SafeguardRecord } from "./record.js";

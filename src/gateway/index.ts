export { createSafeguardsHandler, type SafeguardsHandler } from "./handler.js";
export type { AllowAnswer, SafeguardsOptions } from "./options.js";
export type { SafeguardRecord } from "./record.js";

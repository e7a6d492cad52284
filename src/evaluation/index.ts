/**
 * A log of decisions for `npx langchain-auto-mode label` and `evaluate`.
 *
 * @module langchain-auto-mode/evaluation
 */
export { caseLog, type CaseLog, type CaseLogOptions } from "./case-log.js";

export { caseLog, type CaseLog, type CaseLogOptions } from "./case-log.js";

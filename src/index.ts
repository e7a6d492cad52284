export {
  ClassificationError,
  type ClassificationErrorOptions,
  ConfigurationError,
  type Counters,
  type LimitName,
  type UnavailableReason,
} from "./errors.js";

import { cutEnd } from "./cut.js";

export { cutEnd, cutMiddle, cutStart } from "./cut.js";
export { cutJson } from "./cut-json.js";
export { toDisplayJson } from "./json.js";
export { escapeInvisible } from "./escape-text.js";

/** Enough for what a tool is and does; servers have sent 50,000. */
const MAX_DESCRIPTION = 2_000;

/** Cuts a tool's description, shown already, at 2,000 UTF-16 units, marker included. */
export function capDescription(text: string): string {
  return cutEnd(text, MAX_DESCRIPTION);
}

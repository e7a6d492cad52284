import { CHANNELS } from "../transcript/channels.js";
import { DEFAULT_VIEW, type MonitorView } from "../transcript/view.js";

type PartialView = Partial<MonitorView> | undefined;

/**
 * The smallest view that shows each of two models what it needs. A model that names none reads the
 * default. Undefined if neither names one.
 */
export function unionOfViews(first: PartialView, second: PartialView): Partial<MonitorView> | undefined {
  if (first === undefined && second === undefined) return undefined;
  const [one, other] = [first, second].map((view) => ({ ...DEFAULT_VIEW, ...view })) as [
    MonitorView,
    MonitorView,
  ];
  return {
    channels: CHANNELS.filter(
      (channel) => one.channels.includes(channel) || other.channels.includes(channel),
    ),
    mostRecent: Math.max(one.mostRecent, other.mostRecent),
    maxChars: Math.max(one.maxChars, other.maxChars),
    maxCharsPerEntry: Math.max(one.maxCharsPerEntry, other.maxCharsPerEntry),
    maxCharsPerToolResult: Math.max(one.maxCharsPerToolResult, other.maxCharsPerToolResult),
    delegationTools: [...new Set([...one.delegationTools, ...other.delegationTools])],
  };
}

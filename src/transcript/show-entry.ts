import type { JsonValue } from "@langchain/core/decisions";
import type { CallEntry, ContentEntry } from "./channels.js";
import { type CutSide, fitJson, showCut } from "./cut.js";
import { cutTree } from "./cut-json.js";
import { toJson } from "./json.js";

/** Enough for any name that a person gave; more is an attempt to fill the view. */
const MAX_NAME = 200;

/** How many strings of full length are looked at before a list is cut. */
const MAX_LOOKED_AT = 100;

/** How one entry is to be cut. Lengths are in UTF-16 units. */
export interface EntryLimits {
  /** Of the text, or of the arguments as JSON. */
  readonly max: number;
  /** Of the whole entry as JSON. */
  readonly maxJson: number;
  /** Which part of a text gives way. Default `end`. */
  readonly side?: CutSide;
}

/** The length that an entry adds to the JSON of a list. */
export function costOf(entry: unknown): number {
  return JSON.stringify(entry).length + 1;
}

function showName(name: unknown): string {
  return showCut(typeof name === "string" ? name : "unknown", MAX_NAME, "end");
}

/**
 * Arguments as a judge reads them. What certainly goes is not looked at: of a string more than `max`,
 * and of the whole more than many times that.
 */
function showArgs(args: unknown, max: number): JsonValue {
  const show = (text: string) => showCut(text, max, "end");
  return cutTree(toJson(args, show, MAX_LOOKED_AT * (max + 100)), max);
}

function isCall(entry: ContentEntry): entry is CallEntry {
  return entry.from === "tool_call" || entry.from === "server_tool_call";
}

/** Builds the shown entry with content of its own; the rest is fixed. */
function shell(entry: ContentEntry): (content: JsonValue) => ContentEntry {
  if (isCall(entry)) {
    const name = showName(entry.name);
    return (args) => ({ from: entry.from, name, args });
  }
  if (entry.from === "context_note") {
    const source = showName(entry.source);
    return (text) => ({ from: entry.from, source, text: text as string });
  }
  if ("name" in entry) {
    const name = showName(entry.name);
    return (text) => ({ from: entry.from, name, text: text as string });
  }
  return (text) => ({ from: entry.from, text: text as string });
}

/**
 * Shows a raw entry and cuts it to its limits. If the fixed part alone is longer than `maxJson`, so is
 * the result: compare {@link costOf}.
 */
export function showEntry(entry: ContentEntry, limits: EntryLimits): ContentEntry {
  const { max, maxJson, side = "end" } = limits;
  const build = shell(entry);
  const room = Math.max(2, maxJson - (costOf(build("")) - 3));
  if (isCall(entry)) return build(showArgs(entry.args, Math.min(max, room)));
  const text = typeof entry.text === "string" ? entry.text : "";
  return build(fitJson((size) => showCut(text, size, side), max, room));
}

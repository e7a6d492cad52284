import { digest } from "../json.js";
import { type DecisionRecord, createRecord } from "../decision-record.js";
import type { Counters } from "../errors.js";
import { classifierName } from "../guard/classify.js";
import type { Policy } from "../resolve-options.js";
import type { ShownCall } from "./pending.js";

/** The record of a call that a person rejected. An approved call is recorded when it starts. */
export function humanRecord(
  policy: Policy,
  messageId: string,
  call: ShownCall,
  counters: Counters,
): DecisionRecord {
  return createRecord({
    label: policy.label,
    mode: policy.mode,
    messageId,
    toolCallId: call.id,
    toolName: call.name,
    argsDigest: digest(call.snapshot),
    outcome: "rejected",
    by: "human",
    threshold: (policy.rules.get(call.name) ?? policy.general).threshold,
    classifier: classifierName(policy.classifier),
    latencyMs: 0,
    counters,
  });
}

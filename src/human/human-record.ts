import { digest, takeSnapshot } from "../arguments.js";
import { type DecisionRecord, createRecord } from "../decision-record.js";
import type { Counters } from "../errors.js";
import { classifierName } from "../judge.js";
import type { Policy } from "../policy.js";

/** The record of a call that a person rejected. An approved call is recorded when it starts. */
export function humanRecord(
  policy: Policy,
  messageId: string,
  call: { readonly id: string; readonly name: string; readonly args: unknown },
  counters: Counters,
): DecisionRecord {
  const snapshot = takeSnapshot(call.args);
  return createRecord({
    label: policy.label,
    mode: policy.mode,
    messageId,
    toolCallId: call.id,
    toolName: call.name,
    argsDigest: snapshot ? digest(snapshot) : "",
    outcome: "rejected",
    by: "human",
    threshold: policy.rules.get(call.name)?.threshold ?? 0.5,
    classifier: classifierName(policy.classifier),
    latencyMs: 0,
    counters,
  });
}

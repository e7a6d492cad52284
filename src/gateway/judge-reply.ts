import type { JsonValue } from "@langchain/core/decisions";
import { cloneJson } from "../json.js";
import { withDeadline } from "../deadline.js";
import { errorFacts } from "../error-facts.js";
import { blockedReason } from "../guard/feedback.js";
import type { Answered } from "../guard/classify.js";
import { buildRequest } from "../guard/question.js";
import { cutEnd } from "../transcript/cut.js";
import { verdictOf } from "../guard/plan.js";
import { askJudges, type JudgedCalls } from "./judges.js";
import type { Conversation } from "./client-request.js";
import type { Settings } from "./options.js";
import type { Ruling } from "./rules.js";
import type { SafeguardStatus, ToolUseVerdict } from "./protocol.js";
import { createRecord, notify, type RequestFacts } from "./record.js";
import { callsOf, type JudgeableCall, type Reply, type ReplyCall } from "./reply.js";
import type { JudgeReply } from "./verdicts.js";

/** What a reply answers. */
export interface Exchange {
  /** Makes the client's request again, for the operator's `allow`. */
  readonly request: () => Request;
  readonly conversation: Conversation;
  readonly environment: () => JsonValue | undefined;
  readonly streamed: boolean;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

interface Outcome {
  readonly status: SafeguardStatus;
  readonly facts: RequestFacts;
}

/** A call's id and what is said of it. */
type Verdict = readonly [string, ToolUseVerdict];

const UNSUPPORTED: SafeguardStatus = { type: "unsupported" };
// The client cuts at about 2,000.
const MOST_EXPLANATION_CHARS = 1_900;

/** Judges the calls of one reply with one request, and notes what came of it. */
export function createReplyJudge(settings: Settings): (exchange: Exchange) => JudgeReply {
  return (exchange) => async (reply) => {
    const { status, facts } = await judge(settings, exchange, reply);
    void notify("onJudged", settings.onJudged, createRecord(reply, exchange.streamed, status, facts));
    return status;
  };
}

async function judge(settings: Settings, exchange: Exchange, reply: Reply): Promise<Outcome> {
  const calls = callsOf(reply);
  const judgeable = calls.filter((call): call is JudgeableCall => "args" in call);
  let verdicts: readonly Verdict[] = [];
  let facts: RequestFacts = {};
  try {
    const { ruled, open } = applyRules(settings, judgeable);
    verdicts = ruled.map(([id, ruling]) => [id, verdictOfRule(ruling)]);
    if (ruled.length > 0) facts = { rules: Object.fromEntries(ruled.map(([id, { rule }]) => [id, rule])) };
    if (open.length === 0) return { status: available(calls, verdicts), facts };
    const allowed = await mayAsk(settings, exchange);
    if (allowed === "unsupported") return { status: UNSUPPORTED, facts: {} };
    if (allowed !== "allow") return { status: available(calls, verdicts), facts };
    const judgment = await ask(settings, exchange, reply, open);
    // A failing service, 401 and 403 included, is no `unsupported`: older clients would switch the check off.
    verdicts = [...verdicts, ...verdictsOf(settings, open, judgment)];
    return { status: available(calls, verdicts), facts: { ...facts, ...factsOf(judgment) } };
  } catch (error) {
    // A client that has gone wants no answer. Whatever else failed here, the agent's reply goes out.
    exchange.signal.throwIfAborted();
    return { status: available(calls, verdicts), facts: { ...facts, ...failureOf(error) } };
  }
}

/** The calls that rules decide, and those that are left to the classifier. */
function applyRules({ rules }: Settings, calls: readonly JudgeableCall[]) {
  const ruled: [string, Ruling][] = [];
  const open: JudgeableCall[] = [];
  for (const call of calls) {
    const ruling = rules(call);
    if (ruling) ruled.push([call.id, ruling]);
    else open.push(call);
  }
  return { ruled, open };
}

function verdictOfRule({ decide, reason }: Ruling): ToolUseVerdict {
  return decide === "allow"
    ? { type: "evaluated", outcome: "not_flagged" }
    : { type: "evaluated", outcome: "flagged", explanation: oneLine(reason) };
}

/** The operator's word on this caller, within the time that a judgment may take. */
async function mayAsk({ allow, timeoutMs }: Settings, { request, signal }: Exchange): Promise<unknown> {
  return allow ? withDeadline({ signal, timeoutMs }, async () => allow(request())) : "allow";
}

async function ask(
  settings: Settings,
  { conversation, environment, signal }: Exchange,
  reply: Reply,
  calls: readonly JudgeableCall[],
): Promise<JudgedCalls> {
  const { instructions, criteria, explain, view } = settings;
  const asked = calls.map(({ name, args }) => ({
    name,
    args: cloneJson(args),
    description: conversation.descriptionOf(name),
    instructions,
    criteria,
  }));
  const rest = { transcript: conversation.transcript(reply, view), environment: environment(), explain };
  const requestFor = (places: readonly number[]) =>
    buildRequest(
      places.map((place) => asked[place]!),
      rest,
    );
  const metadata = { messageId: reply.messageId, toolCallIds: calls.map(({ id }) => id) };
  return askJudges(settings, requestFor, calls.length, { signal, metadata });
}

function verdictsOf(
  { threshold, criteria }: Settings,
  calls: readonly JudgeableCall[],
  { answered }: JudgedCalls,
): Verdict[] {
  return calls.map(({ id }, index) => [id, verdict(answered[index] ?? { unavailable: "error" })] as const);

  function verdict(answer: Answered): ToolUseVerdict {
    // To the client, `truncated` says that the call itself was cut off. Here it was the classifier's answer.
    if ("unavailable" in answer)
      return {
        type: "unavailable",
        reason: answer.unavailable === "truncated" ? "error" : answer.unavailable,
      };
    return verdictOf(answer, threshold) === "allowed"
      ? { type: "evaluated", outcome: "not_flagged" }
      : { type: "evaluated", outcome: "flagged", explanation: oneLine(blockedReason(answer, criteria)) };
  }
}

/** A status with an entry for every call. One that got no verdict was not evaluated. */
function available(calls: readonly ReplyCall[], verdicts: readonly Verdict[]): SafeguardStatus {
  const known = new Map(verdicts);
  const entryOf = (call: ReplyCall): ToolUseVerdict =>
    known.get(call.id) ?? { type: "unavailable", reason: "unavailable" in call ? call.unavailable : "error" };
  return { type: "available", tool_uses: Object.fromEntries(calls.map((call) => [call.id, entryOf(call)])) };
}

/** A text as the client takes it: on one line, and without a last full stop, since the client adds its own. */
function oneLine(text: string): string {
  return cutEnd(
    text
      .replaceAll(/\s+/g, " ")
      .trim()
      .replace(/(?<!\.)\.$/, ""),
    MOST_EXPLANATION_CHARS,
  );
}

function factsOf({ classifier, latencyMs, retries, usage, requestId, error }: JudgedCalls): RequestFacts {
  return {
    ...failureOf(error),
    classifier,
    latencyMs: Math.round(latencyMs),
    ...(retries > 0 ? { retries } : {}),
    ...(usage ? { usage } : {}),
    ...(requestId === undefined ? {} : { requestId }),
  };
}

/** What the operator reads of a failure: a status and a code, and nothing of the request. */
function failureOf(error: unknown): Pick<RequestFacts, "httpStatus" | "errorCode"> {
  const { status, errorCode } = errorFacts(error);
  return {
    ...(status === undefined ? {} : { httpStatus: status }),
    ...(errorCode === undefined ? {} : { errorCode }),
  };
}

import type { Content, NoulCriteria } from "@langchain/core/decisions";
import { z } from "zod";
import { ConfigurationError } from "../errors.js";
import { type Classifier, classifierView } from "../guard/classify.js";
import { classifier, criteria, instructions, optionalFunction, threshold } from "../resolve-options.js";
import { namePattern } from "../name-pattern.js";
import { check, mismatch } from "../option-problem.js";
import { DEFAULT_CRITERIA, DEFAULT_INSTRUCTIONS } from "../guard/question.js";
import { type MonitorView, resolveView } from "../transcript/view.js";
import { createModelUpstream, type UpstreamModel } from "./model/model-upstream.js";
import { notify, type SafeguardRecord } from "./record.js";
import { prepareRules, type Rules, rulesSchema, type SafeguardRule } from "./rules.js";
import { functionUpstream, httpUpstream, readUpstreamUrl, type Upstream, UPSTREAM_URL } from "./upstream.js";

/** May this caller use the classifier, for this reply? */
export type AllowAnswer = "allow" | "skip" | "unsupported";

/** Options of {@link createSafeguardsHandler}. */
export interface SafeguardsOptions {
  /**
   * The Anthropic-compatible service behind the gateway: its base URL, before whose path each request's
   * own is put (`https://host/anthropic` + `/v1/messages`), or a function that sends a request and gives
   * a reply with a decoded body, as `fetch` does. Required, unless `model` is given.
   *
   * @default none
   * @example upstream: "http://127.0.0.1:11434"
   */
  upstream?: string | URL | ((request: Request) => Promise<Response>);
  /**
   * A LangChain chat model that answers instead of an upstream: one that can call tools, or a function that makes
   * one for each request from the request's `maxTokens`, `temperature` and `topP`. Not together with `upstream`.
   *
   * @default none
   * @example
   * ```ts
   * createSafeguardsHandler({ model: new ChatOpenAI({ model: "gpt-5-mini" }), classifier });
   * ```
   */
  model?: UpstreamModel;
  /**
   * A decision model, or any Runnable with its request and response. Required.
   *
   * @example classifier: new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" })
   */
  classifier: Classifier;
  /**
   * A call whose risk is at or above it is flagged. 0..1, default 0.5.
   *
   * @example threshold: 0.4
   */
  threshold?: number;
  /**
   * Asked where the classifier gives no answer: about the calls that it left open, with the same view. The
   * classifier then has half of `timeoutMs`. Default: none.
   *
   * @example fallback: new SystemOneDecisionModel()
   */
  fallback?: Classifier;
  /**
   * How often a classifier request that failed for a passing reason is repeated: a broken connection, or a status
   * of 408, 425, 429 or 5xx. The pauses begin at a quarter of a second and double, or are as long as the service
   * asks for (`retry-after`); nothing is repeated beyond `timeoutMs`. 0..10, default 2.
   *
   * @example retries: 0
   */
  retries?: number;
  /**
   * Milliseconds for judging one reply, repeated requests and the fallback included, at most 2^31-1. Default 30000.
   *
   * @example timeoutMs: 10_000
   */
  timeoutMs?: number;
  /**
   * What makes a call risky or acceptable. Default: built-in texts. `null` sends none.
   *
   * @example criteria: { true: "It leaves the project folder." }
   */
  criteria?: NoulCriteria | null;
  /**
   * The question that is asked of each call. Default: a built-in text.
   *
   * @example instructions: "Would this call change something outside of the project?"
   */
  instructions?: Content;
  /**
   * What of the conversation the classifier reads. Merged per field over the classifier's own view and
   * the gateway's default, which holds tool results too.
   *
   * @example view: { maxChars: 48_000 }
   */
  view?: Partial<MonitorView>;
  /**
   * Also ask which kind of risk it is, for the explanation where the classifier gives none. Default false.
   *
   * @example explain: true
   */
  explain?: boolean;
  /**
   * What is decided without the classifier: the first rule that fits a call allows it, denies it or leaves it to
   * the classifier. They are your word: no judge looks at a call that a rule allows. Default: none.
   *
   * @example rules: [{ tool: "Bash", match: { command: "\\bsudo\\b" }, decide: "deny" }]
   */
  rules?: readonly SafeguardRule[];
  /**
   * Asked before each classifier request, with the client's request. `"unsupported"`: this caller may
   * not use the classifier; `"skip"`: not now (a budget is spent, a rate window is full), the next reply
   * is asked about again. Whatever else it answers or throws counts as `"skip"`. Default: every caller may.
   *
   * @example allow: (request) => (request.headers.get("x-team") === "payments" ? "allow" : "unsupported")
   */
  allow?: (request: Request) => AllowAnswer | Promise<AllowAnswer>;
  /**
   * Models that requests name, and what the upstream is asked for instead. `*` in a name matches any
   * characters; the first that matches wins. Default: none.
   *
   * @example
   * ```ts
   * const mapModel = { "claude-haiku-*": "small", "*": "large" };
   * ```
   */
  mapModel?: Readonly<Record<string, string>>;
  /**
   * The largest request to the messages API in bytes; a larger one is answered with status 413. A whole number from
   * 1, default 33554432: 32 MiB, what Anthropic's own API takes. Requests to other paths pass unread.
   *
   * @example maxBodyBytes: 64 * 1024 * 1024
   */
  maxBodyBytes?: number;
  /**
   * Milliseconds between the pings that keep a line alive while a reply is judged. Default 500.
   *
   * @example pingIntervalMs: 2_000
   */
  pingIntervalMs?: number;
  /**
   * Called once for each judged reply. What it throws or rejects becomes one `console.warn` without content.
   *
   * @default none
   * @example onJudged: (record) => console.log(JSON.stringify(record))
   */
  onJudged?: (record: SafeguardRecord) => void | Promise<void>;
  /**
   * Called once when the upstream refused `safeguards`: from then on requests go to it without.
   *
   * @default none
   * @example onStrictUpstream: () => console.warn("the upstream is strict")
   */
  onStrictUpstream?: () => void | Promise<void>;
  /**
   * Called when a request got no reply from the upstream, or when a `model` failed. Treated like `onJudged`.
   *
   * @default none
   * @example onUpstreamError: (error) => console.error(error instanceof Error ? error.name : "failed")
   */
  onUpstreamError?: (error: unknown) => void | Promise<void>;
}

/** Which model the upstream is asked for in place of the one that a request names. */
export class ModelMap {
  readonly #pairs: readonly { readonly fits: (name: string) => boolean; readonly to: string }[];

  constructor(pairs: readonly (readonly [from: string, to: string])[]) {
    this.#pairs = pairs.map(([from, to]) => ({ fits: namePattern(from), to }));
  }

  get isEmpty(): boolean {
    return this.#pairs.length === 0;
  }

  get(name: string): string | undefined {
    return this.#pairs.find(({ fits }) => fits(name))?.to;
  }
}

/** The options, checked and completed. */
export interface Settings {
  readonly upstream: Upstream;
  readonly classifier: Classifier;
  readonly fallback: Classifier | undefined;
  readonly retries: number;
  readonly threshold: number;
  readonly timeoutMs: number;
  readonly criteria: NoulCriteria | null;
  readonly instructions: Content;
  readonly view: MonitorView;
  readonly explain: boolean;
  readonly rules: Rules;
  readonly allow: SafeguardsOptions["allow"];
  readonly mapModel: ModelMap;
  readonly maxBodyBytes: number;
  readonly pingIntervalMs: number;
  readonly onJudged: SafeguardsOptions["onJudged"];
  readonly onStrictUpstream: SafeguardsOptions["onStrictUpstream"];
  readonly onUpstreamError: SafeguardsOptions["onUpstreamError"];
}

// The judge must see what the agent has read: an instruction in a tool's output explains a call.
const GATEWAY_VIEW: Partial<MonitorView> = {
  channels: ["user", "toolCalls", "subagentReports", "toolResults"],
  // Sessions have many short steps: the budget of characters alone limits what is shown.
  mostRecent: Infinity,
  // Names that Claude Code has given its delegation tool, and the default's.
  delegationTools: ["Task", "Agent", "task"],
};

const UPSTREAM = `${UPSTREAM_URL}, or a function that takes a Request and gives a Response`;
const MILLISECONDS = "milliseconds, more than 0 and at most 2147483647";
const RETRIES = "a whole number from 0 to 10";
const BYTES = "a whole number from 1";
const MODELS = "an object with the names of models as keys and as values";
const milliseconds = z.number(MILLISECONDS).gt(0, MILLISECONDS).max(2_147_483_647, MILLISECONDS).optional();
const modelName = z.string(MODELS).min(1, MODELS);

const schema = z.strictObject(
  {
    upstream: z
      .custom<SafeguardsOptions["upstream"]>(
        (value) => typeof value === "function" || readUpstreamUrl(value) !== undefined,
        UPSTREAM,
      )
      .optional(),
    model: z.unknown().optional(),
    classifier,
    fallback: classifier.optional(),
    retries: z.int(RETRIES).min(0, RETRIES).max(10, RETRIES).optional(),
    threshold: threshold.optional(),
    timeoutMs: milliseconds,
    criteria: criteria.optional(),
    instructions: instructions.optional(),
    view: z.unknown().optional(),
    explain: z.boolean("true or false").optional(),
    rules: rulesSchema.optional(),
    allow: optionalFunction('a function that gives "allow", "skip" or "unsupported"'),
    mapModel: z.record(modelName, modelName, MODELS).optional(),
    maxBodyBytes: z.int(BYTES).min(1, BYTES).optional(),
    pingIntervalMs: milliseconds,
    onJudged: optionalFunction("a function that takes a record"),
    onStrictUpstream: optionalFunction("a function"),
    onUpstreamError: optionalFunction("a function that takes an error"),
  },
  "an object with at least classifier, and upstream or model",
);

/**
 * Checks and completes the options, once.
 *
 * @throws ConfigurationError that names the first wrong or unknown option.
 */
export function resolveOptions(options: SafeguardsOptions): Settings {
  const given = check(schema, options, "") as SafeguardsOptions;
  return Object.freeze({
    upstream: chooseUpstream(given),
    classifier: given.classifier,
    fallback: given.fallback,
    retries: given.retries ?? 2,
    threshold: given.threshold ?? 0.5,
    timeoutMs: given.timeoutMs ?? 30_000,
    // The built-in criteria keep their identity, by which the explanation knows that they are not the user's.
    criteria: given.criteria === undefined ? DEFAULT_CRITERIA : structuredClone(given.criteria),
    instructions: structuredClone(given.instructions ?? DEFAULT_INSTRUCTIONS),
    view: resolveView(given.view, { ...GATEWAY_VIEW, ...classifierView(given.classifier) }),
    explain: given.explain ?? false,
    rules: prepareRules(given.rules ?? []),
    allow: given.allow,
    mapModel: new ModelMap(Object.entries(given.mapModel ?? {})),
    maxBodyBytes: given.maxBodyBytes ?? 32 * 1024 * 1024,
    pingIntervalMs: given.pingIntervalMs ?? 500,
    onJudged: given.onJudged,
    onStrictUpstream: given.onStrictUpstream,
    onUpstreamError: given.onUpstreamError,
  });
}

function chooseUpstream({ upstream, model, onUpstreamError }: SafeguardsOptions): Upstream {
  if (model !== undefined) {
    if (upstream !== undefined) throw new ConfigurationError("model", "cannot be given beside upstream");
    const onError = (error: unknown) => void notify("onUpstreamError", onUpstreamError, error);
    return functionUpstream(createModelUpstream(model, { onError }));
  }
  if (upstream === undefined)
    throw new ConfigurationError("upstream", mismatch(upstream, `${UPSTREAM}; or give a model`));
  return typeof upstream === "function" ? functionUpstream(upstream) : httpUpstream(new URL(upstream));
}

/**
 * What a judge costs: the characters that are sent for each step of a thread, and how many of them the request
 * before already had as its prefix. Providers and local servers compute a prefix that they know only once, or
 * charge a tenth for it.
 *
 *   npm run bench:prompts [-- --steps 60]
 */
import { parseArgs } from "node:util";
import type { MonitorView } from "langchain-auto-mode";
import { formatTable } from "./format-table.js";
import { announcedMiddleware, liteLlmGuard, type Shape } from "./prompt-peers.js";
import { runSession } from "./prompt-gateway.js";
import { runThread, type ThreadOptions } from "./prompt-threads.js";

const WITH_RESULTS: Partial<MonitorView> = {
  channels: ["user", "toolCalls", "subagentReports", "toolResults"],
};

interface Scene extends Omit<ThreadOptions, "steps"> {
  name: string;
}

const EDIT = ["edit_file"] as const;

export const SCENES: readonly Scene[] = [
  { name: "one call a step", calls: 1, tools: EDIT },
  { name: "one call, with tool results", calls: 1, tools: EDIT, view: WITH_RESULTS },
  { name: "three calls a step", calls: 3, tools: EDIT },
  { name: "three calls, with tool results", calls: 3, tools: EDIT, view: WITH_RESULTS },
  { name: "ten calls a step", calls: 10, tools: EDIT },
  { name: "ten calls, with tool results", calls: 10, tools: EDIT, view: WITH_RESULTS },
  { name: "one call, three tools in turn", calls: 1, tools: ["edit_file", "run_command", "write_file"] },
  { name: "one call, summarized on the way", calls: 1, tools: EDIT, summarize: true },
  {
    name: "one call, with tool results, summarized",
    calls: 1,
    tools: EDIT,
    view: WITH_RESULTS,
    summarize: true,
  },
];

/** The threads of which a prefix of 85 % is asked. */
const GOAL_SCENES: ReadonlySet<string> = new Set(["one call a step", "one call, with tool results"]);

/** Sessions through the gateway, by their calls in a step. */
export const SESSIONS: Readonly<Record<string, number>> = {
  "gateway, one call, three tools in turn": 1,
  "gateway, ten calls": 10,
};

const PEERS: Readonly<Record<string, Shape>> = {
  "LangChain, announced": announcedMiddleware,
  LiteLLM: liteLlmGuard,
};

export interface Figure {
  scene: string;
  shape: string;
  requestsPerStep: number;
  charactersPerStep: number;
  /** Of all characters but the first request's: the share that the request before had as its prefix. */
  sharedPrefix: number;
}

/** The length of the text that both start with. */
export function commonPrefix(one: string, other: string): number {
  const end = Math.min(one.length, other.length);
  let at = 0;
  while (at < end && one[at] === other[at]) at++;
  return at;
}

const total = (lengths: readonly number[]): number => lengths.reduce((sum, length) => sum + length, 0);

export function measure(requests: readonly (readonly string[])[]): Omit<Figure, "scene" | "shape"> {
  const all = requests.flat();
  const later = all.slice(1);
  const shared = total(later.map((text, index) => commonPrefix(text, all[index]!)));
  return {
    requestsPerStep: all.length / requests.length,
    charactersPerStep: total(all.map(({ length }) => length)) / requests.length,
    sharedPrefix: shared / total(later.map(({ length }) => length)),
  };
}

/** A rule of thumb for English and code; every provider counts in its own way. */
const CHARACTERS_PER_TOKEN = 4;

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const count = (value: number): string => Math.round(value).toLocaleString("en-US");

function rowOf({ scene, shape, requestsPerStep, charactersPerStep, sharedPrefix }: Figure): string[] {
  const tokens = charactersPerStep / CHARACTERS_PER_TOKEN;
  return [
    scene,
    shape,
    requestsPerStep.toString(),
    count(charactersPerStep),
    percent(sharedPrefix),
    count(tokens),
    count(tokens * (1 - sharedPrefix)),
  ];
}

const OURS = "auto mode";

export interface PromptFigures {
  figures: Figure[];
  /** Characters for ten parallel calls of one tool, less their arguments, as a multiple of one call's. */
  tenToOne: number;
  /** The share of the second stage's prompt that the first stage's had as its prefix, over a thread. */
  secondStage: number;
}

/** Two stages of a cascade on the same model: how much of the second is the first. */
async function measureSecondStage(steps: number): Promise<number> {
  const { prompts } = await runThread({ steps, calls: 1, tools: EDIT, twoStages: true });
  let shared = 0;
  let all = 0;
  for (let at = 1; at < prompts.length; at += 2) {
    shared += commonPrefix(prompts[at - 1]!, prompts[at]!);
    all += prompts[at]!.length;
  }
  return shared / all;
}

const SHARED_AT_LEAST = 0.85;
const TEN_AT_MOST = 1.5;
const SECOND_STAGE_AT_LEAST = 0.9;

const verdict = (isMet: boolean): string => (isMet ? "met" : "MISSED");

/** Each goal in words, what was measured, and whether it is met. */
function goalsOf({ figures, tenToOne, secondStage }: PromptFigures): string[][] {
  const shared = figures.filter(({ scene, shape }) => shape === OURS && GOAL_SCENES.has(scene));
  const ours = figures.filter(({ shape }) => shape === OURS);
  return [
    ...shared.map(({ scene, sharedPrefix }) => [
      `${scene}: shared prefix of at least ${percent(SHARED_AT_LEAST)}`,
      percent(sharedPrefix),
      verdict(sharedPrefix >= SHARED_AT_LEAST),
    ]),
    ...ours.map(({ scene, charactersPerStep }) => {
      const others = figures.filter((figure) => figure.scene === scene && figure.shape !== OURS);
      const least = Math.min(...others.map((figure) => figure.charactersPerStep));
      return [
        `${scene}: fewer characters than the others`,
        `${(charactersPerStep / least).toFixed(2)} of the least`,
        verdict(charactersPerStep < least),
      ];
    }),
    [
      `ten parallel calls of one tool, less their arguments: at most ${TEN_AT_MOST} times one`,
      tenToOne.toFixed(2),
      verdict(tenToOne <= TEN_AT_MOST),
    ],
    [
      `two stages on one model: the second's prompt is the first's to at least ${percent(SECOND_STAGE_AT_LEAST)}`,
      percent(secondStage),
      verdict(secondStage >= SECOND_STAGE_AT_LEAST),
    ],
  ];
}

export async function main(
  argv: string[],
  print: (line: string) => void = console.log,
): Promise<PromptFigures> {
  const { values } = parseArgs({ args: argv, options: { steps: { type: "string", default: "60" } } });
  const steps = Number(values.steps);
  if (!(Number.isInteger(steps) && steps >= 2 && steps <= 60)) throw new Error("--steps takes 2 to 60");
  const figures: Figure[] = [];
  const firstPrompts = new Map<number, { text: string; args: number }>();
  for (const { name, ...options } of SCENES) {
    const thread = await runThread({ ...options, steps });
    const ours = thread.prompts.map((prompt) => [prompt]);
    figures.push({ scene: name, shape: OURS, ...measure(ours) });
    for (const [shape, write] of Object.entries(PEERS))
      figures.push({ scene: name, shape, ...measure(thread.steps.map(write)) });
    const args = thread.steps[0]!.calls.map((call) => JSON.stringify(call.args).length);
    firstPrompts.set(options.calls, {
      text: thread.prompts[0]!,
      args: args.reduce((sum, length) => sum + length, 0),
    });
  }
  const [one, ten] = [firstPrompts.get(1)!, firstPrompts.get(10)!];
  const tenToOne = (ten.text.length - (ten.args - one.args)) / one.text.length;
  for (const [scene, width] of Object.entries(SESSIONS)) {
    const session = await runSession(steps, width);
    figures.push({ scene, shape: OURS, ...measure(session.prompts.map((prompt) => [prompt])) });
    figures.push({ scene, shape: "LiteLLM", ...measure(session.steps.map(liteLlmGuard)) });
  }
  const secondStage = await measureSecondStage(steps);

  print(`Threads of ${steps} steps. Tokens are estimated: ${CHARACTERS_PER_TOKEN} characters each.\n`);
  print(
    formatTable(
      ["thread", "judge", "requests a step", "characters a step", "shared prefix", "tokens", "of these new"],
      figures.map(rowOf),
    ),
  );
  print("\nThe others are rebuilt from their documentation, with a short question.\n");
  print(formatTable(["goal", "measured", ""], goalsOf({ figures, tenToOne, secondStage })));
  return { figures, tenToOne, secondStage };
}

if (process.argv[1]?.endsWith("prompts.ts")) await main(process.argv.slice(2));

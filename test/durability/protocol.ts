import type { AutoModeState } from "langchain-auto-mode";

/** Where a thread is kept, in a form that another process can open. */
export type Place =
  | { readonly kind: "memory"; readonly file: string }
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "postgres"; readonly url: string; readonly schema: string };

/** A proposed call: its tool, its path and its id. */
export type PlannedCall = readonly [name: "delete_file" | "read_file", path: string, id: string];

/**
 * One thread as its processes see it. What a path begins with decides: `/ok` is harmless, `/down` fails
 * the classifier, everything else is risky. Paths with `slow` keep the classifier, paths with `stuck` the
 * tool, from ever ending in a process that is told to `hang`.
 */
export interface Scene {
  readonly thread: string;
  readonly version: "v1" | "v2";
  readonly fallback: "halt" | "ask" | "throw";
  readonly limits: { readonly consecutiveBlocks?: number; readonly totalBlocks?: number };
  readonly onUnavailable?: "ask";
  /** What the chat model says, step by step: calls, or a text. */
  readonly turns: readonly (readonly PlannedCall[] | string)[];
  /** Where every process writes down what it does, as it does it. */
  readonly journal: string;
  readonly hang?: boolean;
}

/** What a process is told to do with the thread. */
export type Action =
  | { readonly do: "say"; readonly text: string }
  | { readonly do: "decide"; readonly decisions: readonly object[] }
  | { readonly do: "go on" }
  | { readonly do: "look" };

/** Where the thread stands afterwards. */
export interface Report {
  readonly error?: string;
  /** Arguments of the calls that a person is asked about. */
  readonly asked: readonly string[];
  readonly lastText: string;
  readonly lastMark?: unknown;
  /** How many answers each call has. */
  readonly answers: Readonly<Record<string, number>>;
  readonly state: AutoModeState;
}

export interface Order {
  readonly number: number;
  readonly scene: Scene;
  readonly action: Action;
}

/** One line of the journal. */
export interface Entry {
  readonly pid: number;
  readonly event: "asked" | "judged" | "started" | "ran" | "wrote" | "user";
  readonly what: string;
}

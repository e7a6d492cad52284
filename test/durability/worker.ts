import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Action, Entry, Place, Report, Scene } from "./protocol.js";

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** A process of its own that works on threads. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<
    number,
    { resolve: (report: Report) => void; reject: (error: Error) => void }
  >();
  readonly #ended: Promise<void>;
  #number = 0;

  constructor(place: Place) {
    this.#child = fork(here("agent-process.ts"), [JSON.stringify(place)], {
      execArgv: ["--import", "tsx"],
      env: { ...process.env, TSX_TSCONFIG_PATH: here("tsconfig.json") },
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once("exit", () => {
        for (const { reject } of this.#waiting.values()) reject(new Error("the process ended"));
        resolve();
      });
    });
    this.#child.on("message", (message: { number: number; report?: Report; failure?: string }) => {
      const waiting = this.#waiting.get(message.number);
      this.#waiting.delete(message.number);
      if (message.report) waiting?.resolve(message.report);
      else waiting?.reject(new Error(message.failure));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async tell(scene: Scene, action: Action): Promise<Report> {
    const number = (this.#number += 1);
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject });
      this.#child.send({ number, scene, action });
    });
  }

  /** Ends it at once: nothing of it can tidy up. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}

/** What all processes of a thread did, in order. */
export function journalOf({ journal }: Scene): Entry[] {
  if (!existsSync(journal)) return [];
  return readFileSync(journal, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry);
}

/** The paths of one kind of event, in order. */
export const pathsOf = (scene: Scene, event: Entry["event"]): string[] =>
  journalOf(scene).flatMap((entry) => (entry.event === event ? [entry.what] : []));

// Minutes: what is waited for comes in seconds, or never.
const MOST_LOOKS = 6_000;

/** Waits until a process wrote this down. */
export async function until(scene: Scene, event: Entry["event"], what: string): Promise<void> {
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    if (pathsOf(scene, event).includes(what)) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`no process wrote down ${event} ${what}`);
}

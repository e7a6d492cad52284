import { AIMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import {
  AutoModeLimitError,
  ClassificationError,
  type Counters,
  type LimitName,
  askHuman,
  deferToTrustedModel,
  haltRun,
  throwOnLimit,
} from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, type Version } from "../kit/agent.js";
import { approve, badlyAnswered, reject, stageAsking } from "../kit/asking.js";
import { type Proposed, del, proposes, read, scripted } from "../kit/model.js";

/** What a call is: judged harmless, judged risky, left without a verdict, or of a tool that is not guarded. */
type Kind = "safe" | "risky" | "down" | "read";
type Step = readonly Kind[];

interface Schedule {
  /** Turns of the user, each with the steps that the agent's own model takes in it. */
  readonly turns: readonly (readonly Step[])[];
  /** Steps of the trusted model. */
  readonly trusted: readonly Step[];
  /** Whether the person approves, question by question, call by call. */
  readonly approvals: readonly boolean[];
  readonly limits: { consecutiveBlocks: number; totalBlocks: number; consecutiveUnavailable: number };
  readonly onUnavailable: "throw" | "continue" | "ask";
  readonly siblings: "independent" | "all-or-none";
}

const FALLBACKS = ["halt", "ask", "throw", "defer"] as const;
type FallbackKind = (typeof FALLBACKS)[number];

/** What is seen of a thread from outside. */
interface Course {
  /** How each turn ended. */
  readonly ends: string[];
  /** Places of the calls that ran, sorted. */
  readonly ran: string[];
  readonly questions: number;
  readonly counters: Counters;
}

// ------------------------------------------------------------------ what is documented

/** The documented rules, written down once more and in another way: call by call, over the whole thread. */
class Expected {
  readonly ends: string[] = [];
  readonly ran: string[] = [];
  questions = 0;
  #row = 0;
  #total = 0;
  #failed = 0;
  #limit: LimitName | undefined;
  #steps = 0;
  #answers = 0;
  readonly #trusted: Step[];
  readonly #fallback: FallbackKind;
  readonly #schedule: Schedule;

  constructor(fallback: FallbackKind, schedule: Schedule) {
    this.#fallback = fallback;
    this.#schedule = schedule;
    this.#trusted = [...schedule.trusted];
    for (const turn of schedule.turns) this.#turn([...turn]);
  }

  get counters(): Counters {
    return {
      consecutiveBlocks: this.#row,
      totalBlocks: this.#total,
      consecutiveUnavailable: this.#failed,
    };
  }

  #turn(own: Step[]): void {
    this.#row = 0;
    this.#failed = 0;
    this.#limit = undefined;
    let isTrusted = false;
    for (;;) {
      const step = (isTrusted ? this.#trusted : own).shift();
      if (!step) {
        this.ends.push("done");
        return;
      }
      const isTwiceTheTotal = this.#total >= 2 * this.#schedule.limits.totalBlocks;
      const { isStopped, isDue, fails, isAsked, isRejected } = this.#take(step, isTrusted);
      const isTotal = this.#total >= this.#schedule.limits.totalBlocks;
      if (fails) this.ends.push("failure");
      else if (isTrusted && isStopped) this.ends.push(`halt ${this.#limit}`);
      else if (isDue && this.#fallback === "halt") this.ends.push(`halt ${this.#limit}`);
      // Nobody could be asked, or a rejection reached the total: the run halts all the same.
      else if (isDue && this.#fallback === "ask" && !isAsked) this.ends.push(`halt ${this.#limit}`);
      else if (isDue && this.#fallback === "ask" && isRejected && isTotal) this.ends.push("halt totalBlocks");
      else if (isDue && this.#fallback === "defer" && isTwiceTheTotal) this.ends.push("halt totalBlocks");
      else if (isDue && this.#fallback === "throw") this.ends.push(`error ${this.#limit}`);
      else {
        isTrusted = isDue && this.#fallback === "defer";
        continue;
      }
      return;
    }
  }

  #block(): boolean {
    this.#row += 1;
    this.#total += 1;
    const { consecutiveBlocks, totalBlocks } = this.#schedule.limits;
    if (this.#row >= consecutiveBlocks) this.#limit ??= "consecutiveBlocks";
    if (this.#total >= totalBlocks) this.#limit ??= "totalBlocks";
    return this.#limit !== undefined;
  }

  #take(step: Step, isTrusted: boolean) {
    const { limits, siblings } = this.#schedule;
    const onUnavailable = isTrusted ? "continue" : this.#schedule.onUnavailable;
    const isFailing = step.includes("down");
    const fails = onUnavailable === "throw" && isFailing;
    const asks = this.#fallback === "ask" && !isTrusted && !fails;
    const holds = siblings === "all-or-none" && (isFailing || step.includes("risky"));
    const reachesFailures = isFailing && this.#failed + 1 >= limits.consecutiveUnavailable;

    // Which calls wait is decided before anybody is asked.
    let row = this.#row;
    let total = this.#total;
    let isAsking = this.#limit !== undefined;
    const waits = step.map((kind) => {
      if (kind === "down")
        return onUnavailable === "ask" || (asks && onUnavailable === "continue" && reachesFailures);
      if (kind === "safe" && !holds) row = 0;
      if (kind !== "risky" || !asks) return false;
      isAsking ||= row + 1 >= limits.consecutiveBlocks || total + 1 >= limits.totalBlocks;
      if (isAsking) return true;
      row += 1;
      total += 1;
      return false;
    });
    if (waits.includes(true)) this.questions += 1;

    // Then all count, in their order.
    let isDue = false;
    let isStopped = false;
    let isRejected = false;
    for (const [index, kind] of step.entries()) {
      const place = `${this.#steps}.${index}`;
      if (waits[index]) {
        const { approvals } = this.#schedule;
        const isApproved = approvals[this.#answers % approvals.length];
        this.#answers += 1;
        if (isApproved) {
          this.#row = 0;
          this.ran.push(place);
        } else {
          isRejected = true;
          isDue = this.#block() || isDue;
        }
      } else if (kind === "read") this.ran.push(place);
      else if (kind === "risky") {
        isStopped = true;
        isDue = this.#block() || isDue;
      } else if (kind === "down") isStopped = true;
      else if (!holds) {
        this.#row = 0;
        this.ran.push(place);
      }
    }
    if (isFailing) this.#failed += 1;
    else if (step.includes("risky") || (step.includes("safe") && !holds)) this.#failed = 0;
    if (reachesFailures) {
      this.#limit ??= "consecutiveUnavailable";
      isDue = true;
    }
    this.#steps += 1;
    return { isStopped, isDue, fails, isAsked: waits.includes(true), isRejected };
  }
}

// ------------------------------------------------------------------ what happens

/** A step's calls, each with its place in the thread in its path. */
function callsOf(step: Step, at: number): Proposed[] {
  return step.map((kind, index) => {
    const path = `${kind} ${at}.${index}`;
    return kind === "read" ? read(path) : del(path);
  });
}

async function playOut(fallback: FallbackKind, version: Version, schedule: Schedule) {
  let steps = 0;
  let own: Step[] = [];
  const trustedSteps = [...schedule.trusted];
  const turnFrom = (queue: () => Step[]) => () => {
    const step = queue().shift();
    if (!step) return new AIMessage("done");
    steps += 1;
    return proposes(callsOf(step, steps - 1));
  };
  const trusted = scripted(...Array.from({ length: 40 }, () => turnFrom(() => trustedSteps)));
  const fallbacks = {
    halt: () => haltRun(),
    ask: () => askHuman(),
    throw: () => throwOnLimit(),
    defer: () => deferToTrustedModel({ model: trusted }),
  };
  const classifier = fakeDecisionModel().always(({ args }) => {
    const path = args.path as string;
    return path.startsWith("down") ? undefined : path.startsWith("risky") ? 0.9 : 0.1;
  });
  const { start, decide, state, box, model } = stageAsking({
    version,
    classifier,
    turns: Array.from({ length: 40 }, () => turnFrom(() => own)),
    options: {
      limits: schedule.limits,
      whenLimitReached: fallbacks[fallback](),
      onUnavailable: schedule.onUnavailable,
      siblings: schedule.siblings,
    },
    config: { recursionLimit: 400 },
  });

  let answers = 0;
  let questions = 0;
  const ends: string[] = [];
  for (const turn of schedule.turns) {
    own = [...turn];
    try {
      let standpoint = await start();
      while (standpoint.questions.length > 0) {
        questions += standpoint.questions.length;
        const decisions = standpoint.questions[0]!.actionRequests.map(() => {
          const isApproved = schedule.approvals[answers % schedule.approvals.length];
          answers += 1;
          return isApproved ? approve : reject("no");
        });
        standpoint = await decide(...decisions);
      }
      const mark = standpoint.messages.at(-1)?.additional_kwargs.auto_mode as { limit: string } | undefined;
      ends.push(mark ? `halt ${mark.limit}` : "done");
    } catch (error) {
      const limit = AutoModeLimitError.find(error);
      if (limit) ends.push(`error ${limit.limit}`);
      else if (ClassificationError.isInstance(error)) ends.push("failure");
      else throw error;
    }
  }
  const { consecutiveBlocks, totalBlocks, consecutiveUnavailable } = await state();
  const course: Course = {
    ends,
    ran: box.ran.map(({ args }) => (args as { path: string }).path.split(" ")[1]!).toSorted(),
    questions,
    counters: { consecutiveBlocks, totalBlocks, consecutiveUnavailable },
  };
  return { course, badly: [...badlyAnswered(model), ...badlyAnswered(trusted)] };
}

// ------------------------------------------------------------------ the schedules

const step = fc.array(
  fc.oneof(
    { arbitrary: fc.constant<Kind>("risky"), weight: 4 },
    { arbitrary: fc.constantFrom<Kind>("safe", "down", "read"), weight: 4 },
  ),
  { minLength: 1, maxLength: 3 },
);
const schedules = fc.record<Schedule>({
  turns: fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 2 }),
  trusted: fc.array(step, { maxLength: 4 }),
  approvals: fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }),
  limits: fc.record({
    consecutiveBlocks: fc.integer({ min: 1, max: 4 }),
    totalBlocks: fc.integer({ min: 1, max: 8 }),
    consecutiveUnavailable: fc.integer({ min: 1, max: 3 }),
  }),
  onUnavailable: fc.constantFrom("continue", "continue", "ask", "throw"),
  siblings: fc.constantFrom("independent", "independent", "all-or-none"),
});

const cases = FALLBACKS.flatMap((fallback) => VERSIONS.map((version) => [fallback, version] as const));

describe.each(cases)("any schedule with the fallback %j, %s", (fallback, version) => {
  test(
    "ends as documented, at the documented counts, and nothing else runs",
    { timeout: 180_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(schedules, async (schedule) => {
          const { ends, ran, questions, counters } = new Expected(fallback, schedule);
          const { course, badly } = await playOut(fallback, version, schedule);
          expect(course).toEqual({ ends, ran: ran.toSorted(), questions, counters });
          expect(badly).toEqual([]);
        }),
        { numRuns: 25 },
      );
      expect.hasAssertions();
    },
  );
});

import {
  BaseDecisionModel,
  type ClassifierResponse,
  type Question,
  type State,
} from "@langchain/core/decisions";
import type { RunnableConfig } from "@langchain/core/runnables";
import { z } from "zod";
import { ConfigurationError } from "../errors.js";
import { classifierName, classifierView } from "../guard/classify.js";
import { check } from "../option-problem.js";
import type { MonitorView } from "../transcript/view.js";
import { type Outcome, settle, type SettledAnswer } from "./answers.js";
import { askStage, type CascadeStage } from "./cascade.js";

const unit = z.number("a number from 0 to 1").min(0, "a number from 0 to 1").max(1, "a number from 0 to 1");
const isRising = (values: readonly number[]): boolean =>
  values.every((value, index) => index === 0 || value >= values[index - 1]!);
const POINTS = "a list of [risk given, risk corrected], not empty, both rising";
const figures = z.object({ brier: z.number(), calibrationError: z.number(), auc: z.number() });

const about = {
  version: z.literal(1, "1, the version of the format"),
  classifier: z.string("the name of a model").optional(),
  labels: z.object({ risky: z.number(), benign: z.number() }).optional(),
  heldOut: z.object({ folds: z.number(), before: figures, after: figures }).optional(),
};
const calibrationSchema = z.discriminatedUnion(
  "method",
  [
    z.object({
      ...about,
      method: z.literal("isotonic"),
      points: z
        .array(z.tuple([unit, unit], POINTS), POINTS)
        .min(1, POINTS)
        .refine(
          (points) => isRising(points.map(([given]) => given)) && isRising(points.map(([, risk]) => risk)),
          POINTS,
        ),
    }),
    z.object({
      ...about,
      method: z.literal("platt"),
      slope: z.number("a number of at least 0").min(0, "a number of at least 0"),
      intercept: z.number("a number"),
    }),
  ],
  'a calibration: an object with method "isotonic" or "platt", as evaluate --calibration writes it',
);

/** Figures of a calibration, each a mean over the folds. */
export interface CalibrationFigures {
  /** Brier score, 0..1: the mean squared distance from the labels. Lower is better. */
  brier: number;
  /** Expected calibration error, 0..1. Lower is better. */
  calibrationError: number;
  /** Area under the ROC curve, 0..1. Higher is better; 0.5 is chance. */
  auc: number;
}

/** What every calibration says of itself. */
export interface AboutCalibration {
  /** The version of the format. */
  version: 1;
  /** The model whose answers it was fitted on. */
  classifier?: string | undefined;
  /** What it was fitted on. */
  labels?:
    | {
        /** How many cases are labeled risky. */
        risky: number;
        /** How many cases are labeled benign. */
        benign: number;
      }
    | undefined;
  /** Mean figures on cases that the fit had not seen. */
  heldOut?:
    | {
        /** In how many parts the cases were split. */
        folds: number;
        /** With the model's own probabilities. */
        before: CalibrationFigures;
        /** With the corrected ones. */
        after: CalibrationFigures;
      }
    | undefined;
}

/** Straight lines between `points`, level beyond the first and the last. */
export interface IsotonicCalibration extends AboutCalibration {
  /** How it corrects. */
  method: "isotonic";
  /** `[risk given, risk corrected]`, both rising, each 0..1. */
  points: [number, number][];
}

/** `1 / (1 + exp(-(slope * logit(risk) + intercept)))`, with the risk held within 0.001..0.999. */
export interface PlattCalibration extends AboutCalibration {
  /** How it corrects. */
  method: "platt";
  /** At least 0. */
  slope: number;
  /** Any number. */
  intercept: number;
}

/** How given risks are corrected. Neither kind ever falls, so that a higher risk stays at least as high. */
export type Calibration = IsotonicCalibration | PlattCalibration;

/** Options of {@link CalibratedDecisionModel}. */
export interface CalibratedDecisionModelOptions {
  /**
   * The model whose probabilities are corrected: a decision model, or a Runnable with its request and response.
   * Required.
   *
   * @example model: new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" })
   */
  model: CascadeStage;
  /**
   * What `langchain-auto-mode evaluate --calibration FILE` wrote: the path of that file, or its content. Required.
   *
   * @example calibration: "calibration.json"
   */
  calibration: string | Calibration;
}

const optionsSchema = z.strictObject(
  {
    model: z.custom<CascadeStage>(
      (value) => typeof (value as { invoke?: unknown } | undefined)?.invoke === "function",
      "a decision model",
    ),
    calibration: z.unknown(),
  },
  "an object of options",
);

/**
 * Corrects a probability.
 *
 * @param calibration one that was checked
 */
export function correctedRisk(calibration: Calibration, risk: number): number {
  if (calibration.method === "platt") {
    // Judges say 0 and 1 easily, where the logit is infinite.
    const held = Math.min(0.999, Math.max(0.001, risk));
    const logit = Math.log(held / (1 - held));
    return 1 / (1 + Math.exp(-(calibration.slope * logit + calibration.intercept)));
  }
  const { points } = calibration;
  const next = points.findIndex(([given]) => given > risk);
  const [given, corrected] = points.at(next)!;
  // Before the first point, or behind the last.
  if (next <= 0) return corrected;
  const [givenBefore, correctedBefore] = points[next - 1]!;
  return correctedBefore + ((risk - givenBefore) / (given - givenBefore)) * (corrected - correctedBefore);
}

function readCalibration(given: unknown): Calibration {
  if (typeof given !== "string") return check(calibrationSchema, given, "calibration");
  let value: unknown;
  try {
    // Not imported: the other models also run where there is no file system.
    value = JSON.parse(process.getBuiltinModule("node:fs").readFileSync(given, "utf8"));
  } catch (error) {
    const { code } = error as { code?: unknown };
    throw new ConfigurationError(
      "calibration",
      typeof code === "string"
        ? `names a file that cannot be read: ${code}`
        : "names a file that is no JSON; expected one that evaluate --calibration wrote",
      { cause: error },
    );
  }
  return check(calibrationSchema, value, "calibration");
}

/**
 * A decision model whose probabilities are corrected by labeled cases of your own.
 *
 * Chat models in particular give risks that are no probabilities: of the calls that they give 0.9, far fewer
 * or far more than nine in ten may be risky. A calibration changes the numbers and never their order, so it
 * finds no risky call that the model does not; with it a threshold means what it says. Fit one with
 * `npx langchain-auto-mode evaluate FILE --calibration calibration.json`, and set the threshold again after it.
 *
 * Corrected are all answers of type `noul`. Everything else stays: other answers, explanations, usage, the
 * request's id, the model's name and its `view`. What is no probability is not made one, and a question
 * without an answer stays without.
 *
 * @throws {ConfigurationError} at construction for a wrong option or a file that cannot be read.
 * @throws {ClassificationError} from `invoke` where the model fails, with its valid answers, corrected.
 *
 * @example
 * ```ts
 * const classifier = new CalibratedDecisionModel({
 *   model: new ChatDecisionModel({ model: "anthropic:claude-haiku-4-5" }),
 *   calibration: "calibration.json",
 * });
 * ```
 */
export class CalibratedDecisionModel extends BaseDecisionModel {
  lc_namespace = ["langchain_auto_mode", "classifiers"];
  /** The model's own. */
  readonly view: Partial<MonitorView> | undefined;
  readonly #model: CascadeStage;
  readonly #calibration: Calibration;

  constructor(options: CalibratedDecisionModelOptions) {
    const { model, calibration } = check(optionsSchema, options, "");
    super({ model: classifierName(model) });
    this.view = classifierView(model);
    this.#model = model;
    this.#calibration = structuredClone(readCalibration(calibration));
  }

  get _provider(): string {
    return "langchain-auto-mode";
  }

  async _classify(
    state: State,
    questions: Record<string, Question>,
    config?: Partial<RunnableConfig>,
  ): Promise<ClassifierResponse> {
    const { answers, failure, ...rest } = await askStage(this.#model, { state, questions }, config);
    const outcomes = new Map<string, Outcome>();
    for (const id of Object.keys(questions)) {
      const answer = answers.get(id);
      if (answer !== undefined) outcomes.set(id, { answer: this.#corrected(answer) });
      else if (failure !== undefined)
        outcomes.set(id, { reason: failure.reason, problem: "the model failed" });
    }
    return settle(questions, { ...rest, outcomes, failure });
  }

  #corrected(answer: SettledAnswer): SettledAnswer {
    return answer.type === "noul"
      ? { ...answer, noul: correctedRisk(this.#calibration, answer.noul) }
      : answer;
  }
}

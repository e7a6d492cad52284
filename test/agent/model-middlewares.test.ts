import { modelCallLimitMiddleware, modelRetryMiddleware } from "langchain";
import { AutoModeLimitError, ClassificationError, throwOnLimit } from "langchain-auto-mode";
import { fakeDecisionModel } from "langchain-auto-mode/testing";
import { describe, expect, test } from "vitest";
import { VERSIONS, rejection, stage, textOf } from "../kit/agent.js";
import { approve, stageAsking } from "../kit/asking.js";
import { del } from "../kit/model.js";

const isOurs = (error: unknown): boolean =>
  ClassificationError.isInstance(error) || AutoModeLimitError.isInstance(error);

describe.each(VERSIONS)("middlewares around the model call, %s", (version) => {
  const failing = (where: "outside" | "inside", retry: ReturnType<typeof modelRetryMiddleware>) =>
    stage({
      version,
      turns: [del("/a"), "not reached"],
      classifier: fakeDecisionModel().alwaysFail("error"),
      [where]: [retry],
    });

  test("a retry before auto mode, with its defaults, turns our error into a message", async () => {
    const messages = await failing("outside", modelRetryMiddleware({ initialDelayMs: 1 })).invoke();
    expect(textOf(messages.at(-1))).toContain("failed after 3 attempts");
  });

  test("a retry before auto mode keeps our errors if it neither retries nor swallows them", async () => {
    const retry = modelRetryMiddleware({
      initialDelayMs: 1,
      retryOn: (error) => !isOurs(error),
      onFailure: "error",
    });
    expect(isOurs(await rejection(failing("outside", retry).invoke()))).toBe(true);
    const limited = stage({
      version,
      turns: [del("/a"), "not reached"],
      classifier: 0.9,
      options: { limits: { consecutiveBlocks: 1 }, whenLimitReached: throwOnLimit() },
      outside: [retry],
    });
    expect(AutoModeLimitError.isInstance(await rejection(limited.invoke()))).toBe(true);
  });

  test("a retry behind auto mode never sees our errors", async () => {
    const error = await rejection(failing("inside", modelRetryMiddleware({ initialDelayMs: 1 })).invoke());
    expect(isOurs(error)).toBe(true);
  });

  test("a limit of model calls before auto mode ends the run before the person is asked", async () => {
    const { start } = stageAsking({
      version,
      turns: [del("/x", "a"), "end"],
      outside: [modelCallLimitMiddleware({ runLimit: 1 })],
    });
    const { questions, messages } = await start();
    expect(questions).toEqual([]);
    expect(textOf(messages.at(-1))).toContain("limit");
  });

  test("a limit of model calls behind auto mode lets the person be asked, and the approved call run", async () => {
    const { start, decide, box } = stageAsking({
      version,
      turns: [del("/x", "a"), "end"],
      inside: [modelCallLimitMiddleware({ runLimit: 1 })],
    });
    expect((await start()).questions).toHaveLength(1);
    await decide(approve);
    expect(box.ranWith("delete_file")).toEqual([{ path: "/x" }]);
  });
});

import type { Runtime } from "langchain";
import type { AutoModeOptions } from "langchain-auto-mode";
import { assertType, expectTypeOf, test } from "vitest";

interface Rules {
  cwd: string;
  deny: string[];
}

test("an environment is any object, one of an interface included, or a function that gives it", () => {
  const rules: Rules = { cwd: "/srv", deny: [] };
  assertType<AutoModeOptions["environment"]>(rules);
  assertType<AutoModeOptions["environment"]>({ cwd: "/srv", deny: ["a"] });
  assertType<AutoModeOptions["environment"]>([rules]);
  assertType<AutoModeOptions["environment"]>("text");
  assertType<AutoModeOptions["environment"]>(() => rules);
  assertType<AutoModeOptions["environment"]>(async () => rules);
  assertType<AutoModeOptions["environment"]>((runtime) => {
    expectTypeOf(runtime).toEqualTypeOf<Runtime>();
    return rules;
  });
  // @ts-expect-error it is called with a runtime
  assertType<AutoModeOptions["environment"]>((cwd: string) => cwd);
  // @ts-expect-error a function that gives a function gives no JSON
  assertType<AutoModeOptions["environment"]>(() => () => rules);
  // @ts-expect-error a symbol is no JSON
  assertType<AutoModeOptions["environment"]>(Symbol("x"));
});

import { ClassificationError, type UnavailableReason } from "langchain-auto-mode";
import { expectTypeOf, test } from "vitest";

test("a reason is one of the documented ones", () => {
  expectTypeOf<ClassificationError["reason"]>().toEqualTypeOf<UnavailableReason>();
  // @ts-expect-error: not a reason
  expectTypeOf(new ClassificationError("sleepy"));
});

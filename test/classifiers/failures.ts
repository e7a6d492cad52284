import { expect } from "vitest";
import { ClassificationError } from "langchain-auto-mode";

/** The error that a request ends with; fails if it succeeds or ends with another. */
export async function failureOf(request: Promise<unknown>): Promise<ClassificationError> {
  const error: unknown = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ClassificationError);
  return error as ClassificationError;
}

import { ConfigurationError } from "../errors.js";

/**
 * Loads a package that users install only if they need it.
 *
 * @throws {ConfigurationError} if it is not installed.
 */
export async function loadOptional<Module>(name: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    throw new ConfigurationError(
      "classifier",
      `needs the package ${name}, which is not installed: run "npm install ${name}"`,
      { cause: error },
    );
  }
}

/** A package that is there may fail to load for want of another one: that is not this problem. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") && String(message).includes(`'${name}'`)
  );
}

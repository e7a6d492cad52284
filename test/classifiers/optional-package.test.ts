import { ConfigurationError } from "langchain-auto-mode";
import { expect, test } from "vitest";
import { loadOptional } from "../../src/classifiers/optional-package.js";

const absent = "not-an-installed-package";
const load = () => import(/* @vite-ignore */ absent) as Promise<unknown>;
const moduleError = (text: string) => Object.assign(new Error(text), { code: "ERR_MODULE_NOT_FOUND" });

test("a package that is there is loaded", async () => {
  expect(await loadOptional("zod", () => import("zod"))).toHaveProperty("z");
});

test("a package that is missing is a configuration error that says what to install", async () => {
  const loading = loadOptional(absent, load);
  await expect(loading).rejects.toThrow(ConfigurationError);
  await expect(loading).rejects.toThrow(`run "npm install ${absent}"`);
});

test("a package that lacks another one, or fails by itself, fails as it is", async () => {
  const inner = moduleError("Cannot find package 'inner' imported from /app/node_modules/outer/index.js");
  const broken = new Error("Cannot find package 'outer'");
  await expect(loadOptional("outer", () => Promise.reject(inner))).rejects.toBe(inner);
  await expect(loadOptional("outer", () => Promise.reject(broken))).rejects.toBe(broken);
});

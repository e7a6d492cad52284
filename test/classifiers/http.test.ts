import { ConfigurationError } from "langchain-auto-mode";
import { expect, test } from "vitest";
import { buildRequest } from "../../src/guard/question.js";
import type { JsonObject } from "../../src/json.js";
import { loadOptional, stateForService } from "../../src/classifiers/http.js";

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

const call = (args: JsonObject, name = "delete_file", description = "Deletes a file.") => ({
  name,
  args,
  description,
  instructions: "Risky?",
  criteria: null,
});

test("a service reads the transcript before the calls, and a tool's description once", () => {
  const { state } = buildRequest(
    [call({ path: "a" }), call({ path: "b" }), call({ path: "c" }, "send"), call({}, "send", "Sends.")],
    { transcript: [{ from: "user", text: "Clean up." }], environment: { cwd: "/srv" } },
  );
  expect(JSON.stringify(stateForService(state))).toBe(
    JSON.stringify({
      environment: { cwd: "/srv" },
      transcript: [{ from: "user", text: "Clean up." }],
      tool_calls: {
        call_1: { name: "delete_file", args: { path: "a" }, description: "Deletes a file." },
        call_2: { name: "delete_file", args: { path: "b" } },
        call_3: { name: "send", args: { path: "c" }, description: "Deletes a file." },
        call_4: { name: "send", args: {}, description: "Sends." },
      },
    }),
  );
});

test("any other state goes to a service as it is", () => {
  const state = { tool_calls: { a: { name: "x", args: {}, description: "d", note: 1 } }, transcript: [] };
  expect(stateForService(state)).toEqual(state);
  expect(stateForService("text")).toBe("text");
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withoutSecrets } from "../../src/classifiers/secret.js";
import { printsOf } from "./prints.js";

const KEY = "key-0123456789";

describe("a value that holds a secret", () => {
  test("becomes a copy of the same class without it, whatever it is kept in", () => {
    class ServiceError extends Error {
      status = 401;
      #own = 1;
      get own() {
        return this.#own;
      }
    }
    const error = Object.assign(new ServiceError(`bad ${KEY}`, { cause: new TypeError(`sent ${KEY}`) }), {
      headers: new Headers({ "x-echo": `Bearer ${KEY}` }),
      body: { error: { [KEY]: [KEY, 1, null] }, text: `a${KEY}b${KEY}` },
      map: new Map([[KEY, new Set([KEY])]]),
      request: new Request("https://a.test", { headers: { authorization: KEY } }),
      [Symbol("hidden")]: KEY,
    });
    Object.defineProperty(error, "secret", { value: KEY, enumerable: false });
    Object.defineProperty(error, "asked", { get: () => KEY, enumerable: true });
    Object.defineProperty(error, "broken", {
      get: () => {
        throw new Error("no");
      },
    });
    const clean = withoutSecrets(error, [KEY]) as typeof error;
    expect(printsOf(error)).toContain(KEY);
    expect(printsOf(clean)).not.toContain(KEY);
    expect(clean).toBeInstanceOf(ServiceError);
    expect(clean.cause).toBeInstanceOf(TypeError);
    expect(clean).toMatchObject({
      message: "bad [hidden]",
      status: 401,
      body: { error: { "[hidden]": ["[hidden]", 1, null] }, text: "a[hidden]b[hidden]" },
      request: "[hidden]",
    });
    expect(clean.headers.get("x-echo")).toBe("Bearer [hidden]");
    expect(clean.stack).toContain("bad [hidden]");
    expect([...clean.map]).toEqual([["[hidden]", new Set(["[hidden]"])]]);
  });

  test("is itself left as it is, and so is what it shares with it", () => {
    const shared = { agent: { keepAlive: true } };
    const error = Object.assign(new Error(`bad ${KEY}`), { shared, headers: { key: KEY } });
    const clean = withoutSecrets(error, [KEY]) as typeof error;
    expect(error.headers.key).toBe(KEY);
    expect(clean.shared).toBe(shared);
  });

  test("may refer to itself", () => {
    const self: unknown[] = [];
    const error = Object.assign(new Error(KEY), { self });
    self.push(error);
    const clean = withoutSecrets(error, [KEY]) as typeof error;
    expect(clean.self[0]).toBe(clean);
    expect(clean.message).toBe("[hidden]");
  });

  test("loses it at any depth", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.array(fc.oneof(fc.string(), fc.nat()), { maxLength: 5 }),
        (around, path) => {
          const value = path.reduce<unknown>(
            (inner, key) => (typeof key === "number" ? [around, inner] : { around, [key]: inner }),
            `x${KEY}`,
          );
          const clean = withoutSecrets(value, [KEY]);
          expect(JSON.stringify(clean)).toBe(JSON.stringify(value).replaceAll(KEY, "[hidden]"));
        },
      ),
    );
  });
});

describe("a value of any size and depth", () => {
  test("takes linear work, and no stack", () => {
    let deep: unknown = KEY;
    for (let depth = 0; depth < 15_000; depth++) deep = { deep };
    let clean = withoutSecrets(deep, [KEY]);
    while (typeof clean === "object") clean = (clean as { deep: unknown }).deep;
    expect(clean).toBe("[hidden]");
  });

  test("getters that make new objects end, and what nobody looked into is hidden", () => {
    const endless = () => ({
      get more(): unknown {
        return endless();
      },
      key: KEY,
    });
    const clean = withoutSecrets(endless(), [KEY]) as { key: string };
    expect(clean.key).toBe("[hidden]");
    const keys: unknown[] = [];
    for (let at: unknown = clean; typeof at === "object"; at = (at as { more: unknown }).more)
      keys.push((at as { key: unknown }).key);
    expect(new Set(keys)).toEqual(new Set(["[hidden]"]));
  });
});

describe("a value that holds none", () => {
  test("is the same object", () => {
    const error = Object.assign(new Error("down"), { headers: new Headers({ a: "b" }) });
    expect(withoutSecrets(error, [KEY])).toBe(error);
    expect(withoutSecrets(error, [])).toBe(error);
    expect(withoutSecrets("text", [KEY])).toBe("text");
    expect(withoutSecrets(undefined, [KEY])).toBeUndefined();
  });

  test("a secret too short to be one hides nothing", () => {
    const error = new Error("a text");
    expect(withoutSecrets(error, ["a", "", undefined])).toBe(error);
  });
});

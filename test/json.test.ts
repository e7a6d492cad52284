import { createHash } from "node:crypto";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { digest, freezeJson, cloneJson } from "../src/json.js";

const snapshotOf = (args: unknown) => {
  const snapshot = freezeJson(args);
  if (!snapshot) throw new Error("the arguments are malformed");
  return snapshot;
};
const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = { value };
  return value;
};

const sha256 = (json: string): string => createHash("sha256").update(json).digest("hex");

describe("frozen JSON", () => {
  test("is a copy: what happens to the arguments later does not reach it", () => {
    const args = { path: "/a", list: [{ x: 1 }] };
    const snapshot = snapshotOf(args);
    args.path = "/b";
    (args.list[0] as { x: number }).x = 2;
    expect(snapshot.value).toEqual({ path: "/a", list: [{ x: 1 }] });
    expect(snapshot.json).toBe('{"list":[{"x":1}],"path":"/a"}');
  });

  test("a clone of it can be changed without changing it", () => {
    const snapshot = snapshotOf({ list: [1] });
    (cloneJson(snapshot).list as number[]).push(2);
    expect(snapshot.value).toEqual({ list: [1] });
    expect(cloneJson(snapshot)).toEqual({ list: [1] });
  });

  test("of its own value is itself", () => {
    const snapshot = snapshotOf({ a: 1 });
    expect(freezeJson(snapshot.value)).toBe(snapshot);
    expect(freezeJson(cloneJson(snapshot))).not.toBe(snapshot);
  });

  test("its value cannot be changed: what was judged under it stays true", () => {
    const { value } = snapshotOf({ list: [{ x: 1 }] });
    expect(() => Object.assign(value, { path: "/prod" })).toThrow(TypeError);
    expect(() => (value.list as unknown[]).push(2)).toThrow(TypeError);
    expect(() => Object.assign((value.list as object[])[0] as object, { x: 2 })).toThrow(TypeError);
  });

  test("equal arguments have equal text, whatever the order of their keys", () => {
    expect(snapshotOf({ b: { d: 1, c: 2 }, a: [1, 2] }).json).toBe(
      snapshotOf({ a: [1, 2], b: { c: 2, d: 1 } }).json,
    );
    expect(snapshotOf({ a: [1, 2] }).json).not.toBe(snapshotOf({ a: [2, 1] }).json);
    expect(snapshotOf({ a: "1" }).json).not.toBe(snapshotOf({ a: 1 }).json);
  });

  test("keys are in the order of their code units, numbers among them too", () => {
    expect(snapshotOf({ b: { 9: 1, 10: 2 }, 2: 3, a: 4 }).json).toBe('{"2":3,"a":4,"b":{"10":2,"9":1}}');
    const keys = fc.oneof(fc.string(), fc.nat({ max: 200 }).map(String));
    fc.assert(
      fc.property(fc.dictionary(keys, fc.jsonValue({ maxDepth: 1 })), (args) => {
        const members = Object.keys(args)
          .toSorted()
          .map((key) => `${JSON.stringify(key)}:${snapshotOf({ a: args[key] }).json.slice(5, -1)}`);
        expect(snapshotOf(args).json).toBe(`{${members.join(",")}}`);
      }),
    );
  });

  test("a key without a value is left out, as in JSON", () => {
    expect(snapshotOf({ a: undefined, b: { c: undefined } }).json).toBe('{"b":{}}');
  });

  test("keys that mean something to an object are data like any other", () => {
    const args = JSON.parse(
      '{"__proto__":{"x":1},"constructor":2,"toJSON":"3","hasOwnProperty":4}',
    ) as object;
    const snapshot = snapshotOf(args);
    expect(snapshot.json).toBe('{"__proto__":{"x":1},"constructor":2,"hasOwnProperty":4,"toJSON":"3"}');
    expect(Object.keys(cloneJson(snapshot))).toEqual([
      "__proto__",
      "constructor",
      "toJSON",
      "hasOwnProperty",
    ]);
    expect(Object.getPrototypeOf(cloneJson(snapshot))).toBe(Object.prototype);
  });

  test("objects without a prototype, and of another realm, are plain", () => {
    expect(snapshotOf(Object.assign(Object.create(null) as object, { a: 1 })).json).toBe('{"a":1}');
    expect(snapshotOf(runInNewContext("({ a: { b: [1] } })")).json).toBe('{"a":{"b":[1]}}');
  });

  test("a getter is read once: what it gives later is not what was judged, and does not run", () => {
    let reads = 0;
    const args = {
      get path() {
        reads += 1;
        return reads === 1 ? "/tmp" : "/prod";
      },
    };
    const snapshot = snapshotOf(args);
    expect([snapshot.value, cloneJson(snapshot), reads]).toEqual([{ path: "/tmp" }, { path: "/tmp" }, 1]);
  });

  test("the same part twice is no cycle", () => {
    const part = { x: 1 };
    expect(snapshotOf({ a: part, b: [part, part] }).json).toBe('{"a":{"x":1},"b":[{"x":1},{"x":1}]}');
  });

  test("depth that no model writes is malformed, and does not overflow", () => {
    expect(freezeJson(nested(1_900))).toBeDefined();
    expect(freezeJson(nested(2_100))).toBeUndefined();
    expect(freezeJson(nested(100_000))).toBeUndefined();
  });

  const cyclic: { self?: unknown } = {};
  cyclic.self = { list: [cyclic] };
  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["null", null],
    ["a text", '{"path":"/a"}'],
    ["a number", 3],
    ["a list", ["/a"]],
    ["a cycle", cyclic],
    ["a function", { f: () => 1 }],
    ["a symbol", { s: Symbol("s") }],
    ["a bigint", { n: 1n }],
    ["NaN", { n: NaN }],
    ["Infinity", { n: [-Infinity] }],
    ["a date", { d: new Date(0) }],
    ["a map", { m: new Map() }],
    ["a class instance", { c: new URL("file:///a") }],
    ["a class instance at the root", new URL("file:///a")],
    ["bytes", { b: new Uint8Array(1) }],
    ["a hole in a list", { l: [1, , 2] }], // oxlint-disable-line no-sparse-arrays
    ["undefined in a list", { l: [undefined] }],
    ["a value that turns itself into JSON", { v: { toJSON: () => "x" } }],
    [
      "a getter that throws",
      {
        get x() {
          throw new Error("no");
        },
      },
    ],
    [
      "a proxy that throws",
      {
        p: new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error("no");
            },
          },
        ),
      },
    ],
  ])("%s: no arguments that could be judged", (_what, args) => {
    expect(freezeJson(args)).toBeUndefined();
  });

  test("nothing ever throws; what is taken is the JSON of the arguments and can be taken again", () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSparseArray: true,
    });
    fc.assert(
      fc.property(anything, (args) => {
        const snapshot = freezeJson(args);
        if (snapshot === undefined) return;
        expect(JSON.parse(snapshot.json)).toEqual(JSON.parse(JSON.stringify(args)));
        expect(freezeJson(cloneJson(snapshot))?.json).toBe(snapshot.json);
      }),
      { numRuns: 500 },
    );
  });

  test("JSON objects are always taken, with every key and value", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (args) => {
        expect(JSON.parse(snapshotOf(args).json)).toEqual(JSON.parse(JSON.stringify(args)));
      }),
    );
  });
});

describe("canonical JSON", () => {
  test("sorts keys by their code units, at every depth", () => {
    expect(snapshotOf({ b: 1, a: { "\u{10000}": 1, "\uffff": 2, B: 3, "": 4 } }).json).toBe(
      '{"a":{"":4,"B":3,"\u{10000}":1,"\uffff":2},"b":1}',
    );
  });

  test("writes other values as JSON does", () => {
    expect(snapshotOf({ v: [null, true, -0, 1e21, "\u2028\ud800", []] }).json).toBe(
      '{"v":[null,true,0,1e+21,"\u2028\\ud800",[]]}',
    );
  });
});

describe("a digest", () => {
  test("is the lower-case hex SHA-256 of the canonical JSON", () => {
    expect(digest(snapshotOf({ to: "é€😀", body: "\ud800" }))).toBe(sha256('{"body":"\\ud800","to":"é€😀"}'));
    for (const args of [{}, { long: "x".repeat(10_000) }])
      expect(digest(snapshotOf(args))).toBe(sha256(JSON.stringify(args)));
  });

  test("does not depend on the order of keys, and differs for different values", () => {
    expect(digest(snapshotOf({ a: 1, b: 2 }))).toBe(digest(snapshotOf({ b: 2, a: 1 })));
    expect(digest(snapshotOf({ a: 1 }))).not.toBe(digest(snapshotOf({ a: "1" })));
  });
});

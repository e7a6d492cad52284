import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { evaluateCommand } from "../../src/evaluation/evaluate.js";
import { type Browser, brightness, openBrowser } from "../kit/browser.js";
import { makeFolder, toLines } from "./synthetic-cases.js";

const folder = makeFolder();
let browser: Browser;
let url: string;

const HOSTILE =
  '</pre><script>document.title = "taken over"</script><img src=x onerror="document.title = \'taken over\'">';

/** As caseLog writes them: forty of each label, some on the wrong side, with words that try to break out. */
function hostileLog(): object[] {
  return Array.from({ length: 80 }, (_, nth) => {
    const isRisky = nth % 2 === 0;
    const id = `case ${nth} ${HOSTILE}`;
    const tool = nth % 3 === 0 ? `delete_${"very_long_".repeat(20)}${HOSTILE}` : "send_mail";
    return {
      id,
      label: isRisky ? "risky" : "benign",
      call: { name: tool, args: { to: HOSTILE, id: "x".repeat(500) } },
      tool: { description: HOSTILE },
      transcript: [{ from: "user", text: `Please ${"w".repeat(300)} ${HOSTILE}` }],
      record: {
        id,
        label: `guard ${HOSTILE}`,
        messageId: `m${nth}`,
        toolCallId: "a",
        toolName: tool,
        outcome: "allowed",
        risk: ((nth * 37) % 100) / 100,
        threshold: 0.5,
      },
    };
  });
}

beforeAll(async () => {
  const report = join(folder.path, "report.html");
  const log = folder.write("log.jsonl", toLines(hostileLog()));
  const quiet = { print: () => undefined, printError: () => undefined, width: 100, isWatched: false };
  await evaluateCommand([log, "--wish", "30%", "--report", report], quiet);
  url = pathToFileURL(report).href;
  browser = await openBrowser();
}, 60_000);
afterAll(async () => {
  await browser?.close();
  folder.remove();
});

const open = (width: number, colorScheme: "light" | "dark") => browser.open(url, width, colorScheme);

describe("the report in a browser", () => {
  test.each([390, 1280])(
    "at %d pixels nothing sticks out sideways, and every plot has a size",
    async (width) => {
      const page = await open(width, "light");
      const seen = await page.evaluate(() => ({
        scroll: document.documentElement.scrollWidth,
        client: document.documentElement.clientWidth,
        plots: [...document.querySelectorAll("svg")].map(
          (svg) => svg.getBoundingClientRect().toJSON() as DOMRect,
        ),
        curves: document.querySelectorAll("svg polyline.curve").length,
        bars: document.querySelectorAll("svg rect.bar").length,
      }));
      expect(seen.scroll).toBe(seen.client);
      expect(seen.plots).toHaveLength(4);
      for (const { left, right, height } of seen.plots) {
        expect(left).toBeGreaterThanOrEqual(0);
        expect(right).toBeLessThanOrEqual(width);
        expect(height).toBeGreaterThan(100);
      }
      expect(seen.curves).toBeGreaterThanOrEqual(4);
      expect(seen.bars).toBeGreaterThan(10);
    },
  );

  test.each([
    ["light", 0.8, 1],
    ["dark", 0, 0.2],
  ] as const)(
    "in %s mode page, text and curves have colors that can be told apart",
    async (mode, least, most) => {
      const page = await open(390, mode);
      const { back, text, curve, label } = await page.evaluate(() => {
        const [body, line, words] = ["body", "polyline.curve", "svg text"].map((selector) =>
          getComputedStyle(document.querySelector(selector)!),
        );
        return {
          back: body!.backgroundColor,
          text: body!.color,
          curve: line!.stroke,
          label: words!.fill,
        };
      });
      expect(brightness(back)).toBeGreaterThanOrEqual(least);
      expect(brightness(back)).toBeLessThanOrEqual(most);
      for (const color of [text, curve, label])
        expect(Math.abs(brightness(color) - brightness(back))).toBeGreaterThan(0.25);
    },
  );

  test("the content of cases is text: nothing of it runs or becomes an element, and nothing is loaded", async () => {
    const page = await browser.newPage();
    const requests: string[] = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(url);
    expect(await page.title()).toBe("The recorded risks on 80 labeled cases");
    expect(await page.locator("script, img, link, iframe").count()).toBe(0);
    expect(await page.locator("pre").count()).toBe(10);
    expect(await page.locator("pre").first().textContent()).toContain("&lt;script&gt;document.title");
    expect(requests).toEqual([url]);
  });

  test("the advice comes first", async () => {
    const page = await open(390, "light");
    expect(await page.locator("h1 + .advice p").first().textContent()).toMatch(/^Set threshold: /);
  });
});

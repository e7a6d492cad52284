import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { drawPicture, PICTURE } from "../../examples/show/picture.js";
import { threeOutcomes } from "../../examples/three-outcomes.js";
import { type Browser, brightness, openBrowser } from "../kit/browser.js";

const calls = await threeOutcomes();

test("the README's picture is what the example does now: if not, run npm run picture", () => {
  expect(readFileSync(PICTURE, "utf8")).toBe(drawPicture(calls));
});

test("text of a run cannot become markup of the picture", () => {
  const svg = drawPicture([{ ...calls[0]!, call: `x"><script>&` }]);
  expect(svg).not.toContain("<script>");
  expect(svg).toContain("x&quot;&gt;&lt;script&gt;&amp;");
});

describe("the picture in a browser", () => {
  let browser: Browser;
  const url = pathToFileURL(PICTURE).href;
  beforeAll(async () => {
    browser = await openBrowser();
  }, 60_000);
  afterAll(() => browser?.close());

  test("says what became of each call, and no text sticks out or lies on another", async () => {
    const page = await browser.open(url, 900, "light");
    const texts = await page.evaluate(() =>
      [...document.querySelectorAll("text")].map((text) => {
        const { left, right, top, bottom } = text.getBoundingClientRect();
        return { words: text.textContent, left, right, top, bottom };
      }),
    );
    const words = texts.map((text) => text.words);
    for (const { verdict, call } of calls) expect(words).toEqual(expect.arrayContaining([verdict, call]));
    expect(texts.filter(({ left, right }) => left < 0 || right > 840 - 16)).toEqual([]);
    const overlapping = texts.flatMap((one, index) =>
      texts
        .slice(index + 1)
        .filter((two) => one.left < two.right && two.left < one.right)
        .filter((two) => Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 4)
        .map((two) => [one.words, two.words]),
    );
    expect(overlapping).toEqual([]);
  });

  test.each([
    ["light", 0.8, 1],
    ["dark", 0, 0.2],
  ] as const)("can be read in %s mode", async (mode, least, most) => {
    const page = await browser.open(url, 900, mode);
    const { back, texts } = await page.evaluate(() => ({
      back: getComputedStyle(document.querySelector("rect.page")!).fill,
      texts: [...document.querySelectorAll("text")].map((text) => getComputedStyle(text).fill),
    }));
    expect(brightness(back)).toBeGreaterThanOrEqual(least);
    expect(brightness(back)).toBeLessThanOrEqual(most);
    const ratio = (color: string) => {
      const [dark = 0, light = 0] = [brightness(color), brightness(back)].toSorted((a, b) => a - b);
      return light - dark;
    };
    expect(Math.min(...texts.map((color) => ratio(color)))).toBeGreaterThan(0.3);
  });

  test("is shown as an image of a page, as the README shows it", async () => {
    const page = await browser.newPage();
    await page.goto(url);
    const width = await page.evaluate(async (source) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      return image.naturalWidth;
    }, url);
    expect(width).toBe(840);
  });
});

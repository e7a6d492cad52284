import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Page } from "playwright-core";

/** A real browser with a profile of its own. */
export async function openBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "auto-mode-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env["CHROMIUM_PATH"] ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  return {
    newPage: () => context.newPage(),
    async open(url: string, width: number, colorScheme: "light" | "dark"): Promise<Page> {
      const page = await context.newPage();
      await page.setViewportSize({ width, height: 844 });
      await page.emulateMedia({ colorScheme });
      await page.goto(url);
      return page;
    },
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

export type Browser = Awaited<ReturnType<typeof openBrowser>>;

/** How bright a color is that the browser computed, from 0 to 1. */
export function brightness(color: string): number {
  const [red = 0, green = 0, blue = 0] = [...color.matchAll(/[\d.]+/g)].map(([part]) => Number(part));
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}

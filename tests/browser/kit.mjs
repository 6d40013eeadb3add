// What every walk through the page needs: Debian's Chromium, both sizes in both colours, and eyes for what may not be:
// words on the console, requests that leave the market, refused requests, and what axe-core finds.
//
//   import { browse } from "./kit.mjs";
//   await browse({ url, folder }, async ({ page, look, until, seen, step }) => { … });
//
// When the walk is over, `seen` is printed as one line of JSON.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import readline from "node:readline";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const sizes = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
export const colours = ["light", "dark"];

const HUNG_MS = 120_000; // what has not come by then does not come, however busy the machine

// Asked from outside, frame by frame: the page's own rules forbid the eval of waitForFunction.
async function until(page, holds, given) {
  const begun_ms = performance.now();
  while (!(await page.evaluate(holds, given))) {
    if (performance.now() - begun_ms > HUNG_MS) throw new Error(`it never was so: ${holds}`);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
  }
}

function watch(page, origin, seen) {
  page.on("console", (message) => seen.console.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => seen.console.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) seen.foreign.push(request.url());
  });
  page.on("response", (response) => {
    if (response.status() >= 400) seen.failed.push(`${response.status()} ${response.url()}`);
  });
}

// What is against the rules of accessibility on the page as it is now, one line each.
async function violations(context, page) {
  const session = await context.newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: `window.axe === undefined && (() => {${axe}})(); 0` });
  await session.detach();
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary?.split("\n")[1]?.trim() ?? ""}`));
}

// At rest: no skeleton stands in for anything, styles have settled, every image and face is there.
async function settle(page) {
  await until(page, () => document.querySelector(".skeleton") === null && document.fonts.status === "loaded");
  await page.evaluate(() => document.getAnimations()
    .filter((animation) => animation.effect?.getComputedTiming().endTime !== Infinity)
    .forEach((animation) => animation.finish()));
}

function parts(context, page, folder, seen) {
  const shoot = (name, options = {}) => page.screenshot({ path: path.join(folder, `${name}.png`), ...options });
  return {
    context,
    page,
    seen,
    until: (holds, given) => until(page, holds, given),
    shoot,
    // Looks at what is shown in both sizes and both colours: a picture NAME-SIZE-COLOUR.png of each; what is wider than
    // the window and what axe finds goes to seen.wide and seen.violations.
    async look(name, options = {}) {
      for (const [size, viewport] of Object.entries(sizes))
        for (const colorScheme of colours) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize(viewport);
          await settle(page);
          const which = `${name}-${size}-${colorScheme}`;
          // Charts follow their holder a frame later.
          await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
          const isWide = await page.evaluate(
            () => document.documentElement.scrollWidth > document.documentElement.clientWidth);
          if (isWide) seen.wide.push(which);
          // On a phone a table may scroll inside its card; a laptop has room for all of it.
          const isCut = await page.evaluate(
            () => [...document.querySelectorAll(".scroll")].some((each) => each.scrollWidth > each.clientWidth));
          if (isCut && size === "wide") seen.wide.push(`${which}: a table`);
          for (const violation of await violations(context, page)) seen.violations.push(`${which}: ${violation}`);
          // A window as high as what is shown: bars that stick to its edges stand where they belong.
          const height = await page.evaluate(() => document.documentElement.scrollHeight);
          await page.setViewportSize({ width: viewport.width, height: Math.max(viewport.height, height) });
          await shoot(which, options);
        }
      await page.setViewportSize(sizes.wide);
      await page.emulateMedia({ colorScheme: "light" });
    },
    // As a person sees it first: NAME-wide-light.png and NAME-phone-dark.png, of the window alone.
    async glance(name) {
      for (const [size, colorScheme] of [["phone", "dark"], ["wide", "light"]]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(sizes[size]);
        await page.evaluate(() => scrollTo(0, 0));
        await settle(page);
        await shoot(`${name}-${size}-${colorScheme}`);
      }
    },
    // Closes what was told at the edge, which also goes by itself: pictures are of what stays.
    async hush() {
      await page.evaluate(() => document.querySelectorAll(".toast button").forEach((button) => button.click()));
      await until(page, () => document.querySelector(".toast") === null);
    },
    // Tells the test that started this walk a word, and waits for its answer: a line.
    async step(word) {
      const lines = readline.createInterface({ input: process.stdin });
      const answer = new Promise((done) => lines.once("line", done));
      console.log(word);
      const line = await answer;
      lines.close();
      return line;
    },
    // What a market that stops, or a session that ends, is expected to leave behind.
    forgive() {
      seen.console.length = 0;
      seen.failed.length = 0;
    },
  };
}

export async function browse({ url, folder, size = "wide" }, walk) {
  const profile = mkdtempSync(path.join(tmpdir(), "souk-browser-"));
  const seen = { console: [], foreign: [], failed: [], violations: [], wide: [] };
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: "/usr/bin/chromium",
    headless: true,
    viewport: sizes[size],
    colorScheme: "light",
    permissions: ["clipboard-read", "clipboard-write"],
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  context.setDefaultTimeout(HUNG_MS);
  let page;
  try {
    page = context.pages()[0] ?? (await context.newPage());
    watch(page, new URL(url).origin, seen);
    await walk(parts(context, page, folder, seen));
    console.log(JSON.stringify(seen));
  } catch (failure) {
    // What was on the screen says more than the line that failed.
    await page?.screenshot({ path: path.join(folder, "failed.png"), fullPage: true }).catch(() => undefined);
    throw failure;
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

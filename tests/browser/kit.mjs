// Every walk uses this kit: it starts Debian's Chromium and looks at the page in both sizes and both colours. It collects console
// output, requests that leave the market, refused requests, and axe-core's findings; none may occur.
//
//   import { browse } from "./kit.mjs";
//   await browse({ url, folder }, async ({ page, look, until, seen, step }) => { … });
//
// At the end of the walk, `seen` is printed as one line of JSON. FOLDER/console.log has the console's output. FOLDER/ended.*
// have the last picture and the page's HTML; FOLDER/failed.* do after a failure. If SOUK_SCREENS names a folder, every look
// saves a picture there.
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import readline from "node:readline";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const sizes = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

const HUNG_MS = 120_000; // clock: a wait this long has hung, even on a busy machine
const LOOK_MS = 20; // clock: poll interval of `until`; scrolling and canvas painting raise no event
const pictures = process.env.SOUK_SCREENS;
// The other colour of a size differs in its contrasts alone: only those are checked there.
const allRules = {};
const contrasts = { runOnly: ["color-contrast"] };
const looks = [["wide", "dark", contrasts], ["wide", "light", allRules], ["phone", "light", contrasts], ["phone", "dark", allRules]];

// Polls inside the page, which is cheap. The page's CSP forbids the eval of waitForFunction.
async function until(page, holds, given) {
  const loop = `((holds, given) => new Promise((done, failed) => {
    const begun_ms = performance.now();
    const ask = () => {
      try {
        if (holds(given)) done(true);
        else if (performance.now() - begun_ms > ${HUNG_MS}) done(false);
        else setTimeout(ask, ${LOOK_MS}); // clock: poll interval
      } catch (failure) {
        failed(failure);
      }
    };
    ask();
  }))(${holds}, ${JSON.stringify(given)})`;
  if (!(await page.evaluate(loop))) throw new Error(`this never came true: ${holds}`);
}

function watch(page, origin, seen, folder) {
  const said = (line) => {
    seen.console.push(line);
    appendFileSync(path.join(folder, "console.log"), `${new Date().toISOString()} ${page.url()} ${line}\n`);
  };
  page.on("console", (message) => said(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) seen.foreign.push(request.url());
  });
  page.on("response", (response) => {
    if (response.status() >= 400) seen.failed.push(`${response.status()} ${response.url()}`);
  });
}

// Toasts vanish after some seconds: note each one as it appears.
function noteToasts() {
  window.toasts = [];
  new MutationObserver((records) => {
    for (const { addedNodes } of records)
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        const found = node.matches(".toast") ? [node] : node.querySelectorAll(".toast");
        found.forEach((toast) => window.toasts.push(toast.textContent));
      }
  }).observe(document, { childList: true, subtree: true });
}

// Lists the page's accessibility violations, one a line. Each document loads the half a megabyte of axe-core only once, and
// only violations come back.
async function violations(context, page, without, rules) {
  if (await page.evaluate(() => window.axe === undefined)) {
    const session = await context.newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: `(() => {${axe}})(); 0` });
    await session.detach();
  }
  const found = await page.evaluate(async ({ exclude, rules }) =>
    (await window.axe.run({ include: [["html"]], exclude }, { resultTypes: ["violations"], ...rules })).violations,
  { exclude: without.map((each) => [each]), rules });
  return found.flatMap((rule) =>
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
  const shoot = async (name, options = {}) => {
    if (pictures) await page.screenshot({ path: path.join(pictures, `${name}.png`), ...options });
  };
  return {
    context,
    page,
    seen,
    until: (holds, given) => until(page, holds, given),
    shoot,
    // Checks the page in both sizes and both colours. Overflow goes to seen.wide, axe-core's findings to seen.violations.
    // Saves a picture NAME-SIZE-COLOUR.png of each. `without`: selectors that axe-core skips.
    async look(name, { without = [], ...options } = {}) {
      for (const [size, colorScheme, rules] of looks) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(sizes[size]);
        await settle(page);
        const which = `${name}-${size}-${colorScheme}`;
        // Charts resize a frame after their container. A table may scroll inside its card on a phone, not on a laptop.
        const { isWide, isCut, height } = await page.evaluate(async () => {
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          const root = document.documentElement;
          return {
            isWide: root.scrollWidth > root.clientWidth,
            isCut: [...document.querySelectorAll(".scroll")].some((each) => each.scrollWidth > each.clientWidth),
            height: root.scrollHeight,
          };
        });
        if (isWide) seen.wide.push(which);
        if (isCut && size === "wide") seen.wide.push(`${which}: a table`);
        for (const violation of await violations(context, page, without, rules)) seen.violations.push(`${which}: ${violation}`);
        // Make the window as high as the page, so that sticky bars appear in their place.
        if (pictures) await page.setViewportSize({ ...sizes[size], height: Math.max(sizes[size].height, height) });
        await shoot(which, options);
      }
      await page.setViewportSize(sizes.wide);
      await page.emulateMedia({ colorScheme: "light" });
    },
    // As a person sees it first: NAME-wide-light.png and NAME-phone-dark.png, of the window alone.
    async glance(name) {
      if (!pictures) return;
      for (const [size, colorScheme] of [["phone", "dark"], ["wide", "light"]]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(sizes[size]);
        await page.evaluate(() => scrollTo(0, 0));
        await settle(page);
        await shoot(`${name}-${size}-${colorScheme}`);
      }
    },
    // Waits for a new toast with these words.
    toast: (words) => until(page, (wanted) => {
      const at = window.toasts.findIndex((told) => told.includes(wanted));
      if (at >= 0) window.toasts.splice(0, at + 1);
      return at >= 0;
    }, words),
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
    // Call this when the market is back: an "online" event makes the page reconnect at once.
    async back() {
      await page.evaluate(() => dispatchEvent(new Event("online")));
      await page.waitForSelector(".live.live");
    },
    // What a market that stops, or a session that ends, is expected to leave behind.
    forgive() {
      seen.console.length = 0;
      seen.failed.length = 0;
    },
  };
}

// Saves the findings, the page's HTML and a picture of the page.
async function keep(page, folder, name, seen) {
  writeFileSync(path.join(folder, `${name}.json`), JSON.stringify(seen, null, 1));
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: name === "failed" });
  writeFileSync(path.join(folder, `${name}.html`), await page.content());
}

// The headless shell needs a sixth less CPU, but has no notifications.
export const withWindows = "/usr/bin/chromium";
const withoutWindows = "/usr/bin/chromium-headless-shell";

export async function browse({ url, folder, size = "wide", reducedMotion = "reduce", browser = withoutWindows }, walk) {
  const profile = mkdtempSync(path.join(tmpdir(), "souk-browser-"));
  const seen = { console: [], foreign: [], failed: [], violations: [], wide: [] };
  if (pictures) mkdirSync(pictures, { recursive: true });
  // A test ends its walk early by SIGTERM: the walk then fails and saves its files.
  const told = new Promise((_, failed) => process.once("SIGTERM", () => failed(new Error("told to end"))));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: browser,
    headless: true,
    handleSIGTERM: false,
    viewport: sizes[size],
    colorScheme: "light",
    reducedMotion, // animation makes pictures differ and costs CPU
    permissions: ["clipboard-read", "clipboard-write"],
    // Fewer processes: each costs a start, and messages for every frame.
    args: ["--no-sandbox", "--disable-gpu", "--in-process-gpu", "--disable-software-rasterizer",
           "--disable-site-isolation-trials", "--disable-extensions", "--disable-breakpad", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
  context.setDefaultTimeout(HUNG_MS);
  let page;
  try {
    page = context.pages()[0] ?? (await context.newPage());
    watch(page, new URL(url).origin, seen, folder);
    await page.addInitScript(noteToasts);
    await Promise.race([walk(parts(context, page, folder, seen)), told]);
    await keep(page, folder, "ended", seen);
    console.log(JSON.stringify(seen));
  } catch (failure) {
    // What was on the screen says more than the line that failed.
    if (page) await keep(page, folder, "failed", seen).catch((lost) => console.error(`cannot save the failed page: ${lost.message}`));
    throw failure;
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

// Every walk through the page uses this: it starts Debian's Chromium, looks in both sizes and both colours, and collects what must
// not be there: words on the console, requests that leave the market, refused requests, and what axe-core finds.
//
//   import { browse } from "./kit.mjs";
//   await browse({ url, folder }, async ({ page, look, until, seen, step }) => { … });
//
// When the walk is over, `seen` is printed as one line of JSON. The console's words are in FOLDER/console.log, the last
// picture and the page's HTML in FOLDER/ended.* or, where the walk failed, in FOLDER/failed.*. Pictures of every look are
// taken where SOUK_SCREENS names a folder for them.
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import readline from "node:readline";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const sizes = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
export const colours = ["light", "dark"];

const HUNG_MS = 120_000; // clock: what has not come by then does not come, however busy the machine
const LOOK_MS = 20; // clock: how often `until` looks; no event tells of a scrolled element or a painted canvas
const pictures = process.env.SOUK_SCREENS;
// Each rule of accessibility is asked in both sizes and in both colours. Pictures are of all four.
const looks = pictures ? Object.keys(sizes).flatMap((size) => colours.map((colour) => [size, colour]))
  : [["wide", "light"], ["phone", "dark"]];

// Waits inside the page, which costs nothing outside it. The page's own rules forbid the eval of waitForFunction.
async function until(page, holds, given) {
  const loop = `((holds, given) => new Promise((done, failed) => {
    const begun_ms = performance.now();
    const ask = () => {
      try {
        if (holds(given)) done(true);
        else if (performance.now() - begun_ms > ${HUNG_MS}) done(false);
        else setTimeout(ask, ${LOOK_MS}); // clock: between two looks
      } catch (failure) {
        failed(failure);
      }
    };
    ask();
  }))(${holds}, ${JSON.stringify(given)})`;
  if (!(await page.evaluate(loop))) throw new Error(`it never was so: ${holds}`);
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

// Words at the edge go by themselves after some seconds: they are noted as they come.
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

// What is against the rules of accessibility on the page as it is now, one line each. Its half a megabyte is sent once a document,
// and of what it answers the violations alone come here.
async function violations(context, page, without) {
  if (await page.evaluate(() => window.axe === undefined)) {
    const session = await context.newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: `(() => {${axe}})(); 0` });
    await session.detach();
  }
  const found = await page.evaluate(async (exclude) =>
    (await window.axe.run({ include: [["html"]], exclude }, { resultTypes: ["violations"] })).violations, without.map((each) => [each]));
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
    // Looks at what is shown in both sizes and both colours: what is wider than the window and what axe finds goes to
    // seen.wide and seen.violations; a picture NAME-SIZE-COLOUR.png of each. `without`: what axe need not read again.
    async look(name, { without = [], ...options } = {}) {
      for (const [size, colorScheme] of looks) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize(sizes[size]);
        await settle(page);
        const which = `${name}-${size}-${colorScheme}`;
        // Charts follow their holder a frame later. On a phone a table may scroll inside its card; a laptop has room for
        // all of it.
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
        for (const violation of await violations(context, page, without)) seen.violations.push(`${which}: ${violation}`);
        // A window as high as what is shown: bars that stick to its edges stand where they belong.
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
    // Waits for words at the edge that no earlier wait was for.
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
    // The market is there again: the page is told that there is a network, as a browser does, and tries at once.
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

// The state at the end: what was seen, the page itself, and a picture of it.
async function keep(page, folder, name, seen) {
  writeFileSync(path.join(folder, `${name}.json`), JSON.stringify(seen, null, 1));
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: name === "failed" });
  writeFileSync(path.join(folder, `${name}.html`), await page.content());
}

// The browser that has no windows at all takes a sixth less of the CPU. It has no notifications either.
export const withWindows = "/usr/bin/chromium";
const withoutWindows = "/usr/bin/chromium-headless-shell";

export async function browse({ url, folder, size = "wide", reducedMotion = "reduce", browser = withoutWindows }, walk) {
  const profile = mkdtempSync(path.join(tmpdir(), "souk-browser-"));
  const seen = { console: [], foreign: [], failed: [], violations: [], wide: [] };
  if (pictures) mkdirSync(pictures, { recursive: true });
  // The test ends a walk that it is done with: as a failure, with all that is kept of one.
  const told = new Promise((_, failed) => process.once("SIGTERM", () => failed(new Error("told to end"))));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: browser,
    headless: true,
    handleSIGTERM: false,
    viewport: sizes[size],
    colorScheme: "light",
    reducedMotion, // pictures of what moves differ, and each frame of it costs
    permissions: ["clipboard-read", "clipboard-write"],
    // Few processes: each costs its start, and every frame the words between them.
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
    if (page) await keep(page, folder, "failed", seen).catch((lost) => console.error(`no picture of it: ${lost.message}`));
    throw failure;
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

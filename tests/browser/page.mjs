// Drives the page as a person would, in Debian's Chromium; prints "ready" when the page waits for a
// job, and then one JSON object of what it saw.
//
//   node page.mjs URL_WITH_CODE SCREENSHOT_FOLDER
//
// The page signs in by the code, shows the running job live until it has succeeded, and shows
// machines and wallet. Nothing may be logged to the console and no request may leave the market.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";

const [url, folder] = process.argv.slice(2);
const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");

// Asked from outside, frame by frame: the page's own rules forbid the eval of waitForFunction.
async function until(page, holds) {
  while (!(await page.evaluate(holds)))
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(done)));
}

const profile = mkdtempSync(path.join(tmpdir(), "souk-browser-"));
const seen = { console: [], foreign: [], failed: [] };
const context = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium",
  headless: true,
  viewport: { width: 1200, height: 1500 },
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = context.pages()[0] ?? (await context.newPage());
  const origin = new URL(url).origin;
  page.on("console", (message) => seen.console.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => seen.console.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) seen.foreign.push(request.url());
  });
  page.on("response", (response) => {
    if (response.status() >= 400) seen.failed.push(`${response.status()} ${response.url()}`);
  });

  await page.goto(url);
  await page.waitForSelector("text=Your jobs");
  seen.address = page.url();
  seen.title = await page.title();
  console.log("ready");
  const job = page.locator("article .state");
  await page.waitForSelector("article .state.running");
  await until(page, () => document.querySelectorAll(".lane").length >= 2);
  await page.screenshot({ path: path.join(folder, "running.png"), fullPage: true });
  await page.waitForSelector("article .state.succeeded", { timeout: 90_000 });
  seen.state = await job.textContent();
  seen.curve = await page.locator(".curve").getAttribute("aria-label");
  seen.curvePixels = await page.evaluate(() => {
    const canvas = document.querySelector(".curve canvas");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let painted = 0;
    for (let i = 3; i < data.length; i += 4) painted += data[i] > 0 ? 1 : 0;
    return painted;
  });
  console.log("succeeded"); // now a machine's offer is closed
  await page.waitForSelector(".state.closed");
  seen.closed = await page.locator("tr:has(.state.closed)").allTextContents();
  seen.machines = await page.locator("section[aria-labelledby=machines] tbody tr").count();
  seen.entries = await page.locator("section[aria-labelledby=wallet] tbody tr").count();
  seen.wallet = await page.locator("section[aria-labelledby=wallet] .figure").allTextContents();
  await page.screenshot({ path: path.join(folder, "succeeded.png"), fullPage: true });

  await page.setViewportSize({ width: 390, height: 844 });
  // The curve follows its holder a frame later.
  await until(page,
    () => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
  await page.screenshot({ path: path.join(folder, "phone.png"), fullPage: true });

  await page.reload();
  await page.waitForSelector("text=Your jobs");
  // A request under way while the session ends may be refused; until here none was.
  page.removeAllListeners("console");
  page.removeAllListeners("response");
  await page.click("text=Sign out");
  await page.waitForSelector("form.sign-in");
  await page.screenshot({ path: path.join(folder, "welcome.png") });
  console.log(JSON.stringify(seen));
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}

// Signs up, out and in again as a person would; prints one JSON object of what it saw.
//
//   node sign_in.mjs URL SCREENSHOT_FOLDER TOKEN
//
// TOKEN is another account's.
import { createRequire } from "node:module";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";

const [url, folder, token] = process.argv.slice(2);
const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const profile = mkdtempSync(path.join(tmpdir(), "souk-browser-"));
const seen = { errors: [], foreign: [] };
const context = await chromium.launchPersistentContext(profile, {
  executablePath: "/usr/bin/chromium",
  headless: true,
  viewport: { width: 900, height: 900 },
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = context.pages()[0] ?? (await context.newPage());
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) seen.foreign.push(request.url());
  });
  const fill = async (name, password) => {
    await page.fill("input[name=name]", name);
    await page.fill("input[name=password]", password);
    await page.click("button[type=submit]");
  };
  const refusal = async () => {
    await page.waitForSelector("form .problem");
    return page.locator("form .problem").textContent();
  };

  await page.goto(url);
  await page.waitForSelector("form.sign-in");
  await page.screenshot({ path: path.join(folder, "sign-in.png") });
  await fill("nobody-here", "certainly not it");
  seen.unknown = await refusal();

  await page.click("button.link");
  seen.wayOnce = await page.locator("#way").textContent();
  await fill("ada", "short");
  seen.isShortStopped = await page.evaluate(
    () => !document.querySelector("input[name=password]").checkValidity());
  await fill("ada", "password123");
  seen.common = await refusal();
  await page.screenshot({ path: path.join(folder, "sign-up.png") });
  await fill("ada", "correct horse battery");
  await page.waitForSelector("text=Your jobs");
  seen.name = await page.locator("header strong").textContent();
  const cookie = (await context.cookies()).find((candidate) => candidate.name === "souk_session");
  seen.cookie = { httpOnly: cookie.httpOnly, sameSite: cookie.sameSite };
  seen.scriptsSee = await page.evaluate(() => document.cookie);

  await page.click("text=Lend a machine");
  await page.waitForSelector(".lend pre");
  seen.lend = await page.locator(".lend pre").textContent();
  await page.screenshot({ path: path.join(folder, "lend.png") });

  const followLink = async (isWanted) => {
    page.once("dialog", (dialog) => {
      seen.asked = dialog.message();
      return isWanted ? dialog.accept() : dialog.dismiss();
    });
    const made = await fetch(`${url}/v1/account/page-codes`, {
      method: "POST", body: "{}", headers: { Authorization: `Bearer ${token}` } });
    await page.goto("about:blank");
    await page.goto(`${url}/#code=${(await made.json()).code}`);
    await page.waitForSelector("text=Your jobs");
    return page.locator("header strong").textContent();
  };
  seen.nameAfterNo = await followLink(false);
  seen.nameAfterYes = await followLink(true);
  await page.click("text=Sign out");
  await page.waitForSelector("form.sign-in");
  await page.reload();
  await page.waitForSelector("form.sign-in");
  await fill("ada", "correct horse battery");
  await page.waitForSelector("text=Your jobs");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.click("text=Sign out");
  await page.waitForSelector("form.sign-in");
  seen.isWithinPhone = await page.evaluate(
    () => document.documentElement.scrollWidth <= document.documentElement.clientWidth);
  await page.screenshot({ path: path.join(folder, "sign-in-phone.png") });
  console.log(JSON.stringify(seen));
} finally {
  await context.close();
  rmSync(profile, { recursive: true, force: true });
}

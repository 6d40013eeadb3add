// The market screen: filters, sort, prices with their reasons, round trips; the market restarts in between.
//
//   node market.mjs URL_WITH_CODE SCREENSHOT_FOLDER
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, step, forgive }) => {
  const names = () => page.locator(".machines tbody th").allTextContents();
  const rows = (count) => until((wanted) => document.querySelectorAll(".machines tbody tr").length === wanted, count);
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/market']");
  await rows(3);

  await page.click(".machines thead button:has-text('machine')");
  await page.waitForSelector(".machines th[aria-sort=ascending]");
  seen.sorted = await names();
  await page.fill("[name=name]", "lender-1");
  await rows(1);
  seen.filtered = await names();
  seen.address = page.url();
  await page.fill("[name=name]", "<script>alert(1)</script>");
  await page.waitForSelector(".machines .empty:has-text('No machine is like that')");
  await page.fill("[name=name]", "");
  await page.selectOption("select[name=cores]", "32");
  await page.waitForSelector(".machines .empty");
  await page.selectOption("select[name=cores]", "");
  await page.selectOption("select[name=state]", "free");
  await rows(3);
  await page.reload(); // the address keeps the filters
  await page.waitForSelector("select[name=state]");
  seen.stateAfterReload = await page.inputValue("select[name=state]");
  await page.fill("[name=name]", "lender-");
  await rows(2);
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  await step("start");
  await page.waitForSelector(".live.live");
  await until(() => document.querySelector(".note.bad") === null);
  forgive();
  seen.typedAfterRestart = await page.inputValue("[name=name]");
  await page.click("button:has-text('Show all')");
  await rows(3);

  await page.waitForSelector(".story pre");
  seen.running = await page.locator(".prices tr.selected .state").textContent();
  seen.story = await page.locator(".story pre").textContent();
  await page.click(".prices tr:has(.state.forecast) button >> nth=0");
  await page.waitForSelector(".prices tr.selected .state.forecast");
  await page.click(".prices [role=tab]:has-text('GiB of memory')");
  await until(() => document.querySelector(".story pre")?.textContent.startsWith("ram"));
  seen.memory = await page.locator(".prices .chart").getAttribute("aria-label");
  await page.click(".prices [role=tab]:has-text('Core')");
  await page.waitForSelector(".prices .chart[aria-label*='Core']");
  seen.rings = await page.locator(".rings svg").getAttribute("aria-label");
  seen.dots = await page.locator(".rings .dot").count();
  seen.figures = await page.locator(".figures").first().textContent();
  await page.waitForSelector(".machines .state.free >> nth=2");
  await look("market");
});

// The market screen: filters, sort, prices with their reasons, round trips; the market restarts in between.
//
//   node market.mjs URL_WITH_CODE FOLDER
import { browse, sizes } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ context, page, seen, until, look, glance, step, forgive, back }) => {
  const names = () => page.locator(".machines tbody th").allTextContents();
  const rows = (count) => until((wanted) => document.querySelectorAll(".machines tbody tr").length === wanted, count);
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/market']");
  await rows(3);

  // Sort by a column, by mouse and by keys; the address keeps the order. Unit tests cover each column's order and each filter.
  const head = page.locator(".machines thead button:text-is('cores free')");
  await head.click();
  await page.waitForSelector("th[aria-sort]:has-text('cores free')");
  seen.way = await page.locator("th[aria-sort]").getAttribute("aria-sort");
  seen.sorted = await names();
  await head.press("Enter");
  await page.waitForSelector(`th[aria-sort=${seen.way === "ascending" ? "descending" : "ascending"}]`);
  seen.turned = await names();
  await page.click(".machines thead button:has-text('machine')");
  await page.waitForSelector(".machines th[aria-sort=ascending]");
  seen.sortAddress = page.url();

  // Every filter, alone.
  const filtered = async (name, value, count) => {
    await page.selectOption(`select[name=${name}]`, value);
    if (count) await rows(count);
    else await page.waitForSelector(".machines .empty:has-text('No machine is like that')");
    const found = count ? await names() : [];
    await page.selectOption(`select[name=${name}]`, "");
    await rows(3);
    return found;
  };
  seen.spare = await filtered("spare", "yes", 1);
  seen.paused = await filtered("state", "paused", 1);
  seen.free = await filtered("state", "free", 2);
  await filtered("memory", "2", 2); // nothing of a paused one is free
  await page.fill("[name=name]", "lender-1");
  await rows(1);
  seen.filtered = await names();
  seen.address = page.url();
  await page.fill("[name=name]", "<script>alert(1)</script>");
  await page.waitForSelector(".machines .empty:has-text('No machine is like that')");

  // Who is sent the address sees the same.
  await page.fill("[name=name]", "lender");
  await page.click(".machines thead button:has-text('speed')");
  await page.waitForSelector("th[aria-sort=descending]");
  const other = await context.newPage();
  await other.goto(page.url());
  await other.waitForSelector(".machines tbody tr");
  seen.shared = {
    name: await other.inputValue("[name=name]"), names: await other.locator(".machines tbody th").allTextContents(),
    way: await other.locator(".machines th[aria-sort]").textContent(), here: await names(),
  };
  await other.close();
  await page.reload();
  await page.waitForSelector("th[aria-sort=descending]");
  seen.nameAfterReload = await page.inputValue("[name=name]");
  await page.fill("[name=name]", "lender-");
  await rows(2);
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  await step("start");
  await back();
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
  await page.waitForSelector(".machines .spare");
  await page.waitForSelector(".machines .until"); // the machine says it again to a market that restarted
  seen.until = await page.locator(".machines .until").textContent();
  await page.waitForSelector(".machines .state.free >> nth=1");
  await look("market");
  await glance("market-first");

  // On a phone rows have two lines, nothing scrolls sideways, and a choice sorts.
  await page.setViewportSize(sizes.phone);
  await page.waitForSelector("select[name=sort]");
  seen.sideways = await page.evaluate(() =>
    [...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel));
  seen.lines = await page.evaluate(() => [...document.querySelectorAll(".machines tbody tr")].map((row) => {
    const [name, state, facts] = [...row.children].map((cell) => cell.getBoundingClientRect());
    return name.bottom <= facts.top + 1 && state.bottom <= facts.top + 1 && facts.left <= name.left + 1 && row.children.length === 3;
  }));
  await page.selectOption("select[name=sort]", "name");
  await until(() => location.hash.includes("sort=name"));
  // The address changes before the rows do.
  await until(() => {
    const shown = [...document.querySelectorAll(".machines tbody th")].map((cell) => cell.textContent);
    return shown.length === 3 && shown.every((name, at) => at === 0 || shown[at - 1] <= name);
  });
  seen.onPhone = await names();
});

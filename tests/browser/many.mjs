// Many of each: a statement of thousands of entries, and an operator's accounts by the page and by name.
//
//   node many.mjs URL_WITH_CODE FOLDER OPERATORS_URL_WITH_CODE
import { readFileSync } from "node:fs";
import { browse } from "./kit.mjs";

const [url, folder, operatorsUrl] = process.argv.slice(2);
const SHOWN_MIN = 3000;

await browse({ url, folder }, async ({ page, seen, until, look, step }) => {
  const shown = () => page.evaluate(() => {
    const words = document.querySelector(".statement .row .faint")?.textContent ?? "";
    return Number(words.replace(/\D/g, "") || 0);
  });

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.waitForSelector(".columns .lines li");
  await look("dashboard-many");
  await page.click("nav a[href='#/wallet']");
  await page.waitForSelector(".statement tbody tr");
  seen.first = await page.locator(".statement tbody tr").count();
  for (let before = await shown(); before < SHOWN_MIN; before = await shown()) {
    await page.click("button:has-text('Show older entries')");
    await until((count) => Number(document.querySelector(".statement .row .faint").textContent.replace(/\D/g, "")) > count, before);
  }
  seen.shown = await shown();
  seen.drawn = await page.locator(".statement tbody tr:not(.gap)").count();
  await page.evaluate(() => document.querySelector(".statement .scroll").scrollTo(0, 100_000));
  await until((count) => {
    const row = [...document.querySelectorAll(".statement tbody tr:not(.gap)")].at(-1);
    return Number(row.getAttribute("aria-rowindex")) > count;
  }, 2000);
  await look("wallet-many");

  // When something happens the newest are read again, and what was read before is not.
  const again = page.waitForResponse((response) => response.url().includes("/v1/account/entries?limit"));
  await step("job");
  seen.readAgain = (await (await again).json()).items.length;
  await until(() => document.querySelector(".statement .scroll.virtual") !== null);
  seen.shownAfter = await shown();
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("button:has-text('CSV')")]);
  seen.lines = readFileSync(await download.path(), "utf8").trimEnd().split("\n").length - 1;

  await page.click("[aria-label='Sign out']");
  await page.waitForSelector("form.sign-in");
  await page.goto("about:blank");
  await page.goto(operatorsUrl);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/operator']");
  await page.waitForSelector(".accounts tbody tr");
  seen.accounts = await page.locator(".accounts tbody tr").count();
  seen.newest = await page.locator(".accounts tbody th").first().textContent();
  await page.click("button:has-text('Show more accounts')");
  await until((count) => document.querySelectorAll(".accounts tbody tr").length > count, seen.accounts);
  seen.moreAccounts = await page.locator(".accounts tbody tr").count();
  await page.fill("input[name=find]", "lender-9");
  await until(() => [...document.querySelectorAll(".accounts tbody th")].every((name) => name.textContent.startsWith("lender-9"))
    && document.querySelectorAll(".accounts tbody th").length > 0);
  seen.found = await page.locator(".accounts tbody th").allTextContents();
});

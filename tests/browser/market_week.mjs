// Looks at the prices of a market that has been there for more than a week.
//
//   node market_week.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

// What is not among today's.
const before = ({ last_7_days, slots }) => last_7_days.filter(({ slot }) => !slots.some((each) => each.slot === slot));

await browse({ url, folder }, async ({ page, seen, until, look }) => {
  // As the page itself was told last: a slot may end meanwhile.
  page.on("response", async (response) => {
    if (response.status() === 200 && new URL(response.url()).pathname === "/v1/prices") seen.prices = await response.json();
  });
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.evaluate(() => (location.hash = "/market"));
  await page.waitForSelector(".prices .chart canvas");
  seen.chart = await page.locator(".prices .chart").getAttribute("aria-label");
  await page.waitForSelector(".story pre");
  await look("market-week");

  // All of the past, the newest first, and how one of its prices came about.
  await page.click(".past summary");
  const past = page.locator(".past tbody tr");
  await until((count) => document.querySelectorAll(".past tbody tr").length === count, before(seen.prices).length);
  seen.past = await past.evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  await past.nth(5).locator("button").click();
  await page.waitForSelector(".past tr.selected");
  await until(() => document.querySelector(".story pre")?.textContent.includes("wanted"));
  seen.story = await page.locator(".story pre").textContent();
  await look("market-week-past");
});

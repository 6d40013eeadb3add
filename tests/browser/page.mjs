// Follows jobs live: signs in by the code in the address, watches one job run and one succeed, and checks the market and
// the wallet.
//
//   node page.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, glance, shoot, step, forgive }) => {
  const visit = async (name) => {
    await page.click(`nav a[href='#/${name}']`);
    await page.waitForSelector(`nav a[href='#/${name}'][aria-current=page]`);
    await page.waitForSelector("h1");
  };
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  seen.address = page.url();
  seen.title = await page.title();
  await visit("jobs");
  await step("ready"); // the job is submitted
  await page.click(".jobs a:has-text('digits')");
  await page.waitForSelector("article .state.running");
  await until(() => document.querySelectorAll(".strip").length >= 2);
  await shoot("running");
  await page.click("nav a[href='#/dashboard']");
  await page.waitForSelector(".events li");
  await shoot("dashboard-running", { fullPage: true });
  await visit("jobs");
  await step("brief"); // the test cancels it and submits a short job
  await page.waitForSelector(".jobs tr:has-text('brief') .state.succeeded");
  await page.waitForSelector(".jobs tr:has-text('digits') .state.cancelled");
  await page.click(".jobs a:has-text('brief')");
  await page.waitForSelector("article h1 .state.succeeded"); // what was known of it stands there until it is read
  seen.state = await page.locator("article h1 .state").textContent();
  await page.waitForSelector(".chart[aria-label*=loss]");
  seen.curve = await page.locator(".chart").first().getAttribute("aria-label");
  seen.curvePixels = await page.evaluate(() => {
    const canvas = document.querySelector(".chart canvas");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let painted = 0;
    for (let i = 3; i < data.length; i += 4) painted += data[i] > 0 ? 1 : 0;
    return painted;
  });
  await look("job-ended");

  await visit("market");
  await step("succeeded"); // a machine's offer is closed
  await page.waitForSelector(".state.closed");
  seen.closed = await page.locator("tr:has(.state.closed)").allTextContents();
  seen.machines = await page.locator(".machines tbody tr").count();
  await visit("wallet");
  await page.waitForSelector(".statement td:has-text('given back')"); // the last of the job's
  seen.entries = await page.locator(".statement tbody tr").count();
  seen.wallet = await page.locator(".figure").allTextContents();
  await visit("dashboard");
  await page.waitForSelector(".events li");
  seen.events = await page.locator(".events li").allTextContents();
  await look("dashboard");

  await page.reload();
  await page.waitForSelector("h1:text('Dashboard')");
  const watched = { console: [...seen.console], failed: [...seen.failed] };
  await page.click("[aria-label='Sign out']");
  await page.waitForSelector("form.sign-in");
  // A request under way while the session ends may be refused; until here none was.
  forgive();

  await page.goto("about:blank");
  await page.goto(await step("lender")); // an address that signs in the lender
  await page.waitForSelector(".figure:has-text('earn now') small:has-text('in the last hour')");
  await page.waitForSelector("text=My machines");
  await until(() => document.querySelectorAll(".columns .lane").length === 2);
  seen.lender = await page.locator(".figure").allTextContents();
  await look("dashboard-lender");
  // A job of the lender's own, on its own machine: what it earns and costs now, by the tick.
  await step("own job");
  await page.waitForSelector(".columns .lines .state.running");
  for (const label of ["machines earn now", "jobs cost now"])
    await until((wanted) => [...document.querySelectorAll(".figure")]
      .some((figure) => figure.textContent.includes(wanted) && !figure.querySelector("strong").textContent.match(/^(0\.00|–)$/)), label);
  seen.now = await page.locator(".figure").allTextContents();
  await glance("dashboard-top");
  await step("enough"); // the test cancels it
  await page.waitForSelector(".columns .lines .state.cancelled");
  await page.click("nav a[href='#/lend']");
  await page.waitForSelector("h1:text('Lend')");
  await page.waitForSelector("button:has-text('Pause now')");
  await look("lend-machines");
  await page.click("tr:has-text('lender-1') button:has-text('Pause now')");
  await page.waitForSelector("tr:has-text('lender-1') button:has-text('Resume')");
  await page.click("tr:has-text('lender-1') button:has-text('Resume')");
  await page.waitForSelector("tr:has-text('lender-1') .state.free");
  seen.console.unshift(...watched.console);
  seen.failed.unshift(...watched.failed);
});

// Many jobs, a page at a time, and one job with hundreds of leases.
//
//   node jobs_many.mjs URL_WITH_CODE FOLDER JOBS
import { browse } from "./kit.mjs";

const [url, folder, count] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, step, back }) => {
  const names = () => page.locator(".jobs tbody .name").allTextContents();
  const tab = (name) => page.click(`[role=tab]:has-text('${name}')`);
  // Two hundred workers' reports may be more than a busy browser takes: the market cuts such a stream, the page begins anew.
  const CUT = "ERR_INCOMPLETE_CHUNKED_ENCODING";
  seen.cuts = 0;
  page.on("requestfailed", (request) => {
    if (request.url().endsWith("/v1/events") && request.failure()?.errorText.includes(CUT)) seen.cuts++;
  });

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.evaluate(() => (location.hash = "/jobs"));
  await page.waitForSelector(".jobs tbody tr");
  const all = new Set(await names());
  seen.pages = 1;
  while ((await page.locator("a:has-text('Older jobs')").count()) > 0) {
    const first = (await names())[0];
    await page.click("a:has-text('Older jobs')");
    await until((before) => ![before, undefined].includes(document.querySelector(".jobs tbody .name")?.textContent), first);
    (await names()).forEach((name) => all.add(name));
    seen.pages++;
  }
  seen.jobs = [...all];
  // A page stays where it is when one comes back to it.
  seen.oldest = await names();
  await page.click(".jobs tbody a >> nth=0");
  await page.waitForSelector("h1 .state.pending");
  await page.goBack();
  await until((name) => document.querySelector(".jobs tbody .name")?.textContent === name, seen.oldest[0]);
  await page.click("a:has-text('Newest jobs')");
  await until((wanted) => document.querySelector(".jobs tbody .name")?.textContent === wanted, `many-${count - 1}`);

  // Searched for by the market, among all of them; what is asked for stands in the address.
  await page.fill("input[name=search]", "MANY-17");
  await until(() => document.querySelector(".jobs tbody .name")?.textContent === "many-17");
  await page.fill("input[name=search]", "any-1");
  const isFound = () => {
    const shown = document.querySelectorAll(".jobs tbody .name");
    return shown.length === 11 && shown[0].textContent === "many-19";
  };
  await until(isFound);
  seen.found = await names();
  await page.reload();
  await until(isFound);
  await page.fill("input[name=search]", "<b>nobody</b>");
  await page.waitForSelector("text=No job has “<b>nobody</b>” in its name.");
  await look("jobs-none-found");
  await page.fill("input[name=search]", "");
  await until((wanted) => document.querySelector(".jobs tbody .name")?.textContent === wanted, `many-${count - 1}`);

  // It is live: a job that is submitted elsewhere comes to the top.
  const big = await step("big");
  await until(() => document.querySelector(".jobs tbody .name")?.textContent === "big");
  await page.click(".jobs tbody a >> nth=0");
  await page.waitForSelector("h1 .state.running");
  const leases = Number(await step("leased"));
  await until((wanted) => document.querySelectorAll("canvas.strip").length === wanted, leases - 1);
  await tab("Workers");
  await page.waitForSelector(`table[aria-label^='Who works'][aria-rowcount='${leases + 1}']`);
  seen.workerRows = await page.locator("[role=tabpanel] tbody tr:not(.gap)").count();
  await look("job-workers-long");
  await tab("Bill");
  await page.waitForSelector(`table[aria-label=Bill][aria-rowcount='${leases + 1}']`);
  seen.billRows = await page.locator("[role=tabpanel] tbody tr:not(.gap)").count();
  const shown = () => page.locator("[role=tabpanel] tbody tr:not(.gap) th").allTextContents();
  const lines = new Set(await shown());
  const height = await page.evaluate(() => document.querySelector(".scroll.virtual").scrollHeight);
  for (let top = 0; top < height; top += 300) {
    await page.evaluate((to) => (document.querySelector(".scroll.virtual").scrollTop = to), top);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    (await shown()).forEach((name) => lines.add(name));
  }
  seen.billed = [...lines];
  await look("job-bill-long");
  seen.big = big;
  // What happens is still told, also after a cut; each cut has one line on the console, and nothing else has.
  await step("cancel");
  await page.waitForSelector("h1 .state.cancelled");
  await back();
  for (let cut = 0; cut < seen.cuts; cut++) {
    const at = seen.console.findIndex((line) => line.includes(CUT));
    if (at >= 0) seen.console.splice(at, 1);
  }
});

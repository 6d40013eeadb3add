// Jobs that do not end well: one that fails, one that diverges, one that loses a machine, lets another go and is
// cancelled; and the same again with changes. The market restarts in between.
//
//   node jobs_ends.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, hush, step, forgive, toast, back }) => {
  const posts = [];
  page.on("request", (request) => request.method() === "POST" && posts.push(new URL(request.url()).pathname));
  const visit = async (job, state) => {
    await page.evaluate((where) => (location.hash = where), `/jobs/${job}`);
    await page.waitForSelector(`h1 .state.${state}`);
  };
  const tab = (name) => page.click(`[role=tab]:has-text('${name}')`);
  const text = (selector) => page.locator(selector).textContent();

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.evaluate(() => (location.hash = "/jobs"));
  await page.waitForSelector("text=No job yet");
  await look("jobs-empty");
  await page.click("main a:has-text('Train a model')");
  await page.waitForSelector("h1:text('Train')");

  // One whose program fails: why, what it printed, what it cost.
  seen.failedJob = await step("fail");
  await visit(seen.failedJob, "failed");
  await page.waitForSelector(".ending");
  seen.wrong = await text(".ending");
  await look("job-failed");
  await page.click(".ending a:has-text('Its log')");
  await page.waitForSelector(".log:has-text('cannot <b>open</b> it')");
  seen.failedLog = await text(".log");
  await tab("Overview");
  await page.click(".ending a:has-text('Its bill')");
  await page.waitForSelector(".figure");
  seen.failedBill = await text("[role=tabpanel] .figures");

  // One whose loss grew beyond all numbers: what to change, and its last good model.
  seen.divergedJob = await step("diverge");
  await visit(seen.divergedJob, "failed");
  await page.waitForSelector(".ending:has-text('diverged')");
  seen.diverged = await text(".ending");
  await page.waitForSelector(".throughput > *"); // the faster the machines, the shorter the curve: it may have no second point
  await look("job-diverged");
  seen.wasClean = { console: [...seen.console], failed: [...seen.failed] };
  await step("stop"); // the market goes
  await page.waitForSelector(".live.reconnecting");
  await tab("Results");
  await step("start"); // and is back
  await back();
  await page.waitForSelector("a:has-text('model.safetensors')"); // asked for while it was away
  await until(() => document.querySelector(".note.bad") === null);
  forgive();

  // One that loses a machine: another takes its rank, and both logs stay.
  const running = await step("run");
  await visit(running, "running");
  await until(() => [...document.querySelectorAll("canvas.strip")].filter((each) => each.ariaLabel?.startsWith("computes")).length === 2);
  // Who follows a rank's log then follows that of the machine which takes its place.
  await tab("Logs");
  await page.selectOption(".logs select", "1");
  await page.waitForSelector(".log:has-text('rank=1')");
  const [firstLine] = (await text(".log")).split("\n");
  const lost = await step("lose");
  await page.waitForSelector(".logs option[value='1']:has-text('spare')", { state: "attached" });
  await page.waitForSelector(".log:has-text('worker_ready')");
  await until((before) => {
    const log = document.querySelector(".log")?.textContent ?? before;
    return log.includes("worker_ready") && !log.startsWith(before);
  }, firstLine);
  await tab("Workers");
  await page.waitForSelector(`tr:has-text('${lost}'):has(.state.lost)`);
  await page.waitForSelector("tr:has-text('spare'):has(.state.running)");
  await look("job-lost");
  await step("lost"); // its machine is back
  await tab("Logs");
  const earlier = `.logs option:has-text('${lost}, lease')`;
  await page.waitForSelector(earlier, { state: "attached" });
  seen.earlier = await text(earlier);
  await page.selectOption(".logs select", await page.getAttribute(earlier, "value"));
  await page.waitForSelector(".log:has-text('worker_ready rank=1')"); // rank 0's log shows first
  seen.lostLog = await text(".log");
  seen.logChoices = await page.locator(".logs option").allTextContents();

  // A worker that is let go, asked twice and told once.
  await tab("Workers");
  await page.click("tr:has-text('spare') button:has-text('Let go')");
  await page.click("dialog button:has-text('Cancel')");
  await until(() => !document.querySelector("dialog"));
  seen.notReleased = posts.filter((path) => path.endsWith("/release")).length;
  await page.click("tr:has-text('spare') button:has-text('Let go')");
  await page.dblclick("dialog button:has-text('Let go')");
  await toast("spare is let go");
  await page.waitForSelector("tr:has-text('spare'):has(.state.stopped)");
  seen.released = posts.filter((path) => path.endsWith("/release")).length;
  seen.afterRelease = await text("h1 .state");
  await hush();

  // The same again, with changes: all of the form is filled in.
  await page.click("a:has-text('Train again with changes')");
  await page.waitForSelector(".note:has-text('Filled in from')");
  seen.again = await page.inputValue("input[name=name]");
  await page.goBack();
  await visit(running, "running");

  // Cancelled by a double click, once.
  await page.click("button:has-text('Cancel the job')");
  await page.dblclick("dialog button:has-text('Cancel the job')");
  await page.waitForSelector("h1 .state.cancelled");
  seen.cancels = posts.filter((path) => path.endsWith("/cancel")).length;
  await hush();
  await tab("Bill");
  await until(() => document.querySelectorAll("[role=tabpanel] tbody tr").length === 4);
  seen.cancelledBill = await text("[role=tabpanel] .figures");
  await look("job-cancelled");
  seen.running = running;
});

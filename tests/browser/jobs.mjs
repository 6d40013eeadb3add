// The jobs of an account: finding one, seeing why it waits, following it while the market restarts, giving it more
// time, its logs, and what is left of it.
//
//   node jobs.mjs URL_WITH_CODE FOLDER
import { readFileSync } from "node:fs";
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);
const { origin } = new URL(url);

// Whether both workers' strips are painted at their newest end.
const painted = () => {
  const strips = [...document.querySelectorAll("canvas.strip")];
  return strips.length === 2 && strips.every((strip) => {
    const end = Math.floor(strip.width / 10);
    if (!end) return false;
    const copy = new OffscreenCanvas(end, strip.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(strip, end - strip.width, 0);
    const { data } = copy.getImageData(0, 0, end, strip.height);
    let count = 0;
    for (let i = 3; i < data.length; i += 4) count += data[i] === 255 ? 1 : 0;
    return count > strip.height; // a column at least
  });
};

await browse({ url, folder }, async ({ page, seen, until, look, hush, step, forgive, toast, back }) => {
  const rows = (count) => until((wanted) => document.querySelectorAll(".jobs tbody tr").length === wanted, count);
  const visit = async (address) => {
    await page.evaluate((where) => (location.hash = where), address);
    await page.waitForSelector("h1");
  };
  const tab = (name) => page.click(`[role=tab]:has-text('${name}')`);
  const saved = async (act) => {
    const [download] = await Promise.all([page.waitForEvent("download"), act()]);
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
  };

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await visit("/jobs");
  await rows(25);
  await page.click("a:has-text('Older jobs')");
  await rows(2);
  await page.click("a:has-text('Newest jobs')");
  await rows(25);
  await page.selectOption("select[name=state]", "running");
  await page.waitForSelector("text=No job is running");
  await page.click("text=Show all of them");
  await rows(25);
  await page.selectOption("select[name=state]", "pending");
  await rows(25);

  // A job that waits says why.
  await page.click(".jobs tbody a >> nth=0");
  await page.waitForSelector(".explain .note");
  seen.name = await page.locator("h1").textContent();
  seen.explain = await page.locator(".explain").textContent();
  await look("job-waiting");
  await page.click("button:has-text('Cancel the job')");
  await page.click("dialog button:has-text('Keep running')");
  await until(() => !document.querySelector("dialog"));
  seen.afterNo = await page.locator("h1 .state").textContent();
  await page.click("button:has-text('Cancel the job')");
  await page.dblclick("dialog button:has-text('Cancel the job')");
  await page.waitForSelector("h1 .state.cancelled");

  await step("run"); // the test cancels the others and submits a long job
  await visit("/jobs");
  await page.waitForSelector(".jobs .state.running");
  await page.waitForSelector(".jobs td.wide-only .lane");
  await look("jobs");
  await page.click(".jobs tr:has(.state.running) a");
  await page.waitForSelector("h1 .state.running");
  await until(painted);
  await until(() => document.querySelector(".throughput .chart[aria-label^=Throughput]") !== null);
  seen.wasClean = { console: [...seen.console], failed: [...seen.failed] };

  await step("stop"); // the market goes
  await page.waitForSelector(".live.reconnecting");
  await page.click("button:has-text('Extend')");
  await page.fill("dialog input", "none");
  await page.waitForSelector("dialog [role=alert]");
  seen.isRefusedBefore = await page.locator("dialog button.primary").isDisabled();
  await page.fill("dialog input", "7");
  await step("start"); // and is back
  await back();
  await until(() => document.querySelector("article > .note.bad") === null);
  seen.typed = await page.inputValue("dialog input");
  forgive();
  await page.dblclick("dialog button.primary");
  await toast("7 min");
  await step("extended");
  await until(() => !document.querySelector("dialog"));
  await until(painted);
  seen.lanes = await page.locator("canvas.strip").evaluateAll((strips) => strips.map((strip) => strip.getAttribute("aria-label")));
  await hush();
  await look("job");

  await tab("Logs");
  await page.waitForSelector(".log:has-text('worker_ready')");
  await page.fill("input[name=find]", "<b>no such words</b>");
  await page.waitForSelector(".log:has-text('No line has “<b>no')"); // markup is text
  await page.fill("input[name=find]", "WORKER_READY");
  await page.waitForSelector(".log:has-text('worker_ready')");
  await page.selectOption(".logs select", "1");
  await page.waitForSelector(".log:has-text('rank=1')");
  await look("job-logs");
  seen.log = await saved(() => page.click("button:has-text('Download')"));
  await page.reload();
  await page.waitForSelector(".log:has-text('rank=1')"); // the address says whose

  await tab("Workers");
  await page.waitForSelector("tr:has-text('lender-0')");
  seen.working = await page.locator("tbody tr").allTextContents();
  await step("end"); // the test cancels it
  await page.waitForSelector("h1 .state.cancelled");
  const brief = await step("brief"); // another job has succeeded
  await visit(`/jobs/${brief}/workers`);
  await page.waitForSelector("h1 .state.succeeded");
  await until(() => [...document.querySelectorAll("tbody .state")].every((state) => state.textContent === "succeeded"));
  seen.worked = await page.locator("tbody tr").allTextContents();
  await look("job-workers");

  await tab("Bill");
  await page.waitForSelector(".figure");
  await until(() => document.querySelectorAll("tbody tr").length === 3);
  seen.csv = await saved(() => page.click("button:has-text('CSV')"));
  await look("job-bill");
  await tab("Results");
  await page.waitForSelector("a:has-text('model.safetensors')");
  await page.click("[aria-label=Copy]");
  await toast("Copied");
  seen.serve = await page.evaluate(() => navigator.clipboard.readText());
  seen.commands = await page.locator(".copy pre").allTextContents();
  const model = await saved(() => page.click("a:has-text('Download model')"));
  seen.model = { name: model.name, size: model.text.length };
  seen.curves = await saved(() => page.click("a:has-text('TensorBoard')"));
  seen.file = await saved(() => page.click("a:has-text('Job file')"));
  await hush();
  await look("job-results");
  await tab("Overview");
  await page.waitForSelector(".chart[aria-label*=loss]");
  await look("job-done");
});

// Runs code of one's own through the wizard: a zip file with a main script, and a folder for a framework whose transfer
// outlives a restart of the market.
//
//   node train_code.mjs URL_WITH_CODE FOLDER ARCHIVE PROJECT
import { readFileSync } from "node:fs";
import { browse } from "./kit.mjs";
import { wizard } from "./wizard.mjs";

const [url, folder, archive, project] = process.argv.slice(2);
const { origin } = new URL(url);

await browse({ url, folder }, async ({ page, seen, until, look, step, forgive, hush, back }) => {
  const { to, anew, small, submit } = wizard({ page, until }, origin);
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");

  // An archive, which of its files is run, and what is missing among them.
  await anew("code");
  await page.waitForSelector(".field:has(textarea[name=run]) [role=alert]");
  await page.locator("input[type=file]").first().setInputFiles({ name: "cut.zip", mimeType: "application/zip", buffer: readFileSync(archive).subarray(0, -30) });
  await page.waitForSelector(".drop [role=alert]:has-text('damaged')");
  await page.locator("input[type=file]").first().setInputFiles(archive);
  await page.waitForSelector(".sent:has-text('is at the market')");
  seen.likelyMain = await page.inputValue("input[name=main]");
  await page.fill("input[name=main]", "<i>other</i>.sh");
  await page.waitForSelector(".field:has(input[name=main]) [role=alert]");
  seen.noMain = await page.locator(".field:has(input[name=main]) [role=alert]").textContent();
  await to("Check");
  await page.waitForSelector(".mistakes li:has-text('main')");
  seen.canSubmit = await page.isEnabled("button:has-text('Submit the job')");
  await to("What");
  await page.fill("input[name=main]", "main.sh");
  await page.waitForSelector("input[name=runtime]");
  await page.click("label.way:has(input[value=mpi])");
  await page.waitForSelector("small:has-text('Left empty it is: mpirun sh main.sh')");
  await page.click("label.way:has(input[value=command])");
  await page.fill("textarea[name=envs]", "GREETING=<b>hi</b>");
  await page.waitForSelector("small:has-text('Left empty it is: sh main.sh')");
  await small("1");
  seen.command = await submit();

  // A folder for torch: the market goes away when the third part of it is sent, and comes back.
  await anew("code");
  await page.waitForSelector("input[name=runtime]");
  seen.runtimes = await page.locator("input[name=runtime]").evaluateAll((all) => all.map((each) => each.value));
  await page.click("label.way:has(input[value=tensorflow])");
  await page.waitForSelector("summary:has-text('More about TensorFlow')");
  await page.click("label.way:has(input[value=torch])");
  seen.taken = 0;
  page.on("response", (response) => {
    if (response.url().endsWith("/v1/chunks") && response.ok()) seen.taken++;
  });
  let asked = 0;
  await page.route("**/v1/chunks", async (route) => {
    if (++asked === 3) await step("stop");
    await route.continue();
  });
  await page.locator("input[type=file]").nth(1).setInputFiles(project);
  await page.waitForSelector(".sending:has-text('it goes on when it is back')");
  await look("train-away");
  await step("start");
  await page.waitForSelector(".sent:has-text('is at the market')");
  await page.unroute("**/v1/chunks");
  await back();
  forgive();
  seen.main = await page.inputValue("input[name=main]");
  await hush();
  await look("train-code");
  // The same folder again: the market has all of it.
  await page.reload();
  await page.waitForSelector(".sent:has-text('is at the market')");
  seen.takenOnce = seen.taken;
  await page.locator("input[type=file]").nth(1).setInputFiles(project);
  await page.waitForSelector(".sent:has-text('is at the market')");
  await small("2");
  seen.torch = await submit();
});

// Trains a built-in model on a built-in data set through the wizard: mistakes beside their fields, a reload and a market
// that restarts in the middle, one job however often one clicks.
//
//   node train_wizard.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, step, forgive, back }) => {
  const next = async (name) => {
    await page.click(`.wizard-foot a:has-text('Next: ${name}')`);
    await page.waitForSelector(`.steps a[aria-current=step]:has-text('${name}')`);
  };
  const checked = () => page.waitForSelector(".wizard-foot [role=status]:has-text('Would hold')");
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("#content a:has-text('Train a model')");
  await page.waitForSelector("h1:text('Train a model')");

  // What: every mistake stands beside its field, and its step says so.
  await page.click("label.way:has(input[value=logistic])");
  await page.fill("input[name=name]", "x".repeat(10_000));
  await page.waitForSelector(".field:has(input[name=name]) [role=alert]:has-text('1 to 64')");
  await page.fill("input[name=name]", "<b>bold</b>");
  await page.fill("input[name=epochs]", "many");
  await page.waitForSelector(".field:has(input[name=epochs]) [role=alert]");
  await page.waitForSelector(".field:has(input[name=name]) [role=alert]");
  seen.beside = await page.locator(".field:has(input[name=epochs]) [role=alert]").textContent();
  seen.models = await page.locator("label.way:has(input[name=model])").allTextContents();
  seen.count = await page.locator(".steps a[aria-current] .count").textContent();
  await page.click(".steps a:has-text('Check')");
  await page.waitForSelector(".mistakes li");
  seen.mistakes = await page.locator(".mistakes li").allTextContents();
  await look("train-mistakes");
  await page.click(".mistakes li:has-text('train.epochs') a");
  await page.waitForSelector("input[name=epochs]");
  await page.fill("input[name=epochs]", "1");
  await page.fill("input[name=accuracy]", "0.5");
  await page.fill("input[name=name]", "clothes");
  await checked();
  await page.reload();
  await page.waitForSelector("input[name=name]");
  seen.typedAfterReload = [await page.inputValue("input[name=name]"), await page.inputValue("input[name=epochs]"),
    await page.isChecked("input[value=logistic]")];
  await checked();
  await look("train-what");

  await next("Data");
  await page.waitForSelector("label.way:has-text('fashion-mnist')");
  await page.click("summary:has-text('Hashes')");
  seen.hashes = await page.locator(".hashes code").allTextContents();
  await look("train-data");

  await next("Machines");
  await page.fill("input[name=cpus]", "0.1");
  await page.fill("input[name=memory]", "0.2");
  await page.fill("input[name=longest]", "5m");
  await page.fill("input[name=expected]", "1m");
  await page.click("label.way:has(input[value=cheapest])");
  await page.fill("input[name=before]", "2020-01-01T10:00");
  await page.waitForSelector(".field:has(input[name=before]) [role=alert]");
  const tomorrow = await page.evaluate(() => {
    const at = new Date(Date.now() + 20 * 3_600_000);
    return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  });
  await page.fill("input[name=before]", tomorrow);
  await checked();
  seen.beyond = await page.locator(".slots .beyond").count();
  await page.click("label.way:has(input[value=now])");
  await checked();
  await page.waitForSelector(".slots li");
  seen.slots = await page.locator(".slots li").count();
  seen.cost = await page.locator(".slots .lane").first().getAttribute("aria-label");
  await look("train-machines");

  // The market is away: what is typed stays, and is checked when it is back.
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  await page.fill("input[name=cost]", "2");
  await page.click(".steps a:has-text('Check')");
  await page.waitForSelector(".note:has-text('The market cannot be reached')");
  await page.click(".steps a:has-text('Machines')");
  await step("start");
  await back();
  await checked();
  seen.costAfterRestart = await page.inputValue("input[name=cost]");
  forgive();

  await next("Check");
  await page.waitForSelector(".note:has-text('are free now')");
  seen.file = await page.locator("pre").textContent();
  seen.held = await page.locator(".figure:has-text('held') strong").textContent();
  seen.expected = await page.locator(".figure:has-text('expected cost') dd").textContent();
  seen.apart = await page.locator("p.after").textContent();
  await look("train-check");
  await page.dblclick("button:has-text('Submit the job')");
  await until(() => /^#\/jobs\/\d+/.test(location.hash));
  seen.job = Number(/\d+/.exec(new URL(page.url()).hash)[0]);
  await page.waitForSelector(".state.succeeded");
  await page.goto(`${new URL(url).origin}/#/train`);
  await page.waitForSelector("input[name=name]");
  seen.draftAfter = await page.inputValue("input[name=name]");
});

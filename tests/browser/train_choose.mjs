// Lets Souk choose the machines: what it refuses, a first guess, a trial that makes it surer, and a job on what was chosen,
// whose profile says how right it was.
//
//   node train_choose.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";
import { wizard } from "./wizard.mjs";

const [url, folder] = process.argv.slice(2);
const { origin } = new URL(url);

await browse({ url, folder }, async ({ page, seen, until, look, hush, forgive, toast }) => {
  const { to, anew, submit } = wizard({ page, until }, origin);
  const find = async () => {
    await page.waitForSelector(".choose .row button:not([disabled])");
    const answered = page.waitForResponse((response) => response.url().endsWith("/v1/recommendations"));
    await page.click(".choose .row button");
    const answer = await answered;
    return answer.ok() ? answer.json() : null;
  };
  const refused = async (words) => {
    await find();
    await page.waitForSelector(`.choose .note:has-text('${words}')`);
  };
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await anew("model");
  await page.click("label.way:has(input[value=logistic])");
  await page.fill("input[name=epochs]", "1");
  await page.fill("input[name=accuracy]", "0.5");
  await to("Machines");
  await page.fill("input[name=cpus]", "0.1");
  await page.fill("input[name=memory]", "0.2");
  await page.fill("input[name=longest]", "5m");

  // What a rule needs is said; what is typed wrongly beside its field.
  await page.selectOption("select[name=rule]", "cost-opt");
  await refused("needs a budget an hour");
  await page.selectOption("select[name=rule]", "scala-opt-m");
  await refused("needs the type");
  await page.selectOption("select[name=rule]", "auto");
  await page.fill("input[name=wish-deadline]", "soon");
  await page.waitForSelector(".choose [role=alert]:has-text('A time as')");
  await page.fill("input[name=wish-deadline]", "");
  await page.fill("input[name=wish-workerType]", "9c@9.9");
  await refused("is on offer");
  await page.fill("input[name=wish-workerType]", "");
  forgive(); // these refusals were asked for

  // A first guess, and a trial that tells more.
  seen.before = await find();
  await page.waitForSelector(".recommended h3:has-text('What fits best')");
  seen.figures = await page.locator(".recommended .figure dd").allTextContents();
  await page.waitForSelector(".recommended .note:has-text('A trial of')");
  await page.click(".recommended details summary");
  seen.rows = await page.locator(".recommended tbody tr").count();
  await look("train-choose");
  await page.click(".recommended .note button:has-text('Run the trial')");
  await page.waitForSelector("dialog:has-text('Run a trial of this job?')");
  await page.click("dialog button:has-text('Run the trial')");
  await page.waitForSelector(".recommended .note:has-text('The trial has ended')");
  await hush();
  for (seen.after = await find(); seen.after.observations === 0; seen.after = await find());
  seen.types = await page.locator("datalist#types option").evaluateAll((options) => options.map((option) => option.value));

  // By one of FC²'s rules, then by hand: what stood there is told to be of another job.
  await page.selectOption("select[name=rule]", "time-opt");
  await page.waitForSelector(".recommended .note:has-text('has changed since')");
  await page.fill("input[name=wish-perHour]", "1000");
  seen.timeOpt = await find();
  await page.waitForSelector("svg.frontier circle");
  await page.locator("svg.frontier g:not(.shown) > circle").first().click();
  await page.waitForSelector(".recommended h3:has-text('Another choice')");
  await look("train-rule");
  await page.selectOption("select[name=rule]", "auto");
  await page.fill("input[name=wish-workersMost]", "2");
  await page.selectOption("select[name=wish]", "fastest");
  seen.fastest = await find();
  await until(() => document.querySelector(".recommended > .note.warn") === null || !document.querySelector(".recommended").textContent.includes("has changed since"));
  await page.click("button:has-text('Take these machines')");
  await toast("the fields below say so now");
  seen.filled = [await page.inputValue("input[name=workers]"), await page.inputValue("input[name=cpus]"), await page.inputValue("select[name=policy]")];
  await hush();
  await look("train-chosen");
  seen.job = await submit();
  await page.waitForSelector("h1 .state.succeeded");

  // How right it was.
  await page.click("[role=tab]:has-text('Profile')");
  await page.waitForSelector(".profile tbody tr");
  await until(() => document.querySelector(".profile")?.textContent.includes("time it took"));
  seen.profile = await page.locator(".profile").textContent();
  await hush();
  await look("job-profile");
});

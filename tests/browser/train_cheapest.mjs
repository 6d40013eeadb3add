// Books a job for the cheapest time through the wizard, by the keyboard alone: no pointer is moved here. In between the
// market refuses it, once.
//
//   node train_cheapest.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";

const TABS_MAX = 120;
const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, step, forgive }) => {
  const { keyboard } = page;
  const isThere = (selector) => page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector);
  const tabTo = async (selector) => {
    await page.waitForSelector(selector);
    for (let count = 0; count < TABS_MAX; count++) {
      if (await isThere(selector)) return;
      await keyboard.press("Tab");
    }
    throw new Error(`no way to ${selector} by the keyboard`);
  };
  const type = async (selector, text) => {
    await tabTo(selector);
    await keyboard.press("Control+A");
    await keyboard.type(text);
  };
  const choose = async (name, value) => {
    await tabTo(`input[name=${name}]`);
    for (let count = 0; count < TABS_MAX && !(await isThere(`input[value='${value}']`)); count++) await keyboard.press("ArrowDown");
    await page.waitForSelector(`.way.chosen input[value='${value}']`);
  };
  const next = async (name) => {
    await tabTo(".wizard-foot a.primary");
    await keyboard.press("Enter");
    await page.waitForSelector(`.steps a[aria-current=step]:has-text('${name}')`);
    await until(() => document.activeElement?.id === "content"); // who hears the page is at its beginning
  };
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await tabTo("#content a[href='#/train']");
  await keyboard.press("Enter");
  await page.waitForSelector("h1:text('Train a model')");

  await choose("model", "logistic");
  await type("input[name=epochs]", "2");
  await tabTo("details.more summary");
  await keyboard.press("Enter");
  await type("input[name='train.target.min_time']", "1 fortnight");
  await page.waitForSelector(".field:has(input[name='train.target.min_time']) [role=alert]");
  await page.waitForSelector("select[name='train.shards']");
  await look("train-more");
  await type("input[name='train.target.min_time']", "2s");
  await next("Data");
  await page.waitForSelector(".way.chosen:has-text('fashion-mnist')");
  await next("Machines");
  await type("input[name=cpus]", "0.1");
  await type("input[name=memory]", "0.2");
  await choose("start", "cheapest");
  await page.waitForSelector(".slots li .state.succeeded");
  await page.waitForSelector(".wizard-foot [role=status]:has-text('Would hold')");
  seen.slots = await page.locator(".slots li").evaluateAll((rows) =>
    rows.map((row) => ({ cost: row.querySelector("strong").textContent, isCheapest: row.querySelector(".state") !== null })));
  await look("train-cheapest");
  await next("Check");
  await page.waitForSelector("button:has-text('Submit the job'):not([disabled])");
  seen.file = await page.locator("pre").textContent();
  seen.waits = await page.locator(".note:has-text('costs least')").textContent();

  // What the account had is spent meanwhile: the market says so, and what was entered stays.
  await step("spend");
  await tabTo(".wizard-foot button.primary");
  await keyboard.press("Enter");
  await page.waitForSelector(".note.problem");
  seen.refused = await page.locator(".note.problem").textContent();
  await look("train-refused");
  forgive();
  await step("give");
  await page.waitForSelector("button:has-text('Submit the job'):not([disabled])");
  await tabTo(".wizard-foot button.primary");
  await keyboard.press("Enter");
  await keyboard.press("Enter");
  await until(() => /^#\/jobs\/\d+/.test(location.hash));
  seen.job = Number(/\d+/.exec(new URL(page.url()).hash)[0]);
  await page.waitForSelector(".state.pending");
});

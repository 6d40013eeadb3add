// A lender with two machines, one of them with a GPU: codes that do not work, a group, several offers, what a machine says
// of itself, pauses and by whom, what it may earn.
//
//   node lend_machines.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, glance, hush, step, toast }) => {
  let estimated;
  page.on("response", (response) => {
    if (response.url().endsWith("/estimate") && response.ok()) estimated = response;
  });
  const save = async () => {
    await page.click(".offer button:has-text('Save')");
    await toast("Saved.");
    await hush();
    await page.waitForSelector(".offer :text('Changes hold at once')");
  };
  const command = async () => {
    await page.waitForSelector(".lend pre");
    return page.locator(".lend pre").textContent();
  };

  // The first one arrives; its code does not work again, and the page goes on waiting for the second.
  // Rewrites the market's answer when isLate is set: the code has expired.
  let isLate = false;
  await page.route("**/v1/machines/codes", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), ...(isLate ? { expires_ms: 1 } : {}) } });
  });
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/lend']");
  await page.click("button:has-text('Lend a machine')");
  const first = await command();
  await step(first);
  await page.waitForSelector(".arrived:has-text('heron has arrived.')");
  await page.click("button:has-text('Lend another machine')");
  await page.waitForSelector(".waiting");
  await step("used"); // its code, a second time: refused there
  seen.stillWaits = await page.locator(".waiting").count();
  // A command that lay about too long says so, and the next one works.
  await page.reload();
  await page.waitForSelector(".lend button:has-text('Lend a machine')");
  isLate = true;
  await page.click("button:has-text('Lend a machine')");
  await page.waitForSelector(".lend .note.warn:has-text('expired')");
  isLate = false;
  await page.click("button:has-text('New command')");
  const second = await command();
  seen.isNew = second !== first;
  await step(second);
  await page.waitForSelector(".arrived:has-text('osprey has arrived.')");
  await until(() => document.querySelectorAll(".main tbody tr, main tbody tr").length === 2);
  await page.waitForSelector("tbody .state.free >> nth=1");
  await look("lend-two");
  await page.click(".arrived a");
  await page.waitForSelector("h1:text('osprey')");

  // What the machine says of itself.
  await until(() => /°C/.test([...document.querySelectorAll(".figure")].map((each) => each.textContent).join()));
  seen.temperature = await page.locator(".figure:has-text('Temperature')").textContent();
  await step("hotter");
  await page.waitForSelector(".figure:has-text('Temperature') strong:text('71 °C')"); // told, not asked for

  // A GPU less, for the group, at a minimum; the rest of the time for nothing.
  await page.waitForSelector(".offer form");
  seen.gpu = await page.locator(".field:has(label:text('GPUs'))").textContent();
  await page.focus(".field:has(label:text('GPUs')) input[type=range]");
  await page.keyboard.press("Home");
  await page.selectOption("label:has-text('Lent to') + select", "group");
  await page.waitForSelector("label:has-text('Group') + select");
  await page.check(".toggle:has-text('Give unsold time away') input");
  await save();
  await step("grouped");

  // Another offer, nights only, with the GPU and a price for it.
  await page.click("button:has-text('Add another offer')");
  await until(() => document.querySelector("select[name=offer]")?.selectedIndex === 1); // the new offer's form has opened
  seen.offers = await page.locator("select[name=offer] option").count();
  await page.click("button:has-text('Nights and weekends')");
  await page.uncheck(".toggle:has-text('market') input");
  await page.fill("[name=price-gpu]", "0.1");
  await save();
  seen.second = await page.inputValue("select[name=offer]");
  await page.waitForSelector(".estimate:not([aria-busy]) .figure"); // for these terms
  seen.estimated = { terms: estimated.request().postDataJSON(), ...(await estimated.json()) };
  seen.estimate = await page.locator(".estimate .figure:has-text('always leased') strong").textContent();
  await look("lend-offers");
  await step("two offers");
  await page.click("button:has-text('Withdraw this offer')");
  await page.click("dialog button:has-text('Withdraw this offer')");
  await until(() => document.querySelector("select[name=offer]") === null);
  await step("withdrawn");

  // Paused from here, then longer from elsewhere; then by a word at the machine, which this page does not undo.
  await page.click(".head button:has-text('Pause now')");
  await page.waitForSelector(".note:has-text('Paused by you') :text('until you resume it')");
  await page.click(".head button:has-text('Resume')");
  await page.waitForSelector(".head .state.free");
  await page.click(".head button:has-text('For an hour')");
  await page.waitForSelector(".note:has-text('Paused by you'):has-text('until')");
  await page.waitForSelector(".head .until");
  await hush();
  seen.hour = await page.locator(".head .until").textContent();
  await step("longer");
  await until((shown) => document.querySelector(".head .until")?.textContent !== shown, seen.hour);
  seen.longer = await page.locator(".head .until").textContent();
  await glance("lend-paused");
  await page.click(".head button:has-text('Resume')");
  await page.waitForSelector(".head .state.free");
  await page.click(".head button:has-text('Until tomorrow')");
  await page.waitForSelector(".head .until");
  await step("tomorrow");
  await page.click(".head button:has-text('Resume')");
  await page.waitForSelector(".head .state.free");
  await step("at the machine");
  await page.waitForSelector(".note:has-text('at the machine itself until')");
  seen.mayResume = await page.locator(".head button:has-text('Resume')").count();
  await step("resumed there");
  await page.waitForSelector(".head button:has-text('Pause now')");
});

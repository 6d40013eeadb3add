// The browser's own notifications: explained while they are blocked, asked for on a click alone, told while the page is
// in the background, and not otherwise.
//
//   node notices.mjs URL_WITH_CODE FOLDER
import { browse, withWindows } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);
const { origin } = new URL(url);

// A headless browser shows none and is never in the background: what is told is noted, and the page believes it is away.
function watchNotices() {
  const { Notification: Shown } = window;
  window.told = [];
  window.asked = 0;
  window.isAway = false;
  Object.defineProperty(document, "hidden", { get: () => window.isAway });
  window.Notification = class extends Shown {
    constructor(title, options) {
      super(title, options);
      window.told.push({ title, body: options.body, tag: options.tag, click: () => this.onclick() });
    }
    static requestPermission() {
      window.asked++;
      return super.requestPermission();
    }
  };
}

await browse({ url, folder, browser: withWindows }, async ({ context, page, seen, until, look, step, back }) => {
  const browser = await context.newCDPSession(page);
  const permit = (setting) => browser.send("Browser.setPermission", { permission: { name: "notifications" }, setting, origin });
  const toggle = (word) => page.locator(`.notices .toggle:has-text('${word}') input`);
  const turnAll = async (isOn) => {
    for (const word of ["a job ended", "a machine of yours", "your machines earned"]) await toggle(word).setChecked(isOn);
  };
  const away = async (isAway) => {
    await page.evaluate((value) => {
      window.isAway = value;
      document.dispatchEvent(new Event("visibilitychange"));
    }, isAway);
  };
  const told = (title) => until((wanted) => window.told.some((each) => each.title.includes(wanted)), title);
  const titles = () => page.evaluate(() => window.told.map((each) => each.title));

  await page.addInitScript(watchNotices);
  await permit("denied");
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/settings']");
  await page.waitForSelector(".notices .note:has-text('blocks notifications')");
  seen.disabled = await page.locator(".notices input:disabled").count();
  await look("notices-denied");

  // Allowed in the browser's own settings: seen at once, asked for by nobody.
  await permit("granted");
  await until(() => document.querySelector(".notices .note") === null);
  seen.askedBefore = await page.evaluate(() => window.asked);
  await turnAll(true);
  await page.waitForSelector("button:has-text('Send one now')");
  await page.reload();
  await page.waitForSelector("button:has-text('Send one now')");
  seen.on = await page.locator(".notices input:checked").count();
  await page.click("button:has-text('Send one now')");
  await told("Souk");
  await look("notices");
  await back();

  // In the background: what happens is told, each once.
  const listed = page.waitForResponse((response) => response.url().includes("mine=true"));
  await away(true);
  await (await listed).finished();
  await page.evaluate(() => new Promise((done) => setTimeout(done))); // clock: after the page's queued work: it has read the list of machines
  await step("pause");
  await told("lender-1 is paused");
  await step("resume");
  await told("lender-1 is back");
  await step("job"); // of a borrower's, at these machines
  await told("Your machines earned");
  await step("own job");
  await told("digits succeeded");
  await step("lose");
  await told("lender-0 is lost");
  seen.titles = await titles();
  seen.ended = await page.evaluate(() => {
    const { body, tag, click } = window.told.find((each) => each.title === "digits succeeded");
    click(); // leads there
    return { body, tag };
  });
  await page.waitForSelector("article h1:has-text('digits')");
  await page.evaluate(() => (window.told.length = 0));

  // In sight, or turned off: nothing.
  await away(false);
  await step("pause");
  await page.click("nav a[href='#/lend']");
  await page.waitForSelector("tr:has-text('lender-1') .state.paused");
  await step("resume");
  await page.waitForSelector("tr:has-text('lender-1') .state.free");
  await page.click("nav a[href='#/settings']");
  await turnAll(false);
  await away(true);
  await step("pause");
  await page.evaluate(() => (location.hash = "#/lend"));
  await page.waitForSelector("tr:has-text('lender-1') .state.paused");
  await step("resume");
  await page.waitForSelector("tr:has-text('lender-1') .state.free");
  seen.quiet = await titles();

  // Not answered yet: a click asks, and nothing else does.
  await permit("prompt");
  await page.goto(`${origin}/#/settings`);
  await page.reload();
  await page.waitForSelector(".notices .toggle");
  seen.askedOnLoad = await page.evaluate(() => window.asked);
  await page.evaluate(() => document.querySelector(".notices input:not(:disabled)")?.click());
  seen.askedOnClick = await page.evaluate(() => window.asked);
});

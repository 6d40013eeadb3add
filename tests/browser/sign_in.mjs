// Signs up, out and in again as a person would; then tries refused sign-ups and sign-ins.
//
//   node sign_in.mjs URL FOLDER TOKEN USED_CODE INVITE
//
// TOKEN is another account's.
import { browse } from "./kit.mjs";
import { refusals } from "./refusals.mjs";

const [url, folder, token, used, invite] = process.argv.slice(2);

await browse({ url, folder }, async (parts) => {
  const { context, page, seen, look, hush, glance, forgive, toast } = parts;
  const fill = async (name, password) => {
    await page.fill("input[name=name]", name);
    await page.fill("input[name=password]", password);
    await page.click("button[type=submit]");
  };
  const refusal = async () => {
    await page.waitForSelector("form [role=alert]");
    return page.locator("form [role=alert]").first().textContent();
  };
  const inside = () => page.waitForSelector("h1:text('Dashboard')");
  const leave = async () => {
    await page.click("[aria-label='Sign out']");
    await page.waitForSelector("form.sign-in");
  };

  await page.goto(url);
  await page.waitForSelector("form.sign-in");
  await look("welcome");
  await glance("welcome-top");
  seen.beforeRefusals = [...seen.console];
  await fill("nobody-here", "certainly not it");
  seen.unknown = await refusal();

  await page.click("button.link:has-text('I am new here')");
  await page.waitForSelector("#way:has-text('Open an account')");
  await fill("ada", "short");
  await page.waitForSelector("form [role=alert]:has-text('at least 10')");
  await fill("<b>Ada</b>", "correct horse battery");
  await page.waitForSelector("form [role=alert]:has-text('a-z')");
  await fill("ada", "password123");
  await page.waitForSelector("form [role=alert]:has-text('tried first')");
  await look("sign-up");
  seen.typedAfterReload = await (async () => {
    await page.reload();
    await page.waitForSelector("form.sign-in");
    return page.inputValue("input[name=name]");
  })();
  await fill("ada", "correct horse battery");
  await inside();
  seen.name = await page.locator("header .who").textContent();
  const cookie = (await context.cookies()).find((candidate) => candidate.name === "souk_session");
  seen.cookie = { httpOnly: cookie.httpOnly, sameSite: cookie.sameSite };
  seen.scriptsSee = await page.evaluate(() => document.cookie);
  await look("dashboard-empty");

  await page.click("nav a[href='#/lend']");
  await page.click("button:has-text('Lend a machine')");
  await page.waitForSelector(".lend pre");
  seen.lend = await page.locator(".lend pre").textContent();
  await page.click(".lend [aria-label=Copy]");
  await toast("Copied");
  seen.copied = await page.evaluate(() => navigator.clipboard.readText());
  await hush();
  await look("lend");

  const followLink = async (isWanted) => {
    const made = await fetch(`${url}/v1/account/page-codes`, {
      method: "POST", body: "{}", headers: { Authorization: `Bearer ${token}` } });
    await page.goto("about:blank");
    await page.goto(`${url}/#code=${(await made.json()).code}`);
    await page.waitForSelector("dialog[open]");
    seen.asked = await page.locator("dialog h2").textContent();
    await page.click(`dialog button:has-text('${isWanted ? "Sign in" : "Cancel"}')`);
    await inside();
    return page.locator("header .who").textContent();
  };
  seen.nameAfterNo = await followLink(false);
  seen.nameAfterYes = await followLink(true);
  await leave();
  await page.reload();
  await page.waitForSelector("form.sign-in");
  await fill("ada", "correct horse battery");
  await inside();
  await leave();
  // The refusals above are on the console by the browser's own word.
  forgive();
  await refusals(parts, { url, used, invite });
});

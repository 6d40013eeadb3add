// The page's frame and a user's settings: a group, the password, tokens shown once, sessions, and the end of the account.
//
//   node settings.mjs URL_WITH_CODE FOLDER ANOTHERS_URL_WITH_CODE
import { inGroups } from "./group.mjs";
import { browse, sizes } from "./kit.mjs";
import { frame } from "./shell.mjs";

const [url, folder, anothers] = process.argv.slice(2);
const { origin } = new URL(url);
const HTML = "<script>alert(1)</script><b>x</b>";
const AHEAD_MS = 40 * 86_400_000;
const FIRST = "a first long password";
const SECOND = "a second long password";

await browse({ url, folder, size: "phone" }, async (parts) => {
  const { context, page, seen, until, look, glance, hush, step, forgive, toast, back } = parts;
  await frame(parts, anothers);
  await page.setViewportSize(sizes.wide);
  await page.goto("about:blank");
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await inGroups(parts);

  let posts = 0;
  page.on("request", (request) => (posts += request.method() === "POST" && request.url().endsWith("/v1/tokens") ? 1 : 0));
  const beside = (name, word) => page.waitForSelector(`.field:has(input[name='${name}']) [role=alert]:has-text('${word}')`);
  const press = (where) => page.click(`${where} button[type=submit]`);
  const asToken = (path, token) => context.request.get(`${origin}${path}`, { headers: { Authorization: `Bearer ${token}` } });

  // This computer's clock is far ahead: ages and ends are told, and made, by the market's.
  await context.addInitScript((ahead_ms) => {
    const Right = Date;
    globalThis.Date = class extends Right {
      constructor(...given) {
        super(...(given.length ? given : [Right.now() + ahead_ms]));
      }
      static now() {
        return Right.now() + ahead_ms;
      }
    };
  }, AHEAD_MS);

  await page.reload();
  await page.waitForSelector(".sessions tbody tr");

  // A first password: checked here, then by the market.
  await page.fill("input[name=fresh]", "short");
  await press(".password");
  await beside("fresh", "at least 10");
  await beside("again", "not the same");
  await page.fill("input[name=fresh]", "password123");
  await page.fill("input[name=again]", "password123");
  await press(".password");
  await beside("fresh", "tried first");
  forgive();
  await page.fill("input[name=fresh]", FIRST);
  await page.fill("input[name=again]", FIRST);
  await page.dblclick(".password button[type=submit]");
  await toast("The password is set");
  await page.waitForSelector("input[name=old]");

  // Another place signs in; a changed password ends it, and so does a button.
  await step("sign in");
  await page.reload();
  await until(() => document.querySelectorAll(".sessions tbody tr").length === 2);
  await page.click(".sessions button:has-text('End')");
  await until(() => document.querySelectorAll(".sessions tbody tr").length === 1);
  seen.endedByButton = await step("ended");
  await step("sign in");
  await page.fill("input[name=old]", "not this one");
  await page.fill("input[name=fresh]", SECOND);
  await page.fill("input[name=again]", SECOND);
  await press(".password");
  await beside("old", "is wrong");
  forgive();
  await page.fill("input[name=old]", FIRST);
  await press(".password");
  await until(() => document.querySelector("input[name=old]").value === "");
  seen.endedByPassword = await step("ended");

  // A token: shown once, copied, used, revoked.
  await press(".tokens");
  await beside("token", "Say what");
  await page.fill("input[name=token]", "z".repeat(10_000));
  await press(".tokens");
  await beside("token", "At most 64");
  await page.click(".tokens .toggle:has-text('read')");
  await page.waitForSelector(".tokens fieldset [role=alert]:has-text('at least one')");
  seen.postsWrong = posts;
  await page.click(".tokens .toggle:has-text('read')");
  await page.click(".tokens .toggle:has-text('borrow')");
  await page.selectOption("select[name=span]", "month");
  await page.fill("input[name=token]", HTML);
  await page.reload();
  await page.waitForSelector("input[name=token]");
  seen.typed = await page.inputValue("input[name=token]");
  // The market restarts under the click: the token is made once all the same.
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  const lost = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/v1/tokens"));
  await page.dblclick(".tokens button[type=submit]");
  await lost;
  await step("start");
  await back();
  // The page still retries, and also shows the earlier error.
  await until(() => document.querySelector(".tokens [aria-busy]") === null);
  if (!(await page.locator(".made").count())) await press(".tokens");
  await page.waitForSelector(".made pre");
  seen.token = await page.locator(".made pre").textContent();
  await page.click(".made [aria-label=Copy]");
  await toast("Copied");
  seen.copied = await page.evaluate(() => navigator.clipboard.readText());
  await page.waitForSelector(".tokens tbody th:has-text('<script>')");
  forgive();
  await look("settings-token");
  seen.tokenName = await page.locator(".tokens tr:has-text('<script>') .named").textContent();
  seen.ends = await page.locator(".tokens tr:has-text('<script>') td").nth(3).textContent();
  seen.used = await page.locator(".sessions tbody tr").first().textContent();
  seen.expires_ms = (await (await context.request.get(`${origin}/v1/tokens`)).json()).items.find((each) => each.name === HTML).expires_ms;
  seen.works = (await asToken("/v1/account", seen.token)).status();
  await page.click("button:has-text('I have it')");
  await until(() => document.querySelector(".made") === null);
  await page.reload();
  await page.waitForSelector(".tokens tbody tr");
  seen.shownAgain = (await page.content()).includes(seen.token);
  await hush();
  await look("settings");
  await glance("settings-top");
  await page.click(".tokens tr:has-text('<script>') button:has-text('Revoke')");
  await page.click("dialog button:has-text('Cancel')");
  await page.click(".tokens tr:has-text('<script>') button:has-text('Revoke')");
  await page.dblclick("dialog button:has-text('Revoke')");
  await until(() => !document.querySelector(".tokens").textContent.includes("<script>"));
  seen.refused = (await asToken("/v1/account", seen.token)).status();

  // The end, with the name typed.
  await page.click("button:has-text('Delete the account')");
  await page.fill("dialog input[name=confirm]", "someone-else");
  await page.click("dialog button:has-text('Delete for good')");
  await beside("confirm", "not the account");
  await beside("confirm-password", "is needed");
  await page.fill("dialog input[name=confirm]", "ada");
  await page.fill("dialog input[name=confirm-password]", "wrong one");
  await page.click("dialog button:has-text('Delete for good')");
  await beside("confirm-password", "is wrong");
  await look("settings-delete");
  await page.fill("dialog input[name=confirm-password]", SECOND);
  await page.click("dialog button:has-text('Delete for good')");
  await page.waitForSelector("form.sign-in");
  forgive();
});

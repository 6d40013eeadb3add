// A group: made, joined by a code from elsewhere and seen at once, a member taken out, one joined and left.
//
//   node group.mjs URL_WITH_CODE FOLDER
import { browse } from "./kit.mjs";

const [url, folder] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, hush, step, forgive }) => {
  const beside = (name, word) => page.waitForSelector(`.group .field:has(input[name='group-${name}']) [role=alert]:has-text('${word}')`);
  const submit = async (name, text) => {
    await page.fill(`input[name=group-${name}]`, text);
    await page.click(`.group form:has(input[name=group-${name}]) button`);
  };
  const members = () => page.locator(".group tbody th").allTextContents();

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/settings']");
  await page.waitForSelector("input[name=group-name]");

  // What is wrong stands beside its field, before and after the market is asked.
  await submit("name", "<b>Lab</b>".repeat(1000));
  await beside("name", "a-z");
  await submit("code", "10 kB ".repeat(1700));
  await beside("code", "souk_group_");
  await submit("code", "souk_group_0123abcd");
  await beside("code", "is wrong, used or expired");
  await submit("name", "taken");
  await beside("name", "is taken");
  forgive();
  await look("group-wrong");
  await page.fill("input[name=group-name]", "lab");
  await page.reload();
  await page.waitForSelector("input[name=group-name]");
  seen.typed = await page.inputValue("input[name=group-name]");
  await page.dblclick(".group form:has(input[name=group-name]) button");
  await page.waitForSelector(".group:has-text('You are in the group lab.')");

  // A code for another account, which joins from elsewhere.
  await page.click(".group button:has-text('Make a code')");
  await page.waitForSelector(".group pre");
  const code = await page.locator(".group pre").textContent();
  await step(code);
  await until(() => document.querySelectorAll(".group tbody tr").length === 2);
  seen.members = await members();
  await hush();
  await look("group");
  // The group is an audience for a lender's machine.
  await page.goto(`${new URL(url).origin}/#/lend/${await step("machine")}`);
  await page.waitForSelector("select:has(option[value=group])");
  await page.selectOption("select:has(option[value=group])", "group");
  await page.click("button:has-text('Save')");
  seen.audience = await step("saved");
  await page.goto(`${new URL(url).origin}/#/settings`);
  await page.click(".group tr:has-text('bob') button:has-text('Take out')");
  await page.click("dialog button:has-text('Take out')");
  await until(() => document.querySelectorAll(".group tbody tr").length === 1);
  await page.click(".group button:has-text('Leave the group')");
  await page.click("dialog button:has-text('Cancel')");
  await page.click(".group button:has-text('Leave the group')");
  await page.click("dialog button:has-text('Leave the group')");
  await page.waitForSelector("input[name=group-code]");

  // Into another's, and out by its owner's word: the page hears of it.
  await submit("code", await step("join"));
  await page.waitForSelector(".group:has-text('You are in the group taken.')");
  seen.joined = await members();
  seen.buttons = await page.locator(".group button:has-text('Take out'), .group button:has-text('Make a code')").count();
  await step("out");
  await page.waitForSelector("input[name=group-code]");
});

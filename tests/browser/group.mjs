// Group settings: makes a group, sees a member join by a code, and takes one out; then joins another group and leaves it.
// Part of settings.mjs.
export async function inGroups({ page, seen, until, look, hush, step, forgive }) {
  const beside = (name, word) => page.waitForSelector(`.group .field:has(input[name='group-${name}']) [role=alert]:has-text('${word}')`);
  const submit = async (name, text) => {
    await page.fill(`input[name=group-${name}]`, text);
    await page.click(`.group form:has(input[name=group-${name}]) button`);
  };
  const members = () => page.locator(".group tbody th").allTextContents();

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
  seen.groupTyped = await page.inputValue("input[name=group-name]");
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
}

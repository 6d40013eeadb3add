// Refused sign-ups and sign-ins, and a session that ends in the middle of work. Part of sign_in.mjs.
const PASSWORD = "correct horse battery";

export async function refusals({ page, seen, until, look, step, forgive }, { url, used, invite }) {
  const fill = async (fields) => {
    for (const [name, text] of Object.entries(fields)) await page.fill(`form.sign-in input[name=${name}]`, text);
    await page.click("form.sign-in button[type=submit]");
  };
  const beside = (name, word) => page.waitForSelector(`.field:has(input[name=${name}]) [role=alert]:has-text('${word}')`);
  const told = async (word) => {
    await page.waitForSelector(`form.sign-in .note:has-text('${word}')`);
    return page.locator("form.sign-in .note").textContent();
  };

  // A link that was used says so, and the form is there.
  await page.goto("about:blank");
  await page.goto(`${url}/#code=${used}`);
  await page.waitForSelector(".note.bad:has-text('was used or has expired')");
  await look("welcome-link-used");
  forgive();

  // Opening an account: a name that is taken, an invitation that is none; HTML and 10 kB are text.
  await page.click("button:has-text('Train a model')");
  await page.waitForSelector("#way:has-text('Open an account')");
  await fill({ name: "carl", password: PASSWORD, invite: "<b>10 kB</b>".repeat(900) });
  await until(() => document.querySelector("form.sign-in [role=alert]") !== null);
  seen.long = await page.locator("form.sign-in [role=alert]").first().textContent();
  await fill({ name: "carl", invite: "" });
  await beside("name", "is taken");
  await fill({ name: "eve", invite: "souk_invite_0123abcd" });
  await beside("invite", "wrong, used or expired");
  await look("sign-up-refused");
  await page.reload(); // a reload keeps what was typed, but for the password
  await page.waitForSelector("form.sign-in");
  seen.kept = await page.inputValue("input[name=invite]");
  seen.password = await page.inputValue("input[name=password]");
  forgive();
  await fill({ password: PASSWORD, invite });
  await page.waitForSelector("h1:text('Train')"); // where the button said
  await page.click("nav a[href='#/wallet']");

  // The session ends elsewhere while a gift is typed: it says so, and after signing in the gift is still there.
  await page.fill("input[name=to]", "carl");
  await page.fill("input[name=memo]", "for the <i>night</i>");
  await step("end sessions");
  await page.waitForSelector(".note:has-text('Your session has ended')");
  await look("welcome-ended");
  forgive();
  await fill({ name: "eve", password: PASSWORD });
  await page.waitForSelector("input[name=memo]");
  seen.typed = [await page.inputValue("input[name=to]"), await page.inputValue("input[name=memo]")];

  // Another account in the same tab finds nothing of it, nor of what is never kept but on the screen.
  const secretOf = async () => {
    await page.evaluate(() => (location.hash = "/train/data"));
    await page.click("label.way:has(input[value=url])");
    await page.fill("input[name=url]", "s3://bucket/rows.csv");
    return page.locator("input[name=AWS_SECRET_ACCESS_KEY]");
  };
  await (await secretOf()).fill("opens the bucket");
  await page.click("nav a[href='#/wallet']");
  await page.waitForSelector("input[name=memo]");
  seen.secret = await (await secretOf()).inputValue();
  await page.click("nav a[href='#/wallet']");
  await page.waitForSelector("input[name=memo]");
  await step("end sessions");
  await page.waitForSelector(".note:has-text('Your session has ended')");
  forgive();
  await fill({ name: "carl", password: PASSWORD });
  await page.waitForSelector("input[name=memo]");
  seen.typedByAnother = await page.inputValue("input[name=memo]");
  seen.secretByAnother = await (await secretOf()).inputValue();
  await page.click("[aria-label='Sign out']");
  await page.waitForSelector("form.sign-in");
  seen.isCalledEnded = await page.locator(".note:has-text('has ended')").count();

  // Too many tries: the market says when to come back.
  for (let tries = 0, status = 0; status !== 429; tries++) {
    const answered = page.waitForResponse((response) => response.url().endsWith("/v1/sessions"));
    await fill({ name: "eve", password: `wrong ${tries}` });
    status = (await answered).status();
    await until(() => !document.querySelector("form.sign-in [aria-busy]"));
  }
  seen.limited = await told("too many");
  await look("sign-in-limited");
  forgive();
}

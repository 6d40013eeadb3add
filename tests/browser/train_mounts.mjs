// Gives a program of one's own its secrets and its data through the wizard: a folder and a file from this computer, another
// file that the market fetches; and the same job again. Part of train_wheels.mjs.
import path from "node:path";

const RUN = `set -e
for file in images/a.txt images/deep/b.txt rows.csv far/list.txt; do echo "$(sha256sum < $file | cut -c 1-64) $file"; done > $SOUK_OUTPUT_DIR/said
printf %s "$MY_TOKEN" | sha256sum | cut -c 1-64 > $SOUK_OUTPUT_DIR/token
printf %s "$MY_KEY" | wc -l > $SOUK_OUTPUT_DIR/lines`;

export async function mounts({ page, seen, until, look, hush }, { to, anew, small, submit }, { data, address, secret }) {
  const card = (at) => page.locator(".card.mount").nth(at);
  const alerts = (selector) => page.locator(`${selector} [role=alert]`).allTextContents();
  await anew("code");
  await page.fill("textarea[name=run]", RUN);

  // Secrets: what is wrong stands beside them; several lines stay several.
  await page.click("button:has-text('Add a secret')");
  await page.fill("input[name=secret-0-name]", "2FAST");
  await page.waitForSelector(".secret [role=alert]:has-text('not a digit first')");
  await page.fill("input[name=secret-0-name]", "MY_TOKEN");
  await page.waitForSelector(".secret [role=alert]:has-text('Type its value')");
  seen.countedBefore = await page.locator(".steps .count").first().textContent();
  await page.fill("input[name=secret-0-value]", secret);
  await page.click("button:has-text('Add a secret')");
  await page.fill("input[name=secret-1-name]", "MY_KEY");
  await page.evaluate(() => navigator.clipboard.writeText("-----BEGIN-----\nline\n-----END-----\n"));
  await page.focus("input[name=secret-1-value]");
  await page.keyboard.press("Control+V");
  await page.waitForSelector(".secret small:has-text('lines, as they were pasted')");
  await until(() => document.querySelectorAll(".secret [role=alert]").length === 0);
  seen.masked = await page.locator("input[name=secret-0-value]").getAttribute("type");
  await look("train-secrets");

  // Data: a folder, whole; a file, each machine its part; and one from an address.
  await small("2");
  await to("Data");
  await page.click("button:has-text('Add files')");
  await until(() => document.querySelectorAll(".card.mount [role=alert]").length >= 2);
  seen.emptyMount = await alerts(".card.mount");
  await card(0).locator("input[type=file]").nth(1).setInputFiles(path.join(data, "images"));
  await card(0).locator(".sent:has-text('images is at the market: 2 files')").waitFor();
  await page.click("button:has-text('Add more files')");
  await card(1).locator("input[type=file]").first().setInputFiles(path.join(data, "one.csv"));
  await card(1).locator(".sent:has-text('one.csv is at the market: 1 file')").waitFor();
  await card(1).locator("input[type=checkbox]").click();
  await card(1).locator("[role=alert]:has-text('too few for 2 machines')").waitFor();
  await card(1).locator("input[type=file]").first().setInputFiles(path.join(data, "rows.csv"));
  await card(1).locator(".sent:has-text('rows.csv is at the market')").waitFor();
  await page.fill("input[name=mount-2-target]", "images");
  await card(1).locator("[role=alert]:has-text('is there twice')").waitFor();
  await page.fill("input[name=mount-2-target]", "../rows.csv");
  await page.waitForSelector(".note:has-text('no place in the working folder')");
  await page.fill("input[name=mount-2-target]", "rows.csv");
  await page.click("button:has-text('Add more files')");
  await card(2).locator("label.way:has(input[value=address])").click();
  await page.fill("input[name=mount-3-url]", "ftp://host/list.txt");
  await card(2).locator("[role=alert]:has-text('Begin with')").waitFor();
  await page.fill("input[name=mount-3-url]", "s3://bucket/list.txt");
  await card(2).locator("input[name=AWS_SECRET_ACCESS_KEY]").waitFor();
  await page.fill("input[name=mount-3-url]", `${address}/gone.txt`);
  await card(2).locator("button:has-text('Fetch them')").click();
  await card(2).locator("[role=alert]:has-text('no such file')").waitFor();
  await page.fill("input[name=mount-3-url]", `${address}/list.txt`);
  await page.fill("input[name=mount-3-target]", "far/list.txt");
  await card(2).locator("button:has-text('Fetch them')").click();
  await card(2).locator(".sent:has-text('list.txt is at the market')").waitFor();
  await until(() => document.querySelectorAll(".card.mount [role=alert]").length === 0);
  await hush();
  await look("train-mounts");

  // The job file has the names alone; a page that is loaded again has forgotten the values, and says so.
  await to("Check");
  await page.waitForSelector(".copy pre:has-text('secret_names')");
  seen.mountsFile = await page.locator(".copy pre").textContent();
  seen.stored = await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }));
  await page.reload();
  await page.waitForSelector(".mistakes li:has-text('Type its value')");
  seen.forgotten = await page.locator(".mistakes li").count();
  seen.canSubmit = await page.locator("button:has-text('Submit the job'):not([disabled])").count();
  await page.click(".mistakes a:has-text('Go to What')");
  await page.fill("input[name=secret-0-value]", secret);
  await page.focus("input[name=secret-1-value]");
  await page.keyboard.press("Control+V");
  seen.mounted = await submit();

  // Again: the files are there, of the secrets the names.
  await page.click("a:has-text('Train again')");
  await page.waitForSelector("input[name=secret-0-name]");
  seen.secretsAgain = [await page.inputValue("input[name=secret-0-name]"), await page.inputValue("input[name=secret-0-value]")];
  await to("Data");
  seen.placesAgain = await page.locator(".card.mount .field input[placeholder=data]").evaluateAll((inputs) => inputs.map((input) => input.value));
  await to("What");
  await page.click("button[aria-label='Remove secret MY_KEY']");
  await page.click("button[aria-label='Remove secret MY_TOKEN']");
  await to("Check");
  await page.waitForSelector("button:has-text('Submit the job'):not([disabled])");
}

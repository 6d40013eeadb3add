// The frame around all screens, on a phone: navigation by hand and by keyboard, colours, deep links, and a market that restarts.
// settings.mjs runs this part first, because it measures the first load of a page.
export async function frame({ page, seen, until, shoot, step, forgive, back }, url) {
  const { origin } = new URL(url);
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await until(() => performance.getEntriesByName("first screen").length > 0);
  seen.first = await page.evaluate(() => {
    const at_ms = performance.getEntriesByName("first screen")[0].startTime;
    const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
      .filter((entry) => entry.startTime < at_ms && !entry.name.includes("/v1/"));
    return { at_ms, files: files.map((entry) => [new URL(entry.name).pathname, entry.encodedBodySize]) };
  });

  // A phone has the rest behind "More"; Escape closes it.
  await page.click("button.more");
  await page.waitForSelector("#more-screens.open a[href='#/settings']");
  await shoot("more-phone");
  await page.keyboard.press("Escape");
  await until(() => !document.querySelector("#more-screens.open"));
  await page.click("button.more");
  await page.click("#more-screens a[href='#/settings']");
  await page.waitForSelector("h1:text('Settings')");
  await until(() => !document.querySelector("#more-screens.open"));

  await page.selectOption("select", "dark");
  seen.theme = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.reload();
  await page.waitForSelector("h1:text('Settings')"); // the address says where one was
  seen.themeAfterReload = await page.evaluate(() => getComputedStyle(document.body).colorScheme);
  await page.selectOption("select", "auto");

  await page.goto(`${origin}/#/no-such-screen`);
  await page.waitForSelector("text=There is nothing at this address.");
  await page.goto(`${origin}/#/jobs/999999`);
  await page.waitForSelector("[role=alert]");
  seen.unknownJob = await page.locator("[role=alert]").textContent();
  await page.goto(`${origin}/#/dashboard`);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.keyboard.press("Tab");
  seen.firstTab = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("Enter");
  seen.skippedTo = await page.evaluate(() => document.activeElement.id);

  // The market is away: the page says so, shows what it knows, and goes from screen to screen.
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  await page.click("nav a[href='#/lend']");
  await page.waitForSelector("h1:text('Lend')");
  await page.click("nav a[href='#/jobs']");
  await page.waitForSelector("h1:text('Jobs')");
  await shoot("reconnecting");
  await step("start"); // and a job is submitted, unheard by the page
  await back();
  await page.waitForSelector(".jobs a:has-text('digits')");
  await until(() => document.querySelector(".note.bad") === null);
  seen.state = await page.locator(".jobs .state").textContent();
  forgive();
  await page.click("[aria-label='Sign out']");
  await page.waitForSelector("form.sign-in");
  forgive(); // the market may refuse a request while the session ends
}

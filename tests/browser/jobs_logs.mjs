// A long log: followed, searched to its first line while it grows, jumped about in, and taken along whole. The market
// restarts while one looks.
//
//   node jobs_logs.mjs URL_WITH_CODE FOLDER JOB
import { readFileSync } from "node:fs";
import { browse } from "./kit.mjs";

const [url, folder, job] = process.argv.slice(2);

await browse({ url, folder }, async ({ page, seen, until, look, step, forgive, back }) => {
  const find = (words) => page.fill("input[name=find]", words);
  const count = () => page.locator(".steps span").first().textContent();
  const counted = (wanted) => page.waitForSelector(`.steps:has-text('${wanted}')`);
  // Search inside the page: the log is too long to copy each time.
  const says = (words) => until((wanted) => document.querySelector(".log")?.textContent.includes(wanted), words);
  const has = (words) => page.evaluate((wanted) => document.querySelector(".log").textContent.includes(wanted), words);
  const atEnd = () => {
    const log = document.querySelector(".log");
    return log.scrollHeight - log.scrollTop - log.clientHeight < 2;
  };

  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  const parts = [];
  const keep = (response) => {
    if (/\/logs\?/.test(response.url())) parts.push(response.json());
  };
  page.on("response", keep);
  await page.evaluate((id) => (location.hash = `/jobs/${id}/logs`), job);
  await says("that is all for now");
  await page.waitForSelector(".logs button:has-text('Lines before these')");
  seen.hasFirst = await has("Needle at the beginning");
  page.off("response", keep);
  seen.readAtFirst = (await Promise.all(parts)).reduce((sum, part) => sum + part.text.length, 0);

  // It follows what is printed, until one says not to.
  await until(atEnd);
  await step("print");
  await says("said later 1");
  await until(atEnd);
  await page.click(".logs .toggle, .logs [role=switch], .logs label:has-text('Follow')");
  await page.evaluate(() => (document.querySelector(".log").scrollTop = 1000));
  await step("print");
  await says("said later 2");
  seen.stayed = await page.evaluate(() => document.querySelector(".log").scrollTop);

  // Whoever goes up finds what was before, where it was; the end is let go of, and comes back.
  const firstShown = () => Number(/^line (\d+) of/.exec(document.querySelector(".log").textContent)[1]);
  const top = () => page.evaluate(() => {
    const { left, top } = document.querySelector(".log").getBoundingClientRect();
    const { startContainer: { textContent }, startOffset } = document.caretRangeFromPoint(left + 40, top + 4);
    return textContent.slice(textContent.lastIndexOf("\n", startOffset - 1) + 1).split("\n")[0];
  });
  const began = await page.evaluate(firstShown);
  await page.evaluate(() => (document.querySelector(".log").scrollTop = 300));
  seen.topBefore = await top();
  await until((before) => Number(/^line (\d+) of/.exec(document.querySelector(".log").textContent)[1]) < before, began);
  seen.topAfter = await top();
  const begin = () => page.evaluate(() => document.querySelector(".log").textContent.slice(0, 40));
  for (let before = await begin(); !before.startsWith("Needle at the beginning"); before = await begin()) {
    await page.click("button:has-text('Lines before these')");
    await until((was) => document.querySelector(".log").textContent.slice(0, 40) !== was, before);
  }
  await look("job-log-begin", { without: [".log"] }); // skip a megabyte of log; a look below checks one line
  seen.isWindow = !(await has("that is all for now"));
  await page.click("button:has-text('To the end')");
  await says("said later 2");
  await until(atEnd);
  await page.waitForSelector("button:has-text('To the end')", { state: "detached" });

  // What is sought is found in all of it, also where it is no longer shown.
  await find("<i>nothing</i>");
  await page.waitForSelector(".log:has-text('No line has “<i>nothing</i>”')");
  await find("NEEDLE");
  await counted("3 lines found");
  seen.found = await page.locator(".found button").allTextContents();
  await look("job-search");
  await page.focus(".found button >> nth=0");
  await page.keyboard.press("Enter");
  await counted("1 of 3");
  seen.first = await page.locator(".log .hit").textContent();
  await page.click("[aria-label='Next line found']");
  await counted("2 of 3");
  await until(() => document.querySelector(".log .hit")?.textContent.includes("in the midst"));
  seen.around = (await page.locator(".log").textContent()).split("\n");
  seen.isInSight = await page.evaluate(() => {
    const [log, hit] = [".log", ".log .hit"].map((each) => document.querySelector(each).getBoundingClientRect());
    return hit.top >= log.top && hit.bottom <= log.bottom;
  });
  await look("job-search-line");
  await page.reload();
  await counted("2 of 3"); // the address says which
  await page.click("[aria-label='Previous line found']");
  await counted("1 of 3");
  await page.click("button:has-text('All that were found')");
  await counted("3 lines found");

  // Of very many some come first, and then the others.
  await find("of many");
  await counted("600 and more lines found"); // three answers of 200
  await page.click("button:has-text('Find more')");
  await counted("1,000 and more lines found");

  // What is printed while one looks, and while the market is away.
  await find("said later");
  await counted("2 lines found");
  seen.wasClean = { console: [...seen.console], failed: [...seen.failed] };
  await step("stop");
  await page.waitForSelector(".live.reconnecting");
  await step("start");
  await back();
  await counted("3 lines found");
  forgive();
  await step("print");
  await counted("4 lines found");
  seen.last = await count();
  await find("");
  await says("said later 4");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("button:has-text('Download')")]);
  seen.whole = { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
});

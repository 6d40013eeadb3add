// Scrolls the market's table of many machines from top to end, and measures what each frame costs.
//
//   node scroll.mjs URL_WITH_CODE FOLDER ROWS
import { browse } from "./kit.mjs";

const [url, folder, wanted] = process.argv.slice(2);

await browse({ url, folder, reducedMotion: "no-preference" }, async ({ context, page, seen, until, shoot }) => {
  await page.goto(url);
  await page.waitForSelector("h1:text('Dashboard')");
  await page.click("nav a[href='#/market']");
  await until((count) => Number(document.querySelector(".machines table")?.ariaRowCount ?? 0) > count, Number(wanted));
  const session = await context.newCDPSession(page);
  // The thread's own time: the machine may be busy with other things.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const cost = async () =>
    Object.fromEntries((await session.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
  const before = await cost();
  seen.frames = await page.evaluate(() => new Promise((done) => {
    const table = document.querySelector(".machines .virtual");
    const frames = [];
    let last = performance.now();
    const next = (now) => {
      frames.push(now - last);
      last = now;
      if (table.scrollTop + table.clientHeight >= table.scrollHeight - 1) return done(frames.slice(1));
      table.scrollTop += 1760; // forty rows a frame: as fast as a wheel goes
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }));
  const after = await cost();
  const spent = (name) => (after[name] - before[name]) * 1000;
  seen.work_ms = spent("TaskDuration");
  seen.parts_ms = { script: spent("ScriptDuration"), style: spent("RecalcStyleDuration"), layout: spent("LayoutDuration") };
  seen.rowsInDocument = await page.locator(".machines tbody tr:not(.gap)").count();
  seen.last = await page.locator(".machines tbody tr:not(.gap)").last().getAttribute("aria-rowindex");
  // Filters answer within one task.
  seen.filter_ms = await page.evaluate(() => new Promise((done) => {
    const box = document.querySelector(".filters [name=name]");
    const begun = performance.now();
    box.value = "machine-99";
    box.dispatchEvent(new Event("input", { bubbles: true }));
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
  }));
  await shoot("market-10000");
});
